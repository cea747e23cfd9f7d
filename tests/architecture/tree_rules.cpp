#include "tree_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

#include <tenon/support/text.h>

namespace tenon {
namespace {

namespace fs = std::filesystem;

/// The design's table: what each room may include directly. Arrows are transitive, except that
/// `lower` and `codegen` are reached from `compile` alone. `graph` includes `interp` because
/// constant folding uses the definition of right.
const std::map<std::string, std::vector<std::string>>& table() {
  static const std::map<std::string, std::vector<std::string>> rooms = {
      {"support", {}},
      {"target", {"support"}},
      {"ir", {"support"}},
      {"arith", {"ir"}},
      {"te", {"ir", "arith"}},
      {"autodiff", {"te", "ir", "arith"}},
      {"schedule", {"te", "ir", "arith", "target"}},
      {"interp", {"ir"}},
      {"lower", {"ir", "arith", "target"}},
      {"codegen", {"ir", "target"}},
      {"runtime", {"target"}},
      {"records", {"ir", "schedule", "target"}},
      {"compile", {"te", "ir", "schedule", "records", "lower", "codegen", "runtime"}},
      {"autotvm", {"te", "schedule", "target", "compile", "interp", "records"}},
      {"kernels", {"te", "schedule", "autodiff"}},
      {"graph", {"te", "autodiff", "kernels", "compile", "runtime", "records", "interp"}},
      {"dist", {"graph", "runtime"}},
      {"driver", {"graph", "kernels", "autotvm"}},
      {"cli", {"driver"}}};
  return rooms;
}

/// Rooms that only these may include; the table's arrows to them do not pass on.
const std::map<std::string, std::string> kPrivateTo = {{"lower", "compile"},
                                                       {"codegen", "compile"}};

/// Parts of names: matched as a whole word of an identifier.
const std::set<std::string> kOperatorWords = {"relu", "prelu", "gelu", "conv",
                                              "gemm", "silu",  "elu",  "swish"};
/// Matched anywhere in an identifier, without its underscores.
const std::vector<std::string> kOperatorParts = {
    "conv1d",    "conv2d",       "conv3d",      "convolution", "depthwise",  "matmul",
    "softmax",   "maxpool",      "avgpool",     "averagepool", "globalpool", "batchnorm",
    "layernorm", "instancenorm", "hardsigmoid", "hardswish",   "logsoftmax", "attention"};

std::string first_part(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

/// The room that owns a path below the root ("src/ir/print.cpp", "include/tenon/ir/expr.h");
/// nothing for files that belong to none (tests, examples, the umbrella header).
std::optional<std::string> room_of(std::string path) {
  for (std::string_view prefix : {"include/tenon/", "src/"}) {
    if (path.rfind(prefix, 0) != 0) continue;
    path = path.substr(prefix.size());
    if (path.find('/') == std::string::npos) return std::nullopt;
    return first_part(path);
  }
  if (path.rfind("autotvm/records/", 0) == 0) return "records";
  const std::string top = first_part(path);
  if (top == "autotvm" || top == "kernels") return top;
  return std::nullopt;
}

/// The room that an include line reaches: by the include folders of the build (include, src and the
/// root), or beside the including file.
std::optional<std::string> room_of_include(const fs::path& root, const std::string& file,
                                           const std::string& included) {
  const fs::path beside = (fs::path(file).parent_path() / included).lexically_normal();
  if (fs::exists(root / beside)) return room_of(beside.generic_string());
  if (included.rfind("tenon/", 0) == 0) return room_of("include/" + included);
  if (included.rfind("autotvm/", 0) == 0 || included.rfind("kernels/", 0) == 0)
    return room_of(included);
  const std::string top = first_part(included);
  if (top != included && table().count(top)) return top;
  return std::nullopt;
}

bool is_header(const std::string& path) { return fs::path(path).extension() == ".h"; }

/// Rules on what comes from outside; empty when there is nothing to say.
std::string broken_outside(const std::string& file, const std::string& room,
                           const std::string& included) {
  const std::string top = first_part(included);
  const bool llvm = top == "llvm" || top == "llvm-c", cli = top == "CLI";
  if (llvm && file.rfind("src/codegen/llvm/", 0) != 0) return "LLVM is seen by codegen/llvm alone";
  if (cli && room != "cli") return "CLI11 is seen by cli alone";
  const bool json = top == "nlohmann" && included != "nlohmann/json_fwd.hpp";
  const bool protobuf = included.rfind("google/protobuf/", 0) == 0;
  if (is_header(file) && (cli || json || protobuf)) return "it does not belong in a header";
  if (room == "runtime" && top == "nlohmann") return "a shipped library links no JSON";
  return "";
}

std::string broken_include(const fs::path& root, const std::string& file, const std::string& room,
                           const std::string& included) {
  const std::optional<std::string> reached = room_of_include(root, file, included);
  if (!reached) return broken_outside(file, room, included);
  if (!table().count(*reached)) return fmt::format("room {} is not in the table", *reached);
  if (may_include(room, *reached)) return "";
  return fmt::format("{} may not include {} (design, section 2)", room, *reached);
}

/// `code` with comments blanked out, strings kept; lines stay lines.
std::string without_comments(std::string code) {
  char quote = 0;
  for (size_t k = 0; k < code.size(); ++k) {
    if (quote) {
      if (code[k] == '\\')
        ++k;
      else if (code[k] == quote || code[k] == '\n')
        quote = 0;
      continue;
    }
    const std::string_view two = std::string_view(code).substr(k, 2);
    if (code[k] == '"') quote = '"';
    // An apostrophe after a digit or letter separates digits (1'000).
    if (code[k] == '\'' && (k == 0 || !std::isalnum(static_cast<unsigned char>(code[k - 1]))))
      quote = '\'';
    if (two != "//" && two != "/*") continue;
    size_t end = two == "//" ? code.find('\n', k) : code.find("*/", k + 2);
    end = end == std::string::npos ? code.size() : two == "//" ? end : end + 2;
    for (; k < end; ++k) code[k] = code[k] == '\n' ? '\n' : ' ';
    --k;
  }
  return code;
}

/// "kMaxPool_2" -> {"k", "max", "pool", "2"}: words by underscore and by case.
std::vector<std::string> words_of(const std::string& identifier) {
  std::vector<std::string> words;
  char before = '_';
  for (char c : identifier) {
    const bool upper = std::isupper(static_cast<unsigned char>(c));
    const bool starts =
        before == '_' || (upper && !std::isupper(static_cast<unsigned char>(before)));
    if (c != '_' && starts) words.emplace_back();
    if (c != '_') words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    before = c;
  }
  return words;
}

bool names_operator(const std::string& identifier) {
  const std::vector<std::string> words = words_of(identifier);
  const std::string joined = join(words, "");
  return std::any_of(words.begin(), words.end(),
                     [](auto& w) { return kOperatorWords.count(w) > 0; }) ||
         std::any_of(kOperatorParts.begin(), kOperatorParts.end(),
                     [&](auto& part) { return joined.find(part) != std::string::npos; });
}

/// `cli` may: its help texts show operators as examples.
bool may_name_operators(const std::string& file, const std::string& room) {
  return room == "kernels" || room == "cli" || file.rfind("src/graph/onnx/", 0) == 0 ||
         file.rfind("include/tenon/graph/onnx", 0) == 0;
}

void check_operator_names(const std::string& file, const std::string& text,
                          std::vector<std::string>& broken) {
  static const std::regex identifier("[A-Za-z_][A-Za-z0-9_]*");
  std::istringstream lines(without_comments(text));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    for (std::sregex_iterator it(line.begin(), line.end(), identifier), end; it != end; ++it) {
      if (!names_operator(it->str())) continue;
      broken.push_back(
          fmt::format("{}:{}: \"{}\" - an operator's name stands in kernels and graph/onnx alone",
                      file, number, it->str()));
    }
  }
}

void check_length(const std::string& file, const std::vector<std::string>& lines,
                  std::vector<std::string>& broken) {
  const size_t limit = is_header(file) ? 250 : 500;
  if (lines.size() <= limit) return;
  for (size_t k = 0; k < std::min<size_t>(15, lines.size()); ++k) {
    if (lines[k].find("Length:") != std::string::npos) return;
  }
  broken.push_back(
      fmt::format("{}:1: {} lines - at most {}, or a reason \"Length: ...\" in the first 15 lines",
                  file, lines.size(), limit));
}

void check_file(const fs::path& root, const std::string& file, std::vector<std::string>& broken) {
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"].*)");
  const std::optional<std::string> room = room_of(file);
  if (!room) return;
  if (!table().count(*room)) {
    broken.push_back(fmt::format("{}:1: room {} is not in the table", file, *room));
    return;
  }
  std::ifstream stream(root / file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::vector<std::string> lines = split_text(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (size_t k = 0; k < lines.size(); ++k) {
    std::smatch match;
    if (!std::regex_match(lines[k], match, include)) continue;
    const std::string why = broken_include(root, file, *room, match[1]);
    if (!why.empty())
      broken.push_back(fmt::format("{}:{}: includes {} - {}", file, k + 1, match[1].str(), why));
  }
  check_length(file, lines, broken);
  if (!may_name_operators(file, *room)) check_operator_names(file, text, broken);
}

}  // namespace

bool may_include(const std::string& from, const std::string& to) {
  if (from == to || to == "support") return true;
  const auto owner = kPrivateTo.find(to);
  if (owner != kPrivateTo.end()) return owner->second == from;
  const std::vector<std::string>& direct = table().at(from);
  return std::any_of(direct.begin(), direct.end(),
                     [&](const std::string& room) { return may_include(room, to); });
}

std::vector<std::string> broken_rules(const fs::path& root) {
  std::vector<std::string> broken;
  for (const char* top : {"include", "src", "autotvm", "kernels"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      check_file(root, entry.path().lexically_relative(root).generic_string(), broken);
    }
  }
  std::sort(broken.begin(), broken.end());
  return broken;
}

}  // namespace tenon
