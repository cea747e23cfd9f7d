#include <tenon/ir/intrinsic.h>
#include <tenon/ir/program_json.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <map>
#include <nlohmann/json.hpp>

#include "ir/program_json_words.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

class ProgramWriter {
 public:
  Json write(const Program& program) {
    Json params = Json::array(), symbols = Json::array();
    for (const Var& v : program.symbols) symbols.push_back(var(v));
    for (const Param& p : program.params)
      params.push_back({{"buffer", buffer(p.buffer)}, {"role", word(p.role)}});
    Json body = stmt(program.body);
    return {
        {"name", program.name},        {"vars", vars_},          {"buffers", buffers_},
        {"combiners", combiners_},     {"exprs", exprs_},        {"symbols", std::move(symbols)},
        {"params", std::move(params)}, {"body", std::move(body)}};
  }

 private:
  size_t var(const Var& v) {
    const auto [at, fresh] = var_numbers_.emplace(v.get(), vars_.size());
    if (!fresh) return at->second;
    Json line = {{"name", v.name()}, {"type", name(v.type().dtype)}};
    if (v.is_symbol()) line["range"] = {v.range()->low, v.range()->high};
    vars_.push_back(std::move(line));
    return at->second;
  }

  size_t buffer(const Buffer& b) {
    const auto known = buffer_numbers_.find(b.get());
    if (known != buffer_numbers_.end()) return known->second;
    Json layout = Json::array();
    for (const LayoutDim& d : b->layout)
      layout.push_back({{"dim", d.dim}, {"divide", d.divide}, {"modulo", d.modulo}});
    Json line = {{"name", b->name},
                 {"type", name(b->dtype)},
                 {"shape", list(b->shape)},
                 {"scope", name(b->scope)},
                 {"layout", std::move(layout)}};
    for (const StrideAlign& a : b->aligns)
      line["aligns"].push_back({{"dim", a.dim}, {"factor", a.factor}, {"offset", a.offset}});
    buffers_.push_back(std::move(line));
    return buffer_numbers_[b.get()] = buffers_.size() - 1;
  }

  Json combiner(const std::shared_ptr<const Combiner>& c) {
    if (!c) return nullptr;
    const auto known = combiner_numbers_.find(c.get());
    if (known != combiner_numbers_.end()) return known->second;
    Json lhs = Json::array(), rhs = Json::array();
    for (const Var& v : c->lhs) lhs.push_back(var(v));
    for (const Var& v : c->rhs) rhs.push_back(var(v));
    Json line = {{"name", c->name},
                 {"lhs", std::move(lhs)},
                 {"rhs", std::move(rhs)},
                 {"result", list(c->result)},
                 {"identity", list(c->identity)},
                 {"commutative", c->commutative}};
    combiners_.push_back(std::move(line));
    return combiner_numbers_[c.get()] = combiners_.size() - 1;
  }

  Json list(const std::vector<Expr>& es) {
    Json out = Json::array();
    for (const Expr& e : es) out.push_back(expr(e));
    return out;
  }

  // Null for an undefined one. Operands come before their users.
  Json expr(const Expr& e) {
    if (!e.defined()) return nullptr;
    const auto known = expr_numbers_.find(e.get());
    if (known != expr_numbers_.end()) return known->second;
    TENON_CHECK(e.lanes() == 1, "{} is a vector: only loop trees are written", print(e));
    Json line = node(e);
    line["type"] = name(e.dtype());
    exprs_.push_back(std::move(line));
    return expr_numbers_[e.get()] = exprs_.size() - 1;
  }

  Json node(const Expr& e) {
    return std::visit(
        overloaded{
            [](const IntImm& n) -> Json {
              return {{"kind", "int"}, {"value", n.value}};
            },
            [](const FloatImm& n) -> Json {  // hexadecimal: exact, infinities and NaN too
              return {{"kind", "float"}, {"value", fmt::format("{:a}", n.value)}};
            },
            [&](const VarRef& n) -> Json {
              return {{"kind", "var"}, {"var", var(n.var)}};
            },
            [&](const Binary& n) -> Json {
              return {{"kind", "binary"}, {"op", name(n.op)}, {"a", expr(n.a)}, {"b", expr(n.b)}};
            },
            [&](const Unary& n) -> Json {
              return {{"kind", "unary"}, {"op", name(n.op)}, {"a", expr(n.a)}};
            },
            [&](const Select& n) -> Json {
              return {{"kind", "select"},
                      {"condition", expr(n.condition)},
                      {"yes", expr(n.yes)},
                      {"no", expr(n.no)}};
            },
            [&](const Cast& n) -> Json {
              return {{"kind", "cast"}, {"value", expr(n.value)}};
            },
            [&](const Bitcast& n) -> Json {
              return {{"kind", "bitcast"}, {"value", expr(n.value)}};
            },
            [&](const Load& n) -> Json {
              return {{"kind", "load"},
                      {"buffer", buffer(n.buffer)},
                      {"indices", list(n.indices)},
                      {"mask", expr(n.mask)}};
            },
            [&](const Call& n) -> Json {
              return {{"kind", "call"}, {"fn", name(n.fn)}, {"args", list(n.args)}};
            },
            [&](const Let& n) -> Json {
              return {{"kind", "let"},
                      {"var", var(n.var)},
                      {"value", expr(n.value)},
                      {"body", expr(n.body)}};
            },
            [&](const auto&) -> Json {
              throw InternalError("internal error: only loop trees are written, this is none: " +
                                  print(e));
            }},
        e.node().v);
  }

  Json stmt(const Stmt& s) {
    if (!s.defined()) return nullptr;
    return std::visit(
        overloaded{
            [&](const For& n) -> Json {
              Json notes = Json::object();
              for (const auto& [note, value] : n.notes) notes[note] = value;
              Json out = {{"kind", "for"},        {"var", var(n.var)},
                          {"min", expr(n.min)},   {"extent", expr(n.extent)},
                          {"axis", word(n.kind)}, {"mark", name(n.mark)},
                          {"notes", notes},       {"body", stmt(n.body)}};
              if (n.intrinsic) out["intrinsic"] = Json::parse(to_json(*n.intrinsic));
              return out;
            },
            [&](const Seq& n) -> Json {
              Json parts = Json::array();
              for (const Stmt& part : n.stmts) parts.push_back(stmt(part));
              return {{"kind", "seq"}, {"stmts", std::move(parts)}};
            },
            [&](const Allocate& n) -> Json {
              return {{"kind", "allocate"}, {"buffer", buffer(n.buffer)}, {"body", stmt(n.body)}};
            },
            [&](const Stage& n) -> Json { return stage(n); },
            [&](const auto&) -> Json {
              throw InternalError("internal error: only loop trees are written, this is none: " +
                                  print(s));
            }},
        s.node().v);
  }

  Json stage(const Stage& n) {
    Json axes = Json::array(), outputs = Json::array();
    for (const AxisBinding& b : n.axes) {
      axes.push_back({{"var", var(b.axis.var)},
                      {"extent", expr(b.axis.extent)},
                      {"axis", word(b.kind)},
                      {"value", expr(b.value)}});
    }
    for (const Buffer& b : n.outputs) outputs.push_back(buffer(b));
    return {{"kind", "stage"},
            {"name", n.name},
            {"axes", std::move(axes)},
            {"spatial_guard", expr(n.spatial_guard)},
            {"reduce_guard", expr(n.reduce_guard)},
            {"outputs", std::move(outputs)},
            {"indices", list(n.indices)},
            {"values", list(n.values)},
            {"combiner", combiner(n.combiner)},
            {"init", list(n.init)}};
  }

  Json vars_ = Json::array(), buffers_ = Json::array(), combiners_ = Json::array(),
       exprs_ = Json::array();
  // By identity; numbers come from the order of first use, so the text is deterministic.
  std::map<const VarNode*, size_t> var_numbers_;
  std::map<const BufferNode*, size_t> buffer_numbers_;
  std::map<const Combiner*, size_t> combiner_numbers_;
  std::map<const ExprNode*, size_t> expr_numbers_;
};

}  // namespace

std::string to_json(const Program& program) { return ProgramWriter().write(program).dump(); }

}  // namespace tenon
