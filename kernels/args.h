#pragma once
#include <tenon/te/te.h>

#include <map>
#include <string>
#include <vector>

namespace tenon {

/// An argument of an operator on the command line. Kinds: a number ("m=1024"), a shape
/// ("shape=64x56x56"), a word.
struct KernelArg {
  enum class Kind : uint8_t { number, shape, word };
  std::string name;
  Kind kind = Kind::number;
  std::string standard;  // the default as text; empty: must be given
  std::string help;
  int64_t low = 0;                 // numbers: lowest value
  std::vector<std::string> words;  // words: those allowed
};

/// The arguments of one call of an operator, checked against its list; what was not given has its
/// default.
class KernelArgs {
 public:
  explicit KernelArgs(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  int64_t number(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const;
  const std::string& word(const std::string& name) const;
  DType type() const;
  /// input() or, when the argument `constant` names it, constant(), in the call's type or another.
  Tensor tensor(const std::string& name, const std::vector<int64_t>& shape) const;
  Tensor tensor(const std::string& name, DType dtype, const std::vector<int64_t>& shape) const;
  /// {"k":1024,"type":"f32"}: every argument, numbers as numbers.
  std::string to_json() const;

 private:
  std::map<std::string, std::string> values_;
};

/// Reads NAME=VALUE words for operator `kernel`. `inputs` are the tensors that constant= may name
/// (joined by commas). UserError for: a word without "=", an unknown name (lists the nearest), a
/// name twice, a value of the wrong kind or out of range, a missing argument (lists all with their
/// help).
KernelArgs parse_kernel_args(const std::string& kernel, const std::vector<KernelArg>& known,
                             const std::vector<std::string>& inputs,
                             const std::vector<std::string>& words);

}  // namespace tenon
