#include "schedule/alternatives.h"

#include <algorithm>

#include "schedule/tree.h"

namespace tenon {
namespace {

constexpr size_t kMostTries = 64, kMostNamed = 8;

/// Tries a step; what is found is named up to a limit.
class Trials {
 public:
  Trials(const Program& program, const Target& target) : program_(program), target_(target) {
    found.asked = true;
  }

  void operator()(const Primitive& step, const std::string& place) {
    if (tries_++ >= kMostTries || found.places.size() >= kMostNamed) return;
    if (!check(program_, target_, step)) found.places.push_back(place);
  }

  Alternatives found;

 private:
  const Program& program_;
  const Target& target_;
  size_t tries_ = 0;
};

/// compute_at and reverse_compute_at: every loop of the tree, those of the stage named first.
template <class Move>
void try_moves(const Program& program, const Move& refused, Trials& trials) {
  std::vector<const For*> seen;
  std::vector<StagePath> paths = stage_paths(program.body);
  std::stable_partition(paths.begin(), paths.end(),
                        [&](const StagePath& p) { return p.stage->name == refused.at_stage; });
  for (const StagePath& path : paths)
    for (size_t n = 0; n < path.loops.size(); ++n) {
      if (path.stage->name == refused.stage || std::count(seen.begin(), seen.end(), path.loops[n]))
        continue;
      seen.push_back(path.loops[n]);
      Move step = refused;
      step.at_stage = path.stage->name;
      step.loop = path.loops[n]->var.name();
      trials(step, full_name(path, n));
    }
}

/// The step at the other loops of its stage; `loop` is the field that names it.
template <class Step>
void try_loops(const Program& program, const Step& refused, std::string Step::*loop,
               Trials& trials) {
  const StagePath path = find_stage(program, refused.stage);
  for (size_t n = 0; n < path.loops.size(); ++n) {
    Step step = refused;
    step.*loop = path.loops[n]->var.name();
    if (step.*loop != refused.*loop) trials(step, full_name(path, n));
  }
}

/// Neighbours that may change places.
void try_neighbours(const Program& program, const Reorder& refused, Trials& trials) {
  const StagePath path = find_stage(program, refused.stage);
  for (size_t n = 0; n + 1 < path.loops.size(); ++n) {
    const std::string outer = path.loops[n]->var.name(), inner = path.loops[n + 1]->var.name();
    trials(Reorder{refused.stage, {inner, outer}},
           fmt::format("{}:{{{}, {}}}", refused.stage, inner, outer));
  }
}

struct TryOthers {
  const Program& program;
  Trials& trials;

  void operator()(const ComputeAt& p) const { try_moves(program, p, trials); }
  void operator()(const ReverseComputeAt& p) const { try_moves(program, p, trials); }
  void operator()(const Parallel& p) const { try_loops(program, p, &Parallel::loop, trials); }
  void operator()(const Vectorize& p) const { try_loops(program, p, &Vectorize::loop, trials); }
  void operator()(const Unroll& p) const { try_loops(program, p, &Unroll::loop, trials); }
  void operator()(const Bind& p) const { try_loops(program, p, &Bind::loop, trials); }
  void operator()(const CacheRead& p) const { try_loops(program, p, &CacheRead::at, trials); }
  void operator()(const CacheWrite& p) const { try_loops(program, p, &CacheWrite::at, trials); }
  void operator()(const RFactor& p) const { try_loops(program, p, &RFactor::loop, trials); }
  void operator()(const DecomposeReduction& p) const {
    try_loops(program, p, &DecomposeReduction::loop, trials);
  }
  void operator()(const Reorder& p) const { try_neighbours(program, p, trials); }
  template <class Other>
  void operator()(const Other&) const {
    trials.found.asked = false;
  }
};

}  // namespace

Alternatives alternatives(const Program& program, const Target& target, const Primitive& refused) {
  Trials trials(program, target);
  std::visit(TryOthers{program, trials}, refused);
  return trials.found;
}

std::string alternatives_text(const Alternatives& found) {
  if (!found.asked) return "";
  if (found.places.empty()) return "  legal at: no loop of the tree as it stands\n";
  return fmt::format("  legal at: {}\n", quoted_list(found.places));
}

}  // namespace tenon
