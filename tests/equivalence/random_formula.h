#pragma once
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <string>
#include <vector>

namespace tenon {

/// A small computation on i32 data, odd sizes on purpose.
struct RandomFormula {
  std::string kind;
  Program program;
  int64_t index_limit = 0;  // inputs named "idx" hold numbers in [0, index_limit)
};

RandomFormula random_formula(Rng& rng);

}  // namespace tenon
