#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// FNV-1a with a final mix: stable across machines, runs and versions.
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0xcbf29ce484222325ULL);
inline uint64_t hash_text(std::string_view text) { return hash_bytes(text.data(), text.size()); }
inline uint64_t hash_combine(uint64_t a, uint64_t b) {
  return a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2));
}

/// 16 lower-case hexadecimal digits.
std::string hex64(uint64_t value);

}  // namespace tenon
