#include "interp/frame.h"

#include <fmt/format.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

namespace tenon {

void BufferState::start_life(std::vector<int64_t> extents, std::byte* memory, uint64_t new_epoch,
                             bool remember) {
  constexpr auto kPoison = std::byte{0xff};  // a NaN in every float type
  dims = std::move(extents);
  strides.assign(dims.size(), 1);
  int64_t count = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = count;
    count *= std::max<int64_t>(dims[d], 0);
  }
  auto size = static_cast<size_t>(count);
  if (!memory && own.size() < size * static_cast<size_t>(byte_size(dtype))) {
    own.assign(size * static_cast<size_t>(byte_size(dtype)), kPoison);
  }
  data = memory ? memory : own.data();
  epoch = new_epoch;
  if (remember && tracked && elements.size() < size) elements.resize(size);
}

void Frame::fail(const std::string& rule) const {
  std::string text = "interpreter: " + rule;
  if (statement) {
    for (const std::string& line : split_text(trim(print(*statement)), '\n'))
      text += "\n  in " + line;
  }
  std::vector<std::string> values;
  for (const ActiveLoop& l : loops) {
    values.push_back(
        fmt::format("{} = {}", l.loop->var.name(), slots[static_cast<size_t>(l.slot)].i));
  }
  if (!values.empty()) text += "\n  with " + join(values);
  throw InternalError(text);
}

void Frame::out_of_bounds(const BufferState& b, const int64_t* indices, size_t dim,
                          std::string_view verb) const {
  std::string at = fmt::format("{}", fmt::join(indices, indices + b.dims.size(), ", "));
  fail(fmt::format("{} {}[{}] out of bounds: dimension {} has extent {}", verb, b.name, at, dim,
                   b.dims[dim]));
}

std::string Frame::element_text(const BufferState& b, int64_t element) const {
  std::vector<int64_t> at;
  for (int64_t stride : b.strides) {
    at.push_back(element / stride);
    element %= stride;
  }
  return fmt::format("{}[{}]", b.name, fmt::join(at, ", "));
}

void Frame::note_read(BufferState& b, int64_t element, bool part_of_atomic) {
  RaceLog::Element& e = b.elements[static_cast<size_t>(element)];
  if (e.epoch != b.epoch) e = {b.epoch};
  if (e.write == RaceLog::kNever) {
    fail(fmt::format("reads {}, which was never written", element_text(b, element)));
  }
  if (part_of_atomic) return;
  if (auto conflict = race.on_read(e)) {
    fail(fmt::format("race on {} in {}", element_text(b, element), *conflict));
  }
}

void Frame::note_write(BufferState& b, int64_t element, bool atomic) {
  RaceLog::Element& e = b.elements[static_cast<size_t>(element)];
  if (e.epoch != b.epoch) e = {b.epoch};
  if (auto conflict = race.on_write(e, atomic)) {
    fail(fmt::format("race on {} in {}", element_text(b, element), *conflict));
  }
}

}  // namespace tenon
