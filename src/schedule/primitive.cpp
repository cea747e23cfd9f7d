#include <tenon/ir/ops.h>
#include <tenon/schedule/step_cache.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>
#include <tenon/support/text.h>

#include "schedule/field_text.h"
#include "schedule/kernel_rules.h"
#include "schedule/legality.h"
#include "schedule/mark.h"
#include "schedule/tensorize.h"

namespace tenon {
namespace {

bool is_stage(std::string_view field_name) { return field_name == "stage"; }

/// Does the field differ from what a fresh P has?
template <class P, class F>
bool stands_out(const P& p, const F& f) {
  return !f.option || !(p.*f.member == P{}.*f.member);
}

template <class P>
std::string text_of(const P& p) {
  std::vector<std::string> parts;
  for_each_field<P>([&](const auto& f) {
    if (!stands_out(p, f)) return;
    const std::string value = is_stage(f.name) ? plain_text(p.*f.member) : short_text(p.*f.member);
    parts.push_back(f.option ? fmt::format("{{.{} = {}}}", f.name, value) : value);
  });
  return fmt::format("{}({})", P::kName, join(parts));
}

template <class P>
std::string cpp_of(const P& p) {
  std::string subject = "s";
  std::vector<std::string> args, options;
  for_each_field<P>([&](const auto& f) {
    if (is_stage(f.name)) {
      subject = fmt::format("s[{}]", cpp_text(p.*f.member));
    } else if (!f.option) {
      args.push_back(cpp_text(p.*f.member));
    } else if (stands_out(p, f)) {
      options.push_back(fmt::format(".{} = {}", f.name, cpp_text(p.*f.member)));
    }
  });
  if (!options.empty()) args.push_back("{" + join(options) + "}");
  return fmt::format("{}.{}({});", subject, P::kName, join(args));
}

template <class P>
std::string markdown_of() {
  std::string out = fmt::format("## {}\n\n", P::kName);
  P example;
  std::string fields;
  for_each_field<P>([&](const auto& f) {
    fields +=
        fmt::format("| `{}` | {} | {}{} |\n", f.name, type_text(example.*f.member), f.doc,
                    f.option ? fmt::format(" (default `{}`)", cpp_text(example.*f.member)) : "");
  });
  out += fmt::format("{}\n\n```\n{}\n```\n\nbecomes\n\n```\n{}\n```\n\n", P::kRule, P::kBefore,
                     P::kAfter);
  return out + "| field | type | meaning |\n|---|---|---|\n" + fields;
}

uint64_t hash_of(int64_t value) { return static_cast<uint64_t>(value); }
uint64_t hash_of(const std::string& value) { return hash_text(value); }
uint64_t hash_of(const IntrinsicRef& value) { return hash_text(short_text(value)); }
uint64_t hash_of(const LayoutDim& value) {
  return hash_combine(hash_combine(hash_of(value.dim), hash_of(value.divide)),
                      hash_of(value.modulo));
}
template <class T>
requires std::is_enum_v<T> uint64_t hash_of(T value) { return static_cast<uint64_t>(value); }
template <class T>
uint64_t hash_of(const std::vector<T>& value) {
  uint64_t out = value.size();
  for (const T& part : value) out = hash_combine(out, hash_of(part));
  return out;
}

/// f(P{}) for each alternative of the variant.
template <class F, size_t... N>
void for_each_primitive(F&& f, std::index_sequence<N...>) {
  (f(std::variant_alternative_t<N, Primitive>{}), ...);
}
template <class F>
void for_each_primitive(F&& f) {
  for_each_primitive(f, std::make_index_sequence<std::variant_size_v<Primitive>>());
}

}  // namespace

std::optional<Refusal> check(const Program& program, const Target& target,
                             const Primitive& primitive) {
  try {
    apply(program, target, primitive);
    return std::nullopt;
  } catch (const Refusal& refusal) {
    return refusal;
  }
}

ScheduleState next_state(const ScheduleState& before, const Target& target, const Primitive& step) {
  ScheduleState out;
  out.program = std::visit([&](const auto& p) { return p.apply(before.program, target); }, step);
  out.paths = stage_paths(out.program.body);
  check_double_buffers(out.paths);
  check_copies(out.paths);
  try {
    check_tensorized(out.program, out.paths, target);
  } catch (const Refusal& broken) {
    if (std::holds_alternative<Tensorize>(step)) throw;
    refuse(Rule::tensorize_kept,
           "the step would change a tensorized nest; afterwards " + broken.rule,
           "tensorize after this step");
  }
  if (target.is_gpu()) check_kernels(out.program, target);
  return out;
}

Program apply(const Program& program, const Target& target, const Primitive& primitive) {
  return next_state({program, {}, 0}, target, primitive).program;
}

std::string_view primitive_name(const Primitive& primitive) {
  return std::visit([](const auto& p) { return std::decay_t<decltype(p)>::kName; }, primitive);
}

std::string to_text(const Primitive& primitive) {
  return std::visit([](const auto& p) { return text_of(p); }, primitive);
}

std::string to_cpp(const Primitive& primitive) {
  return std::visit([](const auto& p) { return cpp_of(p); }, primitive);
}

std::string to_cpp(const Trace& trace) {
  std::string out;
  for (const Primitive& p : trace) out += to_cpp(p) + "\n";
  return out;
}

uint64_t hash(const Primitive& primitive) {
  return std::visit(
      [&](const auto& p) {
        uint64_t out = hash_text(p.kName);
        for_each_field<std::decay_t<decltype(p)>>(
            [&](const auto& f) { out = hash_combine(out, hash_of(p.*f.member)); });
        return out;
      },
      primitive);
}

std::vector<std::string> primitive_names() {
  std::vector<std::string> out;
  for_each_primitive([&](auto p) { out.emplace_back(decltype(p)::kName); });
  return out;
}

std::string primitives_markdown() {
  std::string out =
      "# Schedule primitives\n\n"
      "Generated from the field lists in `include/tenon/schedule/`; `TENON_UPDATE_GOLDEN=1` on the "
      "golden tests\n"
      "rewrites it. A step names loops as `stage:loop`; split gives `x.o` and `x.i`, fuse gives "
      "`a_b`.\n";
  for_each_primitive([&](auto p) { out += "\n" + markdown_of<decltype(p)>(); });
  return out;
}

}  // namespace tenon
