#pragma once
#include <tenon/ir/program.h>

#include <map>

namespace tenon {

/// The program for one call: every symbolic extent replaced by its number.
///   symbol n; for i in 0..n: y[i] = x[i]   ->   for i in 0..5: y[i] = x[i]        (n = 5)
/// UserError for a symbol without a value or with one outside of its range.
Program bind_symbols(const Program& program, const std::map<std::string, int64_t>& sizes);

}  // namespace tenon
