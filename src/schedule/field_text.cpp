#include "schedule/field_text.h"

#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/support/text.h>

namespace tenon {

std::string_view name(Tail tail) {
  switch (tail) {
    case Tail::exact:
      return "exact";
    case Tail::guard:
      return "guard";
    case Tail::mask:
      return "mask";
    case Tail::shift_inward:
      return "shift_inward";
    case Tail::pad:
      return "pad";
  }
  return "";
}

LoopMark mark_of(ThreadAxis axis) {
  return static_cast<LoopMark>(static_cast<int>(LoopMark::block_x) + static_cast<int>(axis));
}

std::string_view name(ThreadAxis axis) { return name(mark_of(axis)); }

std::string cpp_text(const std::string& value) {
  std::string out = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string cpp_text(int64_t value) { return fmt::format("{}", value); }

std::string cpp_text(Tail value) { return fmt::format("Tail::{}", name(value)); }

std::string_view name(PackWhen when) { return when == PackWhen::ahead ? "ahead" : "run_time"; }

std::string cpp_text(PackWhen value) { return fmt::format("PackWhen::{}", name(value)); }

std::string cpp_text(Scope value) {
  return fmt::format("Scope::{}", value == Scope::reg ? "reg" : name(value));
}

std::string cpp_text(ThreadAxis value) { return fmt::format("ThreadAxis::{}", name(value)); }

std::string cpp_text(const std::vector<std::string>& value) {
  std::vector<std::string> parts;
  for (const std::string& v : value) parts.push_back(cpp_text(v));
  return "{" + join(parts) + "}";
}

std::string cpp_text(const std::vector<int64_t>& value) {
  return fmt::format("{{{}}}", fmt::join(value, ", "));
}

std::string cpp_text(const std::vector<LayoutDim>& value) {
  std::vector<std::string> parts;
  for (const LayoutDim& d : value)
    parts.push_back(fmt::format("{{{}, {}, {}}}", d.dim, d.divide, d.modulo));
  return "{" + join(parts) + "}";
}

std::string cpp_text(const IntrinsicRef& value) {
  if (!value.defined()) return "{}";
  const std::string json = to_json(*value);
  if (json[0] == '"') return cpp_text(value->name);
  return fmt::format("intrinsic_from_json(R\"json({})json\")", json);
}

}  // namespace tenon
