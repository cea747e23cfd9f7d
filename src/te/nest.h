#pragma once
#include <tenon/ir/stmt.h>

namespace tenon {

/// The stage under serial loops of its own, one an axis, of the axes' names (made unique); sets the
/// bindings.
///   stage S over axes i, j and reduce axis k   ->   for i: for j: for k: S
Stmt nest(Stage stage);

}  // namespace tenon
