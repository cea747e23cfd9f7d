#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <tuple>

namespace tenon {

/// Why a primitive is not legal here, in words. Primitives throw it from apply(); check() returns
/// it.
struct Refusal {
  std::string rule;  // what rule, with the values: "loop "j.i" has extent 6; vectorize needs ..."
  std::string hint;  // what to try; may be empty
  std::string loop;  // full name "stage:loop" of the loop to mark in the printed tree; may be empty
  std::string missing;  // full name of the loop, or the stage, that does not exist; may be empty
  std::string id;       // short name of the rule: "fuse_adjacent"
};

/// What guards the iterations that a step adds or leaves over.
/// exact: nothing may be left; guard: a condition on the stages; mask: lanes that are off
/// (vectorize); shift_inward: the last tile moves back until it ends with the loop; pad: the
/// temporaries written are rounded up (both split).
enum class Tail : uint8_t { exact, guard, mask, shift_inward, pad };

/// What a loop is bound to: an axis of a GPU's grid of blocks or of a block's threads.
enum class ThreadAxis : uint8_t { block_x, block_y, block_z, thread_x, thread_y, thread_z };

/// One entry of a primitive's field list. Options come last and are left out of printed C++ at
/// their default.
template <class P, class T>
struct Field {
  std::string_view name;
  T P::*member;
  std::string_view doc;
  bool option;
};

template <class P, class T>
constexpr Field<P, T> field(std::string_view name, T P::*member, std::string_view doc) {
  return {name, member, doc, false};
}
template <class P, class T>
constexpr Field<P, T> option(std::string_view name, T P::*member, std::string_view doc) {
  return {name, member, doc, true};
}

/// f(field) for each entry of P's list, in order.
template <class P, class F>
constexpr void for_each_field(F&& f) {
  std::apply([&](const auto&... entries) { (f(entries), ...); }, P::fields());
}

/// A struct that carries a field list: a primitive.
template <class P>
concept HasFields = requires {
  P::fields();
};

template <HasFields P>
bool operator==(const P& a, const P& b) {
  bool equal = true;
  for_each_field<P>([&](const auto& f) { equal = equal && a.*f.member == b.*f.member; });
  return equal;
}

}  // namespace tenon
