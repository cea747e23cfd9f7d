#include <tenon/ir/notes.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>

#include "lower/passes.h"
#include "lower/touched.h"
#include "lower/util.h"

namespace tenon {
namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kMaxUnrolledLines = 16;
constexpr int64_t kMaxLines = 256;

bool allocates(const Stmt& body, const std::string& name) {
  bool found = false;
  walk(
      body,
      [&](const Stmt& s) {
        const Allocate* a = s.as<Allocate>();
        found = found || (a && a->buffer->name == name);
        return !found;
      },
      nullptr);
  return found;
}

// The buffer of that name that the body touches; names are unique in a program. None where a later
// step has moved it into the loop: another iteration's does not exist yet.
Buffer touched_buffer(const Stmt& body, const std::string& name) {
  Buffer found;
  if (allocates(body, name)) return found;
  for_each_access(body, [&](const Buffer& b, const std::vector<Expr>&) {
    if (b->name == name) found = b;
  });
  return found;
}

// Where a dimension's box starts and how far it goes.
struct Stretch {
  Expr start;
  int64_t extent = 0;
};

std::optional<std::vector<Stretch>> box_of(const Buffer& b, const Stmt& body,
                                           Simplifier& simplifier) {
  const BufferUse use = touched(b, body, simplifier);
  std::vector<Stretch> out;
  for (size_t d = 0; d < use.sides.size(); ++d) {
    const auto& side = use.sides[d];
    const Expr start = side ? to_expr(side->base + Affine::of(side->low)) : Expr();
    const auto whole = as_int(b->shape[d]);
    const bool inside = start.defined() && (!whole || side->high - side->low < *whole);
    if (inside && !has_load(start)) {
      out.push_back({start, side->high - side->low + 1});
      continue;
    }
    // An index that data decides is not known ahead: its own data may end before.
    if (!whole) return std::nullopt;
    out.push_back({int_imm(0), *whole});
  }
  return out;
}

class PrefetchIssuer {
 public:
  explicit PrefetchIssuer(const Stmt& body) : simplifier_(simplifier_for(body)) {}

  Stmt operator()(const Stmt& s) {
    const For* n = s.as<For>();
    if (!n) return s;
    For out = *n;
    std::vector<Stmt> fetches;
    for (const std::string& name : noted_buffers(n->notes, "prefetch")) {
      const int64_t distance = n->notes.at(prefetch_note(name));
      out.notes.erase(prefetch_note(name));
      fetches.push_back(fetch(touched_buffer(n->body, name), *n, distance));
    }
    if (fetches.empty()) return s;
    out.body = at_top(n->body, seq(std::move(fetches)));
    return make_stmt(std::move(out));
  }

 private:
  static Stmt at_top(const Stmt& body, const Stmt& fetches) {
    if (const Allocate* a = body.as<Allocate>())
      return make_stmt(Allocate{a->buffer, at_top(a->body, fetches)});
    return seq({fetches, body});
  }

  // Loops over the box with a step of one cache line along the dimension that is stored innermost.
  Stmt fetch(const Buffer& b, const For& loop, int64_t distance) {
    if (!b.defined() || b->scope == Scope::reg || b->shape.empty()) return {};
    const auto box = box_of(b, loop.body, simplifier_);
    if (!box) return {};
    const size_t innermost = b->layout.empty() ? box->size() - 1 : size_t(b->layout.back().dim);
    const int64_t step = std::max<int64_t>(1, kLineBytes / byte_size(b->dtype));
    std::vector<Expr> at;
    std::vector<For> loops;
    int64_t lines = 1;
    for (size_t d = 0; d < box->size(); ++d) {
      const Stretch& side = (*box)[d];
      const bool by_lines = d == innermost;
      Expr index = substitute(side.start, {{loop.var, Expr(loop.var) + int_imm(distance)}});
      const int64_t count = by_lines ? (side.extent + step - 1) / step : side.extent;
      if (count != 1) {
        For over{.var = Var("line"),
                 .min = int_imm(0),
                 .extent = int_imm(count),
                 .notes = {},
                 .body = {}};
        index = index + Expr(over.var) * int_imm(by_lines ? step : 1);
        loops.push_back(std::move(over));
      }
      at.push_back(simplifier_.simplify(index));
      if (count > kMaxLines || (lines *= count) > kMaxLines) return {};  // grown since the mark
    }
    Stmt nest = make_stmt(PrefetchLine{b, std::move(at)});
    for (size_t k = loops.size(); k-- > 0;) {
      if (lines <= kMaxUnrolledLines) loops[k].mark = LoopMark::unroll;
      loops[k].body = nest;
      nest = make_stmt(std::move(loops[k]));
    }
    return nest;
  }

  Simplifier simplifier_;
};

}  // namespace

Program issue_prefetches(const Program& program) {
  Program out = program;
  PrefetchIssuer issuer(program.body);
  out.body = rewrite(
      program.body, [&](const Stmt& s) { return issuer(s); }, nullptr);
  return out;
}

}  // namespace tenon
