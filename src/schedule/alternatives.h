#pragma once
#include <tenon/schedule/primitive.h>

namespace tenon {

/// For a step that names a place: where else it would be legal, found by trying. Loops have their
/// full names ("C:i.o"); for a reorder they are the loops that may change places.
struct Alternatives {
  bool asked = false;  // false: the step names no place
  std::vector<std::string> places;
};
Alternatives alternatives(const Program& program, const Target& target, const Primitive& refused);

/// `  legal at: "C:i.o", "C:i.i"`, or that there is none; empty for a step that names no place.
std::string alternatives_text(const Alternatives& found);

}  // namespace tenon
