#pragma once
#include <tenon/target/target.h>

#include "autotvm/model/stage_loops.h"
#include "autotvm/model/traffic.h"

namespace tenon {

/// One step of a stage: the body of its innermost loop that is neither unrolled nor vectors. All
/// numbers are of whole steps; loads and stores count vectors, or lanes where each goes alone.
struct Step {
  double vectors = 0;  ///< points, in vectors
  double ops = 0;      ///< vector instructions of arithmetic, multiply-adds as one
  double shuffles = 0;
  double scalars = 0;  ///< instructions beside those on vectors
  double divide_cycles = 0;
  double broadcasts = 0, contiguous = 0, strided = 0, transposed = 0, gathered = 0;  ///< loads
  double split = 0;                  ///< vectors among the loads that lie across two lines
  double stores = 0, scattered = 0;  ///< vectors, twice where across two lines; lanes one by one
  double chain = 0;                  ///< accumulations that wait for each other
  double accumulators = 0;           ///< vectors kept in registers all the while
  double registers = 0;              ///< these and what a step of the reduction needs at once
  double spilled = 0;                ///< registers there are not

  double loads() const { return broadcasts + contiguous + strided + transposed + gathered; }
  double instructions() const {
    return ops + shuffles + scalars + loads() + stores + scattered + 2;
  }
};

/// Cycles of one step: what takes longest of arithmetic (two vector instructions a cycle), loads
/// (two), stores (one), shuffles (one), issue (five instructions) and the latency of accumulators,
/// and what of the loads and stores does not go on beside it.
double cycles_of(const Step& step);

/// A stage's steps. `full` is one of the whole tile; the sums are over all steps of the busiest
/// core, tails counted as the smaller steps that they are.
struct StageWork {
  Step full;
  double steps = 0;         ///< how many, counted in full ones
  double cycles = 0;        ///< of all steps
  double ends = 0;          ///< cycles to start and end the innermost loop
  double init = 0;          ///< cycles to start the accumulators
  double points = 0;        ///< useful points
  double wasted = 0;        ///< share of the vector lanes that do nothing useful
  int lanes = 1;            ///< of its vectors
  double instructions = 0;  ///< arithmetic of all steps, in vector instructions
};
StageWork work_of(const NestTree& tree, const NestStage& stage, const Sharing& sharing,
                  const Target& target);

}  // namespace tenon
