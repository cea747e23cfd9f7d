#pragma once
#include <tenon/ir/program.h>

#include <span>

namespace tenon {

/// Memory of one parameter: row-major, of the parameter's dtype and shape.
struct HostBuffer {
  void* data = nullptr;
};

struct InterpOptions {
  /// Remember per element which iteration of each parallel, vectorised or bound loop last read and
  /// wrote it: two different iterations with one non-atomic write fail, as does reading an element
  /// never written.
  bool race_mode = true;
  /// Values of the program's symbols by name, each within its range; others are ignored.
  std::map<std::string, int64_t> dims;
  /// Stop with an error after so many executed statements (0: never).
  int64_t max_steps = 0;
};

/// Runs `program` (loop tree or flat) on `args`, one per parameter, serially and exactly: the
/// definition of right. Throws InternalError naming the statement, the loop values and the element
/// for: an index out of bounds, a race, a read of an element never written, an integer division by
/// zero where the page of meanings gives no value.
void interpret(const Program& program, std::span<const HostBuffer> args,
               const InterpOptions& options = {});

}  // namespace tenon
