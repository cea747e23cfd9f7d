#include "kernels/args.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {
namespace {

using Kind = KernelArg::Kind;

std::optional<std::vector<int64_t>> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  if (text == "scalar") return shape;
  for (const std::string& part : split_text(text, 'x')) {
    const auto extent = parse_int(part);
    if (!extent || *extent < 0) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

/// The product of two arguments still fits an i64.
constexpr int64_t kMostNumber = int64_t{1} << 31;

std::string list_args(const std::vector<KernelArg>& known) {
  std::string text;
  for (const KernelArg& arg : known)
    text += fmt::format("\n  {}{}  {}", arg.name,
                        arg.standard.empty() ? "=..." : "=" + arg.standard, arg.help);
  return text +
         "\n  type=f32  element type\n  constant=  inputs whose contents are known ahead, joined "
         "by commas";
}

void check_value(const std::string& kernel, const KernelArg& arg, const std::string& value) {
  const std::string where = fmt::format("{}: {}={}", kernel, arg.name, value);
  if (arg.kind == Kind::number) {
    const auto number = parse_int(value);
    if (!number) throw UserError(fmt::format("{}: \"{}\" is not a whole number", where, value));
    if (*number < arg.low) throw UserError(fmt::format("{}: must be at least {}", where, arg.low));
    if (*number > kMostNumber)
      throw UserError(fmt::format("{}: must be at most {}", where, kMostNumber));
  } else if (arg.kind == Kind::shape) {
    const auto shape = parse_shape(value);
    if (!shape) throw UserError(fmt::format("{}: a shape looks like 64x56x56, or scalar", where));
    for (int64_t extent : *shape)
      if (extent > kMostNumber)
        throw UserError(fmt::format("{}: extents are at most {}", where, kMostNumber));
  } else if (!arg.words.empty() &&
             std::find(arg.words.begin(), arg.words.end(), value) == arg.words.end()) {
    const auto near = nearest_names(value, arg.words);
    throw UserError(fmt::format("{}: unknown word \"{}\"{}\n  there are: {}", where, value,
                                near.empty() ? "" : "; did you mean " + join(near),
                                join(arg.words)));
  }
}

void check_common(const std::string& kernel, const std::vector<std::string>& inputs,
                  const std::string& name, const std::string& value) {
  if (name == "type" && !parse_dtype(value))
    throw UserError(fmt::format(
        "{}: type={}: unknown type\n  there are: bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, "
        "bf16, f32, f64",
        kernel, value));
  if (name != "constant" || value.empty()) return;
  for (const std::string& input : split_text(value, ','))
    if (std::find(inputs.begin(), inputs.end(), input) == inputs.end())
      throw UserError(fmt::format("{}: constant={}: there is no input \"{}\"; the inputs are {}",
                                  kernel, value, input, join(inputs)));
}

}  // namespace

int64_t KernelArgs::number(const std::string& name) const { return *parse_int(values_.at(name)); }
std::vector<int64_t> KernelArgs::shape(const std::string& name) const {
  return *parse_shape(values_.at(name));
}
const std::string& KernelArgs::word(const std::string& name) const { return values_.at(name); }
DType KernelArgs::type() const { return *parse_dtype(values_.at("type")); }

Tensor KernelArgs::tensor(const std::string& name, const std::vector<int64_t>& shape) const {
  return tensor(name, type(), shape);
}

Tensor KernelArgs::tensor(const std::string& name, DType dtype,
                          const std::vector<int64_t>& shape) const {
  const auto constants = split_text(values_.at("constant"), ',');
  const bool known = std::find(constants.begin(), constants.end(), name) != constants.end();
  return known ? constant(name, dtype, shape) : input(name, dtype, shape);
}

std::string KernelArgs::to_json() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) {
    if (name == "constant" && value.empty()) continue;
    const auto number = parse_int(value);  // "007" is 7 in JSON
    parts.push_back(number ? fmt::format("\"{}\":{}", name, *number)
                           : fmt::format("\"{}\":\"{}\"", name, value));
  }
  return "{" + join(parts, ",") + "}";
}

KernelArgs parse_kernel_args(const std::string& kernel, const std::vector<KernelArg>& known,
                             const std::vector<std::string>& inputs,
                             const std::vector<std::string>& words) {
  std::map<std::string, std::string> values;
  std::vector<std::string> names = {"type", "constant"};
  for (const KernelArg& arg : known) names.push_back(arg.name);
  for (const std::string& word : words) {
    const size_t sign = word.find('=');
    if (sign == std::string::npos)
      throw UserError(fmt::format("{}: \"{}\" is not NAME=VALUE; the arguments are{}", kernel, word,
                                  list_args(known)));
    const std::string name = word.substr(0, sign), value = word.substr(sign + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto near = nearest_names(name, names);
      throw UserError(fmt::format("{}: unknown argument \"{}\"{}\n  the arguments are{}", kernel,
                                  name, near.empty() ? "" : "; did you mean " + join(near),
                                  list_args(known)));
    }
    if (!values.emplace(name, value).second)
      throw UserError(fmt::format("{}: argument \"{}\" is given twice", kernel, name));
    for (const KernelArg& arg : known)
      if (arg.name == name) check_value(kernel, arg, value);
    check_common(kernel, inputs, name, value);
  }
  std::vector<std::string> missing;
  for (const KernelArg& arg : known)
    if (!arg.standard.empty())
      values.emplace(arg.name, arg.standard);
    else if (!values.count(arg.name))
      missing.push_back(arg.name);
  if (!missing.empty())
    throw UserError(fmt::format("{}: missing {}\n  the arguments are{}", kernel, join(missing),
                                list_args(known)));
  values.emplace("type", "f32");
  values.emplace("constant", "");
  return KernelArgs(std::move(values));
}

}  // namespace tenon
