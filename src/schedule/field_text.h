#pragma once
#include <tenon/ir/intrinsic.h>
#include <tenon/schedule/layout_primitives.h>

#include <string>
#include <vector>

namespace tenon {

// A value of each type that a primitive's field may have, as text. A new field type adds one line
// to each group here and in primitive_json.cpp.

/// As C++ source: "\"k.o\"", "6", "Tail::mask", "{\"i\", \"j\"}", "{{1, 16, 0}, {0, 1, 0}}".
std::string cpp_text(const std::string& value);
std::string cpp_text(int64_t value);
std::string cpp_text(Tail value);
std::string cpp_text(Scope value);
std::string cpp_text(ThreadAxis value);
std::string cpp_text(PackWhen value);
std::string cpp_text(const std::vector<std::string>& value);
std::string cpp_text(const std::vector<int64_t>& value);
std::string cpp_text(const std::vector<LayoutDim>& value);
/// The name of one of intrinsics(), or `intrinsic_from_json(R"json(...)json")`.
std::string cpp_text(const IntrinsicRef& value);

/// Without quotes, for stage names in messages.
inline const std::string& plain_text(const std::string& value) { return value; }
template <class T>
std::string plain_text(const T& value) {
  return cpp_text(value);
}

/// As C++ source, but a declaration by its name alone.
inline std::string short_text(const IntrinsicRef& value) {
  return value.defined() ? cpp_text(value->name) : cpp_text(value);
}
template <class T>
std::string short_text(const T& value) {
  return cpp_text(value);
}

/// The type's name for people.
inline std::string_view type_text(const std::string&) { return "name"; }
inline std::string_view type_text(int64_t) { return "integer"; }
inline std::string_view type_text(Tail) { return "Tail"; }
inline std::string_view type_text(Scope) { return "Scope"; }
inline std::string_view type_text(ThreadAxis) { return "ThreadAxis"; }
inline std::string_view type_text(PackWhen) { return "PackWhen"; }
inline std::string_view type_text(const std::vector<std::string>&) { return "list of names"; }
inline std::string_view type_text(const std::vector<int64_t>&) { return "list of integers"; }
inline std::string_view type_text(const std::vector<LayoutDim>&) { return "list of LayoutDim"; }

inline std::string_view type_text(const IntrinsicRef&) { return "Intrinsic"; }

/// "exact", "guard", "mask", "shift_inward", "pad".
std::string_view name(Tail tail);
/// "block_x", ..., "thread_z": as the mark of a loop bound to it.
std::string_view name(ThreadAxis axis);
LoopMark mark_of(ThreadAxis axis);
/// "run_time", "ahead".
std::string_view name(PackWhen when);

}  // namespace tenon
