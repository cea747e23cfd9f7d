#include "schedule/copy.h"

#include <algorithm>
#include <set>

#include "schedule/place.h"

namespace tenon {
namespace {

constexpr int64_t kLargestBlock = int64_t{1} << 31;

bool tiles(std::vector<LayoutDim> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const LayoutDim& a, const LayoutDim& b) { return a.divide < b.divide; });
  int64_t next = 1;
  for (size_t n = 0; n < parts.size(); ++n) {
    const LayoutDim& l = parts[n];
    if (l.divide != next) return false;
    if (n + 1 == parts.size()) return l.modulo == 0;
    if (l.modulo < 2 || l.modulo > kLargestBlock / next) return false;
    next *= l.modulo;
  }
  return false;
}

}  // namespace

void check_layout(const std::vector<LayoutDim>& layout, size_t rank, const std::string& buffer) {
  if (layout.empty()) return;
  for (const LayoutDim& l : layout)
    if (l.dim < 0 || l.dim >= static_cast<int>(rank))
      refuse(Rule::layout_dimension,
             fmt::format("the layout names dimension {} of {}, which has {}", l.dim, buffer, rank));
  for (size_t d = 0; d < rank; ++d) {
    std::vector<LayoutDim> parts;
    for (const LayoutDim& l : layout)
      if (l.dim == static_cast<int>(d)) parts.push_back(l);
    if (!tiles(parts))
      refuse(Rule::layout_parts,
             fmt::format("the layout does not store dimension {} of {} exactly once: its parts "
                         "must be index % a, (index // a) % b, ..., index // (a*b...)",
                         d, buffer),
             "for blocks of n along the last dimension of a matrix: {{1, n, 0}, {0, 1, 0}, {1, 1, "
             "n}}");
  }
}

std::vector<std::string> dim_names(const Program& program, const Stage& reader,
                                   const Buffer& buffer) {
  std::vector<std::string> names(buffer->shape.size());
  const std::vector<StagePath> writers = writers_of(program, buffer);
  auto name_from = [&](const std::vector<Expr>& indices) {
    for (size_t d = 0; d < names.size(); ++d) {
      if (!names[d].empty()) continue;
      const std::vector<Var> vars = free_vars(indices[d]);
      if (!vars.empty()) names[d] = vars[0].name();
    }
  };
  if (!writers.empty()) name_from(writers[0].stage->indices);
  for (const Expr& e : reader.values)
    walk(e, [&](const Expr& part) {
      const Load* l = part.as<Load>();
      if (l && l->buffer == buffer) name_from(l->indices);
      return true;
    });
  std::set<std::string> used;
  for (size_t d = 0; d < names.size(); ++d) {
    if (names[d].empty()) names[d] = fmt::format("d{}", d);
    const std::string base = names[d];
    for (int n = 2; !used.insert(names[d]).second; ++n) names[d] = fmt::format("{}{}", base, n);
  }
  return names;
}

}  // namespace tenon
