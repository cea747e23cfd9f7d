#include "arith/interval.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {
namespace {

using End = std::optional<int64_t>;

End add(End a, End b) {
  int64_t out;
  return a && b && !__builtin_add_overflow(*a, *b, &out) ? End(out) : End();
}

End subtract(End a, End b) {
  int64_t out;
  return a && b && !__builtin_sub_overflow(*a, *b, &out) ? End(out) : End();
}

Interval scale(const Interval& a, int64_t factor) {
  auto times = [&](End x) -> End {
    int64_t out;
    return x && !__builtin_mul_overflow(*x, factor, &out) ? End(out) : End();
  };
  if (factor == 0) return Interval::point(0);
  return factor > 0 ? Interval{times(a.min), times(a.max)} : Interval{times(a.max), times(a.min)};
}

}  // namespace

int64_t floor_div(int64_t a, int64_t divisor) {
  return a / divisor - (a % divisor != 0 && a < 0 ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t divisor) {
  int64_t r = a % divisor;
  return r < 0 ? r + divisor : r;
}

Interval operator+(const Interval& a, const Interval& b) {
  return {add(a.min, b.min), add(a.max, b.max)};
}

Interval operator-(const Interval& a, const Interval& b) {
  return {subtract(a.min, b.max), subtract(a.max, b.min)};
}

Interval operator*(const Interval& a, const Interval& b) {
  if (auto factor = b.single()) return scale(a, *factor);
  if (auto factor = a.single()) return scale(b, *factor);
  if (!a.bounded() || !b.bounded()) {
    bool positive = a.min && *a.min >= 0 && b.min && *b.min >= 0;
    return positive ? Interval{scale(a, *b.min).min, std::nullopt} : Interval::all();
  }
  Interval low = scale(a, *b.min), high = scale(a, *b.max);
  return low.bounded() && high.bounded() ? hull(low, high) : Interval::all();
}

Interval floor_div(const Interval& a, int64_t divisor) {
  Interval out;
  if (a.min) out.min = floor_div(*a.min, divisor);
  if (a.max) out.max = floor_div(*a.max, divisor);
  return out;
}

Interval floor_mod(const Interval& a, int64_t divisor) {
  if (a.bounded() && floor_div(*a.min, divisor) == floor_div(*a.max, divisor)) {
    return {floor_mod(*a.min, divisor), floor_mod(*a.max, divisor)};
  }
  return {0, divisor - 1};
}

Interval min(const Interval& a, const Interval& b) {
  Interval out;
  if (a.min && b.min) out.min = std::min(*a.min, *b.min);
  if (a.max || b.max) out.max = std::min(a.max.value_or(INT64_MAX), b.max.value_or(INT64_MAX));
  return out;
}

Interval max(const Interval& a, const Interval& b) {
  Interval out;
  if (a.max && b.max) out.max = std::max(*a.max, *b.max);
  if (a.min || b.min) out.min = std::max(a.min.value_or(INT64_MIN), b.min.value_or(INT64_MIN));
  return out;
}

Interval hull(const Interval& a, const Interval& b) {
  Interval out;
  if (a.min && b.min) out.min = std::min(*a.min, *b.min);
  if (a.max && b.max) out.max = std::max(*a.max, *b.max);
  return out;
}

Interval intersect(const Interval& a, const Interval& b) {
  Interval out = a;
  if (b.min && (!a.min || *b.min > *a.min)) out.min = b.min;
  if (b.max && (!a.max || *b.max < *a.max)) out.max = b.max;
  return out.bounded() && *out.min > *out.max ? a : out;
}

std::string print(const Interval& i) {
  return fmt::format("[{}, {}]", i.min ? std::to_string(*i.min) : "-inf",
                     i.max ? std::to_string(*i.max) : "inf");
}

}  // namespace tenon
