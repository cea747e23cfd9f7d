#include <tenon/ir/notes.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <functional>

#include "ir/loads.h"
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

// The lines of a box along one dimension: `count` of them from `start` on, `step` elements apart.
struct LineRow {
  Expr start;
  int64_t count = 0, step = 1;
};

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
      const Buffer b = touched_buffer(out.body, name);
      const std::vector<LineRow> rows = rows_of(b, *n, distance);
      if (rows.empty()) continue;
      if (const Stmt shared = share_out(b, rows, out.body); shared.defined())
        out.body = shared;
      else
        fetches.push_back(fetch(b, rows));
    }
    if (!fetches.empty()) out.body = at_top(out.body, seq(std::move(fetches)));
    return make_stmt(std::move(out));
  }

 private:
  static Stmt at_top(const Stmt& body, const Stmt& fetches) {
    if (const Allocate* a = body.as<Allocate>())
      return make_stmt(Allocate{a->buffer, at_top(a->body, fetches)});
    return seq({fetches, body});
  }

  // What an iteration of the loop touches `distance` iterations ahead, by dimension; a step is one
  // cache line along the dimension that is stored innermost.
  std::vector<LineRow> rows_of(const Buffer& b, const For& loop, int64_t distance) {
    if (!b.defined() || b->scope == Scope::reg || b->shape.empty()) return {};
    const auto box = box_of(b, loop.body, simplifier_);
    if (!box) return {};
    const size_t innermost = innermost_dim(*b);
    std::vector<LineRow> rows;
    for (size_t d = 0; d < box->size(); ++d) {
      const Stretch& side = (*box)[d];
      const int64_t step =
          d == innermost ? std::max<int64_t>(1, kLineBytes / byte_size(b->dtype)) : 1;
      rows.push_back({substitute(side.start, {{loop.var, Expr(loop.var) + int_imm(distance)}}),
                      (side.extent + step - 1) / step, step});
    }
    return rows;
  }

  static size_t innermost_dim(const BufferNode& b) {
    return b.layout.empty() ? b.shape.size() - 1 : static_cast<size_t>(b.layout.back().dim);
  }

  // All of them at once.
  Stmt fetch(const Buffer& b, const std::vector<LineRow>& rows) {
    std::vector<Expr> at;
    std::vector<For> loops;
    int64_t lines = 1;
    for (const LineRow& row : rows) {
      Expr index = row.start;
      if (row.count != 1) {
        For over{.var = Var("line"),
                 .min = int_imm(0),
                 .extent = int_imm(row.count),
                 .notes = {},
                 .body = {}};
        index = index + Expr(over.var) * int_imm(row.step);
        loops.push_back(std::move(over));
      }
      at.push_back(simplifier_.simplify(index));
      if (row.count > kMaxLines || (lines *= row.count) > kMaxLines)
        return {};  // grown since the mark
    }
    Stmt nest = make_stmt(PrefetchLine{b, std::move(at)});
    for (size_t k = loops.size(); k-- > 0;) {
      if (lines <= kMaxUnrolledLines) loops[k].mark = LoopMark::unroll;
      loops[k].body = nest;
      nest = make_stmt(std::move(loops[k]));
    }
    return nest;
  }

  // `body` with an equal part of the lines asked for at each iteration of the loop inside it that
  // is noted prefetch_part(b); undefined where there is none.
  Stmt share_out(const Buffer& b, const std::vector<LineRow>& rows, const Stmt& body) {
    const std::string note = prefetch_part_note(b->name);
    bool done = false;
    const std::function<Stmt(const Stmt&, const Expr&, int64_t)> inside =
        [&](const Stmt& s, const Expr& before, int64_t times) -> Stmt {
      if (done) return s;
      if (const Allocate* a = s.as<Allocate>())
        return make_stmt(Allocate{a->buffer, inside(a->body, before, times)});
      if (const Seq* q = s.as<Seq>()) {
        std::vector<Stmt> parts;
        for (const Stmt& part : q->stmts) parts.push_back(inside(part, before, times));
        return seq(std::move(parts));
      }
      const For* loop = s.as<For>();
      const std::optional<int64_t> extent = loop ? as_int(loop->extent) : std::nullopt;
      if (!extent || *extent < 1) return s;
      const Expr number = before * int_imm(*extent) + (Expr(loop->var) - loop->min);
      For out = *loop;
      if (out.notes.erase(note) > 0) {
        done = true;
        out.body = at_top(loop->body, part_of_lines(b, rows, number, times * *extent));
      } else {
        out.body = inside(loop->body, number, times * *extent);
      }
      return make_stmt(std::move(out));
    };
    const Stmt out = inside(body, int_imm(0), 1);
    return done ? out : Stmt();
  }

  // Part `number` of `parts` of the lines, counted as they are stored; the last parts may go past
  // the end.
  Stmt part_of_lines(const Buffer& b, const std::vector<LineRow>& rows, const Expr& number,
                     int64_t parts) {
    int64_t lines = 1;
    for (const LineRow& row : rows) lines *= row.count;
    const int64_t each = (lines + parts - 1) / parts;
    if (each > kMaxLines) return {};  // grown since the mark
    const size_t innermost = innermost_dim(*b);
    std::vector<Stmt> out;
    for (int64_t n = 0; n < each; ++n) {
      Expr line = number * int_imm(each) + int_imm(n);
      std::vector<Expr> at(rows.size());
      const auto place = [&](size_t d) {
        const LineRow& row = rows[d];
        const Expr along = floor_mod(line, int_imm(row.count)) * int_imm(row.step);
        at[d] = simplifier_.simplify(row.count == 1 ? row.start : row.start + along);
        line = floor_div(line, int_imm(row.count));
      };
      place(innermost);
      for (size_t d = rows.size(); d-- > 0;)
        if (d != innermost) place(d);
      out.push_back(make_stmt(PrefetchLine{b, std::move(at)}));
    }
    return seq(std::move(out));
  }

  Simplifier simplifier_;
};

// Notes of parts whose loop a later step took away.
Stmt without_part_notes(const Stmt& s) {
  const For* loop = s.as<For>();
  if (!loop) return s;
  const std::vector<std::string> left = noted_buffers(loop->notes, "prefetch_part");
  if (left.empty()) return s;
  For out = *loop;
  for (const std::string& name : left) out.notes.erase(prefetch_part_note(name));
  return make_stmt(std::move(out));
}

}  // namespace

Program issue_prefetches(const Program& program) {
  Program out = program;
  PrefetchIssuer issuer(program.body);
  out.body = rewrite(
      program.body, [&](const Stmt& s) { return issuer(s); }, nullptr);
  out.body = rewrite(out.body, without_part_notes, nullptr);
  return out;
}

}  // namespace tenon
