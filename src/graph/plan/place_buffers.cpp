#include <tenon/graph/memory_plan.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <numeric>

namespace tenon {

namespace {

int64_t round_up(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

bool live_together(const BufferLife& a, const BufferLife& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Span {
  int64_t begin, end;
};

/// The smallest gap between the spans (sorted by begin) that holds `bytes`, else the end of the
/// last.
int64_t best_gap(const std::vector<Span>& spans, int64_t bytes) {
  int64_t best = -1, best_size = 0, end = 0;
  for (const Span& span : spans) {
    const int64_t gap = span.begin - end;
    if (gap >= bytes && (best < 0 || gap < best_size)) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, span.end);
  }
  return best < 0 ? end : best;
}

}  // namespace

ArenaLayout place_buffers(const std::vector<BufferLife>& buffers, int64_t alignment) {
  TENON_CHECK(alignment > 0, "alignment {}", alignment);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  ArenaLayout layout{std::vector<int64_t>(buffers.size(), 0), 0};
  std::vector<size_t> placed;
  for (size_t i : order) {
    const int64_t bytes = round_up(buffers[i].bytes, alignment);
    if (bytes == 0) continue;  // nothing to keep apart
    std::vector<Span> spans;
    for (size_t k : placed)
      if (live_together(buffers[i], buffers[k]))
        spans.push_back(
            {layout.offsets[k], layout.offsets[k] + round_up(buffers[k].bytes, alignment)});
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    layout.offsets[i] = best_gap(spans, bytes);
    layout.bytes = std::max(layout.bytes, layout.offsets[i] + bytes);
    placed.push_back(i);
  }
  return layout;
}

}  // namespace tenon
