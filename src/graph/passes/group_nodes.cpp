#include <tenon/graph/groups.h>

#include <algorithm>
#include <set>

#include "graph/onnx/operators.h"
#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

constexpr int kNoGroup = -1;
constexpr size_t kMostNodes = 32;  // keeps one kernel's expressions readable and quick to compile

/// Immediate post-dominator of each node: the first node that all paths from it to the graph's
/// outputs share; `exit` when there is none.
class PostDominators {
 public:
  explicit PostDominators(const Graph& graph, const std::vector<std::vector<int>>& readers)
      : exit_(static_cast<int>(graph.nodes.size())),
        next_(graph.nodes.size(), exit_),
        depth_(graph.nodes.size() + 1, 0) {
    for (int i = exit_ - 1; i >= 0; --i) {
      const ValueId out = graph.nodes[at(i)].outputs[0];
      int meet = is_graph_output(graph, out) ? exit_ : kNone;
      for (int reader : readers[at(out)]) meet = meet == kNone ? reader : common(meet, reader);
      next_[at(i)] = meet == kNone ? exit_ : meet;
      depth_[at(i)] = depth_[at(next_[at(i)])] + 1;
    }
  }

  bool ends(int node) const { return next_[at(node)] == exit_; }
  int next(int node) const { return next_[at(node)]; }

 private:
  static constexpr int kNone = -1;
  static size_t at(int i) { return static_cast<size_t>(i); }

  int common(int a, int b) const {
    while (a != b) {
      int& deeper = depth_[at(a)] > depth_[at(b)] ? a : b;
      deeper = next_[at(deeper)];
    }
    return a;
  }

  int exit_;
  std::vector<int> next_;
  std::vector<int> depth_;
};

class Grouper {
 public:
  explicit Grouper(const Graph& graph)
      : graph_(graph),
        readers_(consumers(graph)),
        producer_(producers(graph)),
        post_(graph, readers_),
        group_of_(graph.nodes.size(), kNoGroup) {}

  std::vector<Group> fuse() {
    const int n = static_cast<int>(graph_.nodes.size());
    for (OperatorKind kind : {OperatorKind::linear, OperatorKind::reduction})
      for (int i = n - 1; i >= 0; --i)
        if (kind_of(i) == kind && free(i)) start(i);
    for (int i = n - 1; i >= 0; --i)
      if (kind_of(i) == OperatorKind::pointwise && free(i)) start(i);
    return finish();
  }

  std::vector<Group> finish() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (free(static_cast<int>(i)) && kind_of(static_cast<int>(i)) != OperatorKind::view)
        open(static_cast<int>(i));
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (group_of_[i] != kNoGroup) groups_[at(group_of_[i])].nodes.push_back(static_cast<int>(i));
    for (Group& group : groups_) describe(group);
    // By position of the output: a group reads only outputs of groups, and those stand ahead of its
    // own.
    std::sort(groups_.begin(), groups_.end(),
              [](const Group& a, const Group& b) { return a.nodes.back() < b.nodes.back(); });
    return std::move(groups_);
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }
  const Node& node(int i) const { return graph_.nodes[at(i)]; }
  OperatorKind kind_of(int i) const { return operator_of(node(i)).kind; }
  bool free(int i) const { return group_of_[at(i)] == kNoGroup; }
  std::vector<int64_t> shape_of(int i) const { return graph_.value(node(i).outputs[0]).shape(); }

  int open(int anchor) {
    const int id = static_cast<int>(groups_.size());
    groups_.push_back({{}, anchor, {}, kAbsent});
    group_of_[at(anchor)] = id;
    size_ = 1;
    return id;
  }

  void start(int anchor) {
    const int id = open(anchor);
    if (kind_of(anchor) != OperatorKind::pointwise) extend_behind(id, anchor);
    if (kind_of(anchor) == OperatorKind::pointwise || operator_of(node(anchor)).single_pass)
      extend_before(id, anchor);
  }

  /// Takes the region between `anchor` and its post-dominator as long as it is pointwise and of the
  /// anchor's shape.
  void extend_behind(int id, int anchor) {
    const std::vector<int64_t> shape = shape_of(anchor);
    for (int last = anchor; !post_.ends(last); last = post_.next(last)) {
      std::set<int> region;
      if (!collect(last, post_.next(last), shape, region) || size_ + region.size() > kMostNodes)
        return;
      for (int i : region) group_of_[at(i)] = id;
      size_ += region.size();
    }
  }

  /// All nodes on paths from `from` (exclusive) to `to`; false when one of them cannot join.
  bool collect(int from, int to, const std::vector<int64_t>& shape, std::set<int>& region) const {
    std::vector<int> open{from};
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (i == to) continue;
      for (int reader : readers_[at(node(i).outputs[0])]) {
        if (kind_of(reader) != OperatorKind::pointwise || !free(reader) ||
            shape_of(reader) != shape)
          return false;
        if (region.insert(reader).second) open.push_back(reader);
      }
    }
    return true;
  }

  /// Takes producers whose only readers are in the group, towards the inputs.
  void extend_before(int id, int last) {
    const std::vector<int64_t> shape = kind_of(last) == OperatorKind::pointwise
                                           ? shape_of(last)
                                           : graph_.value(node(last).inputs[0]).shape();
    for (int i = last; i >= 0; --i) {
      if (group_of_[at(i)] != id) continue;
      for (ValueId input : node(i).inputs) {
        const int p = input == kAbsent ? -1 : producer_[at(input)];
        if (p >= 0 && size_ < kMostNodes && can_precede(id, p, shape)) {
          group_of_[at(p)] = id;
          ++size_;
        }
      }
    }
  }

  bool can_precede(int id, int p, const std::vector<int64_t>& shape) const {
    if (!free(p) || is_graph_output(graph_, node(p).outputs[0])) return false;
    const Operator& row = operator_of(node(p));
    const bool pointwise = row.kind == OperatorKind::pointwise && shape_of(p) == shape;
    if (!pointwise && !row.in_place) return false;
    const std::vector<int>& list = readers_[at(node(p).outputs[0])];
    return std::all_of(list.begin(), list.end(),
                       [&](int reader) { return group_of_[at(reader)] == id; });
  }

  void describe(Group& group) const {
    std::set<ValueId> made;
    for (int i : group.nodes) made.insert(node(i).outputs[0]);
    group.output = node(group.nodes.back()).outputs[0];
    for (int i : group.nodes)
      for (ValueId id : node(i).inputs)
        if (id != kAbsent && !made.count(id) &&
            std::find(group.inputs.begin(), group.inputs.end(), id) == group.inputs.end())
          group.inputs.push_back(id);
  }

  const Graph& graph_;
  const std::vector<std::vector<int>> readers_;
  const std::vector<int> producer_;
  const PostDominators post_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
  size_t size_ = 0;  // nodes in the group being built
};

}  // namespace

std::vector<Group> group_nodes(const Graph& graph, const GroupOptions& options) {
  Grouper grouper(graph);
  return options.fuse ? grouper.fuse() : grouper.finish();
}

}  // namespace tenon
