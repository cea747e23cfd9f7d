#include "codegen/text/names.h"

#include <cctype>

namespace tenon {

/// A trailing underscore keeps clear of the words of a language and of its functions.
std::string Names::fresh(const std::string& base) {
  std::string word;
  for (char c : base) word += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (word.empty() || !std::isalpha(static_cast<unsigned char>(word[0]))) word = "v" + word;
  if (word.size() > 1) word += '_';
  std::string out = word;
  while (!taken_.insert(out).second) out = word + std::to_string(++next_[word]);
  return out;
}

}  // namespace tenon
