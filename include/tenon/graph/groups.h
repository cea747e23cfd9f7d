#pragma once
#include <tenon/graph/graph.h>
#include <tenon/te/te.h>

#include <string>
#include <vector>

namespace tenon {

/// Nodes of a canonical graph that become one kernel: an anchor, what is fused in front of it and
/// behind it.
struct Group {
  std::vector<int> nodes;  // ascending
  int anchor = 0;          // the node whose loops the others join
  std::vector<ValueId>
      inputs;  // read from outside of the group, in order of first use, constants included
  ValueId output = kAbsent;  // the one value that is read outside
};

struct GroupOptions {
  bool fuse = true;  // off: one group per node
};

/// group_nodes
///   c = Conv(x, w); a = Add(c, b); r = Relu(a); p = MaxPool(r)   ->   {c, a, r} anchor c, {p}
///   anchor p
/// Every node but views (whose output is their input's memory) is in exactly one group; groups come
/// in an order in which each follows those it reads. Behind an anchor go pointwise nodes of its
/// shape, as far as all paths from it meet again in one of them (post-dominators), so that a group
/// has one output and no cycle can arise; in front of pointwise and single-pass reducing anchors go
/// pointwise nodes and movers that can be read in place and that nothing else reads.
std::vector<Group> group_nodes(const Graph& graph, const GroupOptions& options = {});

/// A group as an unscheduled program. Equal groups give equal text: parameters and stages are named
/// by kind and ordinal
/// ("x0", "w1", "conv", "epilogue"), not by the model.
struct GroupFormula {
  std::string name;  // the anchor's kind: "conv", "map"
  Program program;
  std::vector<ValueId>
      arguments;     // one per parameter of the program: the group's inputs, then its output
  double flops = 0;  // floating-point operations of one run; an FMA counts 2
};
/// Constants of one element that pointwise nodes read become literals and are no parameters.
GroupFormula group_formula(const Graph& graph, const Group& group);

/// Floating-point operations of an unscheduled program: at each point of a stage every operation
/// counts 1, and so does combining a reduction's element, so that a multiply-add counts 2.
double count_flops(const Program& program);

}  // namespace tenon
