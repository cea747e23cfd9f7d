#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <set>

#include "ir/loads.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

class RegisterRules {
 public:
  explicit RegisterRules(const Program& program)
      : name_(program.name), simplifier_(simplifier_for(program.body)) {}

  void stmt(const Stmt& s) {
    if (const For* n = s.as<For>()) return loop(*n, s);
    if (const Allocate* n = s.as<Allocate>()) inside_[n->buffer] = parallel_;
    const Store* store = s.as<Store>();
    if (store) {
      into_ = store->buffer;
      access(store->buffer, store->indices[0], "written");
    }
    children(s);
    if (store) into_ = Buffer();
  }

 private:
  // A loop of one iteration is none; a parallel loop inside a parallel one is serial.
  void loop(const For& n, const Stmt& s) {
    const auto extent = as_int(n.extent);
    if (extent && *extent <= 0) return;
    const bool known = extent && (*extent == 1 || n.mark == LoopMark::unroll);
    const bool threads = n.mark == LoopMark::parallel && !parallel_ && !(extent && *extent == 1);
    if (known) known_.insert(n.var.get());
    if (threads) parallel_ = &n;
    children(s);
    if (threads) parallel_ = nullptr;
    if (known) known_.erase(n.var.get());
  }

  void children(const Stmt& s) {
    map_children(
        s,
        [&](const Stmt& c) {
          if (c.defined()) stmt(c);
          return c;
        },
        [&](const Expr& e) {
          loads(e);
          return e;
        });
  }

  void loads(const Expr& e) {
    if (!e.defined()) return;
    walk(e, [&](const Expr& x) {
      if (const Load* n = x.as<Load>()) access(n->buffer, n->indices[0], "read");
      return true;
    });
  }

  void access(const Buffer& b, const Expr& index, std::string_view verb) {
    if (b->scope != Scope::reg) return;
    if (parallel_ && inside_[b] != parallel_) {
      refuse(b, index, verb,
             fmt::format("inside parallel loop \"{}\" and allocated outside it; threads share no "
                         "registers",
                         parallel_->var.name()),
             "allocate it inside that loop (compute_at)");
    }
    const int lanes = index.lanes(), before = lanes_.emplace(b, lanes).first->second;
    if (lanes != before) {
      throw UserError(fmt::format(
          "lower error in {}: register buffer {} is accessed by {} and by {} elements at a time; "
          "registers hold whole vectors\n  try: vectorize the same axis, by the same width, in "
          "every stage that uses it, or global scope",
          name_, b->name, before, lanes));
    }
    Expr first = index;
    if (lanes > 1) {
      const Ramp* r = index.as<Ramp>();
      if (!r || !is_const(r->stride, 1)) {
        refuse(b, index, verb, "whose lanes are no neighbours; registers hold whole vectors",
               "vectorize an axis that runs along its last dimension");
      }
      first = r->base;
    }
    check_known(b, index, first, verb);
    const Affine form = simplifier_.affine(first), within = simplifier_.modulo(form, lanes);
    if (form.overflow || !within.is_constant() || within.constant != 0) {
      refuse(b, index, verb, fmt::format("which does not start at a multiple of {}", lanes),
             "the same split of the vectorised axis in every stage that uses it");
    }
  }

  // Registers have no addresses: the element is known once the unrolled loops are.
  void check_known(const Buffer& b, const Expr& index, const Expr& first, std::string_view verb) {
    if (has_load(first)) {
      refuse(b, index, verb, "an element that data decides; registers have no addresses",
             "a gather from memory");
    }
    for (const Var& v : free_vars(first)) {
      if (known_.count(v.get())) continue;
      refuse(b, index, verb,
             fmt::format("and \"{}\" is no unrolled loop; registers have no addresses", v.name()),
             fmt::format("unroll \"{}\", move the buffer inside it", v.name()));
    }
  }

  [[noreturn]] void refuse(const Buffer& b, const Expr& index, std::string_view verb,
                           const std::string& why, const std::string& advice) const {
    const std::string where =
        into_.defined() && !(into_ == b) ? fmt::format(" for {}", into_->name) : "";
    throw UserError(
        fmt::format("lower error in {}: register buffer {} is {} at [{}]{}, {}\n  try: {}, or "
                    "global scope",
                    name_, b->name, verb, print(index), where, why, advice));
  }

  std::string name_;
  Simplifier simplifier_;
  std::set<const VarNode*> known_;  // the unrolled loops around; asked for membership only
  std::unordered_map<Buffer, int, BufferHash> lanes_;
  const For* parallel_ = nullptr;                              // the one around
  std::unordered_map<Buffer, const For*, BufferHash> inside_;  // the parallel loop round Allocates
  Buffer into_;  // what the statement at hand stores to
};

}  // namespace

void check_registers(const Program& program) {
  if (program.body.defined()) RegisterRules(program).stmt(program.body);
}

}  // namespace tenon
