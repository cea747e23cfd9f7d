#pragma once
#include <tenon/autotvm/search.h>

namespace tenon {

inline Domain ladder(const std::string& name, const std::vector<int64_t>& values,
                     int64_t standard) {
  Domain d;
  d.name = name;
  d.kind = KnobKind::ladder;
  for (int64_t v : values) d.values.emplace_back(v);
  d.default_value = standard;
  return d;
}

inline Domain tile_domain(const std::string& name, int64_t extent, int levels) {
  Domain d;
  d.name = name;
  d.kind = KnobKind::tile;
  d.extent = extent;
  d.levels = levels;
  d.default_value = std::vector<int64_t>(static_cast<size_t>(levels - 1), 1);
  return d;
}

/// 8 x 8 x 4 points; `a` and `b` may not both be 128.
inline KnobSpace sample_space() {
  KnobSpace space;
  space.domains = {ladder("a", {1, 2, 4, 8, 16, 32, 64, 128}, 8),
                   ladder("b", {1, 2, 4, 8, 16, 32, 64, 128}, 8), tile_domain("t", 8, 2)};
  space.requirements.push_back(
      {[](const Point& p) { return p.number("a") < 128 || p.number("b") < 128; }, "too large"});
  Point hint;
  hint.values["a"] = int64_t{16};
  space.suggestions.push_back(hint);
  return space;
}

}  // namespace tenon
