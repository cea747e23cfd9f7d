#pragma once
#include <memory>
#include <optional>

#include "interp/interp.h"

namespace tenon {

struct PointOptions {
  int64_t max_steps = 1000000;               ///< statements that all calls of at() together may run
  std::map<std::string, int64_t> dims = {};  ///< values of the symbols, as InterpOptions has them
};

/// Elements of an unscheduled program's outputs, one by one, in the interpreter's arithmetic: what
/// an element needs of other stages is evaluated on demand and remembered. So a few elements of a
/// large operator cost little:
///
///     C[i,j] = sum(k) A[i,k] * B[k,j]        at(C, 0): k steps, not i * j * k
class PointOracle {
 public:
  /// `args`: memory of the inputs, one a parameter; that of outputs is not looked at.
  PointOracle(const Program& unscheduled, std::span<const HostBuffer> args,
              const PointOptions& options = {});
  ~PointOracle();

  /// Element number `element` (row-major) of the output that is parameter `parameter`, as a double.
  /// Nothing when that takes more steps than are left, or for a buffer that several stages write
  /// or whose elements are not each written for themselves (a scatter).
  std::optional<double> at(size_t parameter, int64_t element);

  int64_t steps() const;  ///< run so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
