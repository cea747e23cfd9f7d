#include <tenon/runtime/guard.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <tenon/support/error.h>

namespace tenon {

GuardedBuffer::GuardedBuffer(size_t bytes, size_t alignment, GuardAt at)
    : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), bytes_(bytes) {
  TENON_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0 && alignment <= page_,
              "alignment {}", alignment);
  const size_t inner = std::max<size_t>(1, (bytes + page_ - 1) / page_) * page_;
  map_bytes_ = inner + 2 * page_;
  void* map =
      mmap(nullptr, map_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map != MAP_FAILED &&
      mprotect(static_cast<uint8_t*>(map) + page_, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, map_bytes_);
    map = MAP_FAILED;
  }
  if (map == MAP_FAILED)
    throw UserError(fmt::format("guarded buffer: no memory for {} bytes", bytes));
  map_ = static_cast<uint8_t*>(map);
  std::memset(map_ + page_, kPoison, inner);
  data_ =
      at == GuardAt::start ? map_ + page_ : map_ + page_ + (inner - bytes) / alignment * alignment;
}

GuardedBuffer::~GuardedBuffer() { munmap(map_, map_bytes_); }

bool GuardedBuffer::slack_intact() const {
  const uint8_t *first = map_ + page_, *last = map_ + map_bytes_ - page_;
  auto poisoned = [](uint8_t byte) { return byte == kPoison; };
  return std::all_of(first, static_cast<const uint8_t*>(data_), poisoned) &&
         std::all_of(static_cast<const uint8_t*>(data_) + bytes_, last, poisoned);
}

Array guarded_array(DType dtype, Shape shape, GuardAt at) {
  const auto element = static_cast<size_t>(byte_size(dtype));
  auto buffer = std::make_shared<GuardedBuffer>(static_cast<size_t>(element_count(shape)) * element,
                                                element, at);
  return Array::wrap(buffer->data(), dtype, std::move(shape), buffer);
}

}  // namespace tenon
