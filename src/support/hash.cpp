#include <fmt/format.h>
#include <tenon/support/hash.h>

namespace tenon {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t h = seed;
  for (size_t k = 0; k < size; ++k) h = (h ^ bytes[k]) * 0x100000001b3ULL;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ULL;
  return h ^ (h >> 32);
}

std::string hex64(uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace tenon
