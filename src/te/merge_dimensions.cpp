#include <tenon/ir/visit.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <map>
#include <set>

#include "te/nest.h"

namespace tenon {
namespace {

/// A pair of neighbours: dimensions d, d+1 of a buffer (stage -1) or axes d, d+1 of a stage.
struct Pair {
  int stage = -1;
  const BufferNode* buffer = nullptr;
  size_t first = 0;

  bool overlaps(const Pair& o) const {
    return stage == o.stage && buffer == o.buffer && (first == o.first + 1 || o.first == first + 1);
  }
};

/// Stages and buffers by number, so that nothing is ordered by address.
struct Nodes {
  std::vector<Pair> pairs;
  std::vector<bool> alive;
  std::vector<std::vector<int>> links;  // pairs that are joined together or not at all

  int find(int stage, const BufferNode* buffer, size_t first) const {
    for (size_t n = 0; n < pairs.size(); ++n)
      if (pairs[n].stage == stage && pairs[n].buffer == buffer && pairs[n].first == first)
        return static_cast<int>(n);
    return -1;
  }
  void add(const Pair& p) {
    pairs.push_back(p);
    alive.push_back(true);
    links.emplace_back();
  }
  void link(int a, int b) {
    links[static_cast<size_t>(a)].push_back(b);
    links[static_cast<size_t>(b)].push_back(a);
  }
  void kill(int n) {
    if (n < 0 || !alive[static_cast<size_t>(n)]) return;
    alive[static_cast<size_t>(n)] = false;
    for (int other : links[static_cast<size_t>(n)]) kill(other);
  }
  void group(int n, std::set<int>& members) const {
    if (!members.insert(n).second) return;
    for (int other : links[static_cast<size_t>(n)]) group(other, members);
  }
};

bool is_var(const Expr& e, const Var& v) {
  const VarRef* r = e.as<VarRef>();
  return r && r->var.same_as(v);
}

int axis_of(const Stage& s, const Expr& index) {
  for (size_t n = 0; n < s.axes.size(); ++n)
    if (is_var(index, s.axes[n].axis.var)) return static_cast<int>(n);
  return -1;
}

class Merger {
 public:
  explicit Merger(const Program& program) : program_(program) {
    for (const StagePath& path : stage_paths(program.body)) stages_.push_back(*path.stage);
    for (const Param& p : program.params) add_buffer(p.buffer);
    for (const Stage& s : stages_)
      for (const Buffer& b : s.outputs) add_buffer(b);
    for (size_t n = 0; n < stages_.size(); ++n) add_stage(static_cast<int>(n));
    for (size_t n = 0; n < stages_.size(); ++n) look_at(static_cast<int>(n));
  }

  /// The program with one group of pairs joined; nothing when there is none.
  std::optional<Program> step() {
    for (size_t n = 0; n < nodes_.pairs.size(); ++n) {
      if (!nodes_.alive[n] || nodes_.pairs[n].stage < 0) continue;
      std::set<int> members;
      nodes_.group(static_cast<int>(n), members);
      if (!overlapping(members)) return joined(members);
    }
    return std::nullopt;
  }

 private:
  void add_buffer(const Buffer& b) {
    if (std::find(buffers_.begin(), buffers_.end(), b) != buffers_.end()) return;
    buffers_.push_back(b);
    for (size_t d = 0; d + 1 < b->shape.size(); ++d)
      if (as_int(b->shape[d]) && as_int(b->shape[d + 1])) nodes_.add({-1, b.get(), d});
  }

  void add_stage(int n) {
    const Stage& s = stages_[static_cast<size_t>(n)];
    for (size_t a = 0; a + 1 < s.axes.size(); ++a)
      if (s.axes[a].kind == s.axes[a + 1].kind && as_int(s.axes[a].axis.extent) &&
          as_int(s.axes[a + 1].axis.extent))
        nodes_.add({n, nullptr, a});
  }

  /// Every pair of axes that an access keeps together is linked to the dimensions; what is used
  /// otherwise dies.
  void look_at(int n) {
    const Stage& s = stages_[static_cast<size_t>(n)];
    for (const Buffer& b : s.outputs) access(n, b, s.indices);
    auto visit = [&](const Expr& root) {
      walk(root, [&](const Expr& e) {
        if (auto* l = e.as<Load>()) {
          access(n, l->buffer, l->indices);
          if (l->mask.defined()) lone(n, l->mask);
          return false;
        }
        if (auto* v = e.as<VarRef>()) lone(n, v->var);
        return true;
      });
    };
    for (const Expr& e : s.values) visit(e);
    for (const Expr& e : s.init) visit(e);
  }

  /// The expression uses axes outside of any pair.
  void lone(int n, const Expr& e) {
    for (const Var& v : free_vars(e)) lone(n, v);
    walk(e, [&](const Expr& x) {
      if (auto* l = x.as<Load>()) access(n, l->buffer, l->indices);
      return true;
    });
  }
  void lone(int n, const Var& v) {
    const int a = axis_of(stages_[static_cast<size_t>(n)], v);
    if (a < 0) return;
    nodes_.kill(nodes_.find(n, nullptr, static_cast<size_t>(a)));
    if (a > 0) nodes_.kill(nodes_.find(n, nullptr, static_cast<size_t>(a - 1)));
  }

  void access(int n, const Buffer& b, const std::vector<Expr>& at) {
    const Stage& s = stages_[static_cast<size_t>(n)];
    for (size_t d = 0; d < at.size(); ++d) {
      const int a = axis_of(s, at[d]);
      if (a < 0) {
        lone(n, at[d]);
      } else {
        // An axis may be the first of a pair only when the next one follows, the second only after
        // the other.
        if (d + 1 >= at.size() || axis_of(s, at[d + 1]) != a + 1)
          nodes_.kill(nodes_.find(n, nullptr, static_cast<size_t>(a)));
        if (a > 0 && (d == 0 || axis_of(s, at[d - 1]) != a - 1))
          nodes_.kill(nodes_.find(n, nullptr, static_cast<size_t>(a - 1)));
      }
      if (d + 1 >= at.size()) continue;
      const int dims = nodes_.find(-1, b.get(), d);
      const int axes = a < 0 ? -1 : nodes_.find(n, nullptr, static_cast<size_t>(a));
      const bool together =
          axes >= 0 && axis_of(s, at[d + 1]) == a + 1 &&
          as_int(s.axes[static_cast<size_t>(a) + 1].axis.extent) == as_int(b->shape[d + 1]);
      const bool unit = is_const(at[d], 0) && is_const(at[d + 1], 0) && is_const(b->shape[d], 1) &&
                        is_const(b->shape[d + 1], 1);
      if (together && dims >= 0) {
        nodes_.link(dims, axes);
        if (!nodes_.alive[static_cast<size_t>(dims)] || !nodes_.alive[static_cast<size_t>(axes)]) {
          nodes_.kill(dims);
          nodes_.kill(axes);
        }
      } else if (!unit) {
        nodes_.kill(dims);
        nodes_.kill(axes);
      }
    }
  }

  bool overlapping(const std::set<int>& members) const {
    for (int a : members)
      for (int b : members)
        if (nodes_.pairs[static_cast<size_t>(a)].overlaps(nodes_.pairs[static_cast<size_t>(b)]))
          return true;
    return false;
  }

  Program joined(const std::set<int>& members) const {
    std::map<int, std::set<size_t>> axes,
        dims;  // stage or buffer number -> first ones of the pairs
    for (int m : members) {
      const Pair& p = nodes_.pairs[static_cast<size_t>(m)];
      if (p.stage >= 0) axes[p.stage].insert(p.first);
      for (size_t b = 0; b < buffers_.size(); ++b)
        if (p.buffer == buffers_[b].get()) dims[static_cast<int>(b)].insert(p.first);
    }
    std::vector<Buffer> own = buffers_;
    for (const auto& [b, firsts] : dims)
      own[static_cast<size_t>(b)] = narrowed(buffers_[static_cast<size_t>(b)], firsts);
    std::vector<Stmt> nests;
    for (size_t n = 0; n < stages_.size(); ++n) {
      const auto found = axes.find(static_cast<int>(n));
      nests.push_back(nest(rewritten(
          stages_[n], found == axes.end() ? std::set<size_t>{} : found->second, own, dims)));
    }
    Program out;
    out.name = program_.name;
    out.symbols = program_.symbols;
    for (const Param& p : program_.params) out.params.push_back({own[number(p.buffer)], p.role});
    out.body = seq(nests);
    for (size_t n = buffers_.size(); n-- > 0;)
      if (!is_param(buffers_[n])) out.body = make_stmt(Allocate{own[n], out.body});
    return out;
  }

  static Buffer narrowed(const Buffer& b, const std::set<size_t>& firsts) {
    BufferNode node = *b;
    for (auto d = firsts.rbegin(); d != firsts.rend(); ++d) {
      node.shape[*d] = int_imm(*as_int(node.shape[*d]) * *as_int(node.shape[*d + 1]));
      node.shape.erase(node.shape.begin() + static_cast<std::ptrdiff_t>(*d) + 1);
    }
    return Buffer(std::move(node));
  }

  Stage rewritten(Stage s, const std::set<size_t>& firsts, const std::vector<Buffer>& own,
                  const std::map<int, std::set<size_t>>& dims) const {
    VarMap values;  // the first axis of a pair becomes the joined one
    for (auto a = firsts.rbegin(); a != firsts.rend(); ++a) {
      const Axis x = s.axes[*a].axis, y = s.axes[*a + 1].axis;
      const Axis both_axes(x.var.name() + "_" + y.var.name(),
                           *as_int(x.extent) * *as_int(y.extent));
      values.emplace(x.var, both_axes.var);
      s.axes[*a].axis = both_axes;
      s.axes.erase(s.axes.begin() + static_cast<std::ptrdiff_t>(*a) + 1);
    }
    auto indices_for = [&](const Buffer& b, std::vector<Expr> at) {
      const auto found = dims.find(static_cast<int>(number(b)));
      if (found != dims.end())
        for (auto d = found->second.rbegin(); d != found->second.rend(); ++d)
          at.erase(at.begin() + static_cast<std::ptrdiff_t>(*d) + 1);
      return at;
    };
    auto change = [&](const Expr& root) {
      const Expr narrower = rewrite(root, [&](const Expr& e) -> Expr {
        auto* l = e.as<Load>();
        return l ? load(own[number(l->buffer)], indices_for(l->buffer, l->indices), l->mask) : e;
      });
      return substitute(narrower, values);
    };
    for (Expr& e : s.values) e = change(e);
    for (Expr& e : s.init) e = change(e);
    s.indices = indices_for(s.outputs[0], s.indices);
    for (Expr& e : s.indices) e = change(e);
    for (Buffer& b : s.outputs) b = own[number(b)];
    return s;
  }

  size_t number(const Buffer& b) const {
    return static_cast<size_t>(std::find(buffers_.begin(), buffers_.end(), b) - buffers_.begin());
  }
  bool is_param(const Buffer& b) const {
    return std::any_of(program_.params.begin(), program_.params.end(),
                       [&](const Param& p) { return p.buffer == b; });
  }

  const Program& program_;
  std::vector<Stage> stages_;
  std::vector<Buffer> buffers_;  // parameters, then temporaries in program order
  Nodes nodes_;
};

}  // namespace

Program merge_dimensions(const Program& program) {
  Program merged = program;
  while (auto next = Merger(merged).step()) merged = std::move(*next);
  return merged;
}

}  // namespace tenon
