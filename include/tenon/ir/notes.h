#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// The keys of For::notes. They change no meaning; lowering carries out those it knows:
//   partition          cut the loop where conditions of selects change, too
//   no_partition       never cut it
//   stream             vectors of outputs that the loop writes and does not read bypass the caches
//   prefetch(B)        the number of iterations ahead of which B is fetched
//   prefetch_part(B)   on a loop inside that one: each iteration asks for a part of the lines
//   double_buffer(T)   T has two copies; one is filled for the next iteration while one is read
// Keys that start with "user." mean nothing to Tenon.

inline constexpr std::string_view kPartitionNote = "partition";
inline constexpr std::string_view kNoPartitionNote = "no_partition";
inline constexpr std::string_view kStreamNote = "stream";

inline std::string prefetch_note(const std::string& buffer) { return "prefetch(" + buffer + ")"; }
inline std::string prefetch_part_note(const std::string& buffer) {
  return "prefetch_part(" + buffer + ")";
}
inline std::string double_buffer_note(const std::string& buffer) {
  return "double_buffer(" + buffer + ")";
}

/// The buffers B of the notes "mark(B)", in order.
inline std::vector<std::string> noted_buffers(const std::map<std::string, int64_t>& notes,
                                              std::string_view mark) {
  std::vector<std::string> out;
  if (notes.empty()) return out;
  const std::string start = std::string(mark) + "(";
  for (const auto& [key, value] : notes)
    if (key.rfind(start, 0) == 0)
      out.push_back(key.substr(start.size(), key.size() - start.size() - 1));
  return out;
}

}  // namespace tenon
