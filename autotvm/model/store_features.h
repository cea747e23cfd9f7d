#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <map>
#include <string>
#include <vector>

namespace tenon {

/// Numbers of a lowered program: of the two stores that take most vector instructions the
/// arithmetic by kind, the loops round them by mark, what they touch of the four buffers they touch
/// most, and the arithmetic per byte of each cache. Sizes as log2(1 + x); those of
/// buffers per execution of the store, so that they carry over to operators of other sizes.
/// Symbolic extents count at `sizes` by name. Values in the order of store_feature_names(); 0 where
/// there is no such store or buffer.
std::vector<float> store_features(const Program& flat, const Target& target,
                                  const std::map<std::string, int64_t>& sizes = {});

/// "first.adds", .., "second.buffer3.lines", .., "stores".
const std::vector<std::string>& store_feature_names();

}  // namespace tenon
