#pragma once
#include <tenon/ir/stmt.h>

namespace tenon {

/// A loop's body: the buffers that it allocates for all of itself, then its parts in order.
struct LoopBody {
  std::vector<Buffer> allocated;
  std::vector<Stmt> parts;

  explicit LoopBody(Stmt s) {
    for (const Allocate* a = s.as<Allocate>(); a; a = s.as<Allocate>()) {
      allocated.push_back(a->buffer);
      s = Stmt(a->body);
    }
    if (const Seq* sequence = s.as<Seq>())
      parts = sequence->stmts;
    else
      parts = {s};
  }
  Stmt stmt() const {
    Stmt out = seq(parts);
    for (size_t k = allocated.size(); k-- > 0;) out = make_stmt(Allocate{allocated[k], out});
    return out;
  }
};

}  // namespace tenon
