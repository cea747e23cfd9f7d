#include <catch2/catch.hpp>

#include "autotvm/progress.h"

using namespace tenon;
using Catch::Matchers::Contains;

TEST_CASE("a progress line says what is known") {
  ProgressState s;
  s.task = "t";
  s.trials_wanted = 100;
  CHECK(progress_text(s) == "t  0/100 trials  nothing yet  0 s");
  s.limited = false;
  CHECK(progress_text(s) == "t  0 trials  nothing yet  0 s");
  s.limited = true;
  s.trials = 40;
  s.failed = 3;
  s.best_us = 812.44;
  s.default_us = 1893;
  s.gflops = 330.12;
  s.peak_share = 0.811;
  s.elapsed_s = 20;
  CHECK(progress_text(s) ==
        "t  40/100 trials (3 failed)  best 812.4 us (default 1893 us)  330.1 GFLOP/s, 81% of peak  "
        "20 s, about 30 s left");
}

TEST_CASE("the projected end is the nearer of trials and time") {
  ProgressState s;
  s.trials = 10;
  s.trials_wanted = 100;
  s.elapsed_s = 10;
  CHECK(projected_s(s) == Approx(90));
  s.time_limit_s = 30;
  CHECK(projected_s(s) == Approx(20));
  s.elapsed_s = 31;
  CHECK(projected_s(s) == 0);
  s.trials = 0;
  CHECK(projected_s(s) < 0);
}
