#pragma once
#include <map>
#include <set>
#include <string>

namespace tenon {

/// Identifiers from names of the IR, each given out once.
class Names {
 public:
  /// `base` with everything but letters, digits and underscores replaced, and a number where it is
  /// taken or a word of the language.
  std::string fresh(const std::string& base);

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> next_;
};

}  // namespace tenon
