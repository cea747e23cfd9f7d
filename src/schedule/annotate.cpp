#include <tenon/ir/notes.h>
#include <tenon/schedule/mark_primitives.h>
#include <tenon/support/foreign_text.h>

#include <algorithm>

#include "schedule/mark.h"

namespace tenon {
namespace {

constexpr std::string_view kFree = "user.";
constexpr size_t kLongestKey = 64;

bool is_free(std::string_view key) {
  return key.size() > kFree.size() && key.size() <= kLongestKey && key.rfind(kFree, 0) == 0 &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

/// for x in 0..n: S(x)   ->   for x in 0..n  user.group=3: S(x)
Program Annotate::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const std::string mark = full_name(path, at);
  const bool known = key == kNoPartitionNote || key == kStreamNote;
  if (known && value != 1)
    refuse(Rule::annotate_value,
           fmt::format("the value of \"{}\" is {}; it is 1 or the note is not there", key, value),
           {}, mark);
  if (!known && !is_free(key))
    refuse(
        Rule::annotate_key,
        fmt::format("\"{}\" is no key that lowering knows (\"{}\", \"{}\"), and a free one "
                    "is \"{}\" and up to {} letters, digits, '.', '_' and '-'",
                    shorten(key), kNoPartitionNote, kStreamNote, kFree, kLongestKey - kFree.size()),
        fmt::format("\"{}NAME\" for a note of your own; partition, prefetch and double_buffer "
                    "are steps",
                    kFree),
        mark);
  return with_note(program, path.loops[at]->var, key, value);
}

}  // namespace tenon
