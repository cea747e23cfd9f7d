#pragma once
#include <tenon/ir/stmt.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// Which iterations of concurrent loops (parallel, vectorised) are running, as a tree: each
/// iteration is a node below the iteration that entered its loop. Two accesses may run at the same
/// time if and only if the paths from the root to their nodes part at two different iterations of
/// one entry of a loop.
///
/// Nodes are numbered upwards for ever; those of finished outermost loops are dropped, and their
/// numbers are *past*: everything in them came before everything that follows.
class RaceLog {
 public:
  using NodeId = int64_t;
  static constexpr NodeId kNever = -1;

  void enter(const For& loop);
  void iterate(int64_t iteration);
  void leave();

  NodeId current() const { return current_; }

  /// What is remembered of one element of a buffer in one life of the buffer.
  struct Element {
    uint64_t epoch = 0;
    NodeId write = kNever;     // last write
    bool atomic = false;       // it was an atomic one
    NodeId read = kNever;      // last read
    int64_t readers = kNever;  // entry of a loop in which different iterations read the element
  };

  /// The conflict of an access now with what is remembered, in words; nothing when there is none.
  std::optional<std::string> on_read(Element& e);
  std::optional<std::string> on_write(Element& e, bool atomic);

 private:
  struct Node {
    NodeId parent;
    int64_t entry;
    int64_t iteration;
    int depth;
  };
  struct Running {
    int64_t entry;
    const For* loop;
    NodeId outer;
  };
  struct Parting {  // where two paths part
    int64_t entry, before, now;
  };

  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id - first_)]; }
  std::optional<Parting> parting(NodeId before) const;
  const Running* running(int64_t entry) const;
  std::string describe(const Parting& p, std::string_view before, std::string_view now) const;

  NodeId first_ = 0, current_ = 0;
  std::vector<Node> nodes_{{kNever, kNever, 0, 0}};
  std::vector<Running> running_;
  int64_t entries_ = 0;
};

}  // namespace tenon
