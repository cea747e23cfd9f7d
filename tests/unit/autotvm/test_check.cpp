#include <tenon/autotvm/verify.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "autotvm/measure/check.h"
#include "row_sums.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Comparison compare(const std::vector<float>& expected, const std::vector<float>& actual) {
  const auto size = static_cast<int64_t>(expected.size());
  return compare_output("C", from_vector<float>({size}, expected),
                        from_vector<float>({size}, actual), 1e-5);
}

}  // namespace

TEST_CASE("floats may differ by rounding and by no more") {
  CHECK(compare({1, 2}, {1, 2}).error == 0);
  CHECK(compare({100, 2}, {100.0001f, 2}).passed);
  const Comparison c = compare({100, 2, 3}, {100, 2, 3.01f});
  CHECK_FALSE(c.passed);
  CHECK(c.error > 1);
  CHECK_THAT(c.reason, Contains("C[2] is 3.0"));
}

TEST_CASE("NaN and infinities must stand where they are expected") {
  CHECK(compare({kNan, kInf}, {kNan, kInf}).passed);
  CHECK_FALSE(compare({1, 2}, {1, kNan}).passed);
  CHECK_FALSE(compare({1, kNan}, {1, 2}).passed);
  CHECK_FALSE(compare({kInf, 2}, {-kInf, 2}).passed);
  CHECK_FALSE(compare({kInf, 2}, {1e30f, 2}).passed);
}

TEST_CASE("integers and booleans must be equal") {
  const Array a = from_vector<int64_t>({2, 2}, {1, 2, 3, int64_t{1} << 60});
  const Array b = from_vector<int64_t>({2, 2}, {1, 2, 3, (int64_t{1} << 60) + 1});
  CHECK(compare_output("C", a, a.copy(), 1).passed);
  const Comparison c = compare_output("C", a, b, 1);
  CHECK_FALSE(c.passed);
  CHECK_THAT(c.reason, Contains("C[1,1]"));
}

TEST_CASE("the tolerance follows the reduction's length and the coarsest type") {
  const Task task = row_sums();
  CHECK(tolerance_factor(task.program) == Approx(32 * std::pow(2.0, -24) * std::sqrt(16.0 + 130)));
  const Axis i("i", 4);
  const Tensor a = input("A", f16, {4}), b = input("B", i32, {4});
  CHECK(tolerance_factor(make_program("p", {compute("C", {i}, a(i))})) ==
        Approx(32 * std::pow(2.0, -11) * std::sqrt(17.0)));
  CHECK(tolerance_factor(make_program("p", {compute("C", {i}, b(i))})) == 0);
}

TEST_CASE("a right sum in another order passes and one that lacks a term does not") {
  const Task task = row_sums();
  const std::vector<Array> expected = sample_arguments(task, 3), other = sample_arguments(task, 3);
  const float* a = expected[0].data<float>();
  for (int row = 0; row < 37; ++row) {
    float up = 0, down = 0;
    for (int k = 0; k < 130; ++k) up += a[row * 130 + k];
    for (int k = 130; k-- > 0;) down += a[row * 130 + k];
    expected[1].data<float>()[row] = up;
    other[1].data<float>()[row] = down;
  }
  CHECK(compare_arguments(task, expected, other).passed);
  other[1].data<float>()[20] -= a[20 * 130 + 7];
  const Comparison c = compare_arguments(task, expected, other);
  CHECK_FALSE(c.passed);
  CHECK_THAT(c.reason, Contains("C[20]"));
}

TEST_CASE("inputs are the same for a seed, stay in the task's range, and are not all zero") {
  Task task = row_sums();
  const Axis i("i", 100);
  const Tensor index = input("I", i64, {100});
  Task gather("g", compute("C", {i}, index(i)), Target::host());
  gather.input_ranges["I"] = {3, 5};
  const std::vector<Array> args = sample_arguments(gather, 1);
  for (int64_t v : args[0].elements<int64_t>()) CHECK((v >= 3 && v <= 5));
  CHECK(sample_arguments(task, 1)[0].to_doubles() == sample_arguments(task, 1)[0].to_doubles());
  CHECK(sample_arguments(task, 1)[0].to_doubles() != sample_arguments(task, 2)[0].to_doubles());
  CHECK(std::isnan(sample_arguments(task, 1)[1].data<float>()[0]));
}
