#include <tenon/runtime/guard.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>

using namespace tenon;

namespace {

/// Does touching `byte` end a child process by SIGSEGV?
bool forbidden(const uint8_t* byte) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    const volatile uint8_t value = *static_cast<const volatile uint8_t*>(byte);
    _exit(value == 0 ? 1 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

}  // namespace

TEST_CASE("the end or the start of a guarded buffer touches forbidden memory") {
  for (size_t bytes : {size_t{4}, size_t{64}, size_t{4096}, size_t{10000}}) {
    CAPTURE(bytes);
    const GuardedBuffer end(bytes, 4, GuardAt::end), start(bytes, 4, GuardAt::start);
    const auto* last = static_cast<const uint8_t*>(end.data());
    CHECK(!forbidden(last + bytes - 1));
    CHECK(forbidden(last + bytes));
    const auto* first = static_cast<const uint8_t*>(start.data());
    CHECK(!forbidden(first));
    CHECK(forbidden(first - 1));
  }
}

TEST_CASE("alignment wins over the guard page, and the slack is watched") {
  const GuardedBuffer buffer(10, 64, GuardAt::end);
  auto* data = static_cast<uint8_t*>(buffer.data());
  CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
  CHECK(forbidden(data + 64));
  for (int k = 0; k < 10; ++k) data[k] = 0;
  CHECK(buffer.slack_intact());
  data[10] = 0;
  CHECK(!buffer.slack_intact());
  data[10] = GuardedBuffer::kPoison;
  data[-1] = 0;
  CHECK(!buffer.slack_intact());
}

TEST_CASE("a guarded array is poisoned and sits at the very end") {
  const Array a = guarded_array(f32, {3, 5}, GuardAt::end);
  for (double value : a.to_doubles()) CHECK(std::isnan(value));
  CHECK(forbidden(static_cast<uint8_t*>(a.raw()) + a.bytes()));
  const Array none = guarded_array(f64, {0}, GuardAt::end);
  CHECK(forbidden(static_cast<uint8_t*>(none.raw())));
}
