#include <tenon/ir/expr.h>
#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include <algorithm>

namespace tenon {

Expr::Expr(int value) : Expr(int_imm(value)) {}
Expr::Expr(int64_t value) : Expr(int_imm(value)) {}
Expr::Expr(double value) : Expr(float_imm(value, DType::f64)) {}

const ExprNode& Expr::node() const {
  TENON_CHECK(node_ != nullptr, "use of an undefined expression");
  return *node_;
}

Type Expr::type() const { return node().type; }

Var::Var(std::string name, Type type)
    : node_(std::make_shared<const VarNode>(VarNode{std::move(name), type, std::nullopt})) {}

Var Var::symbol(std::string name, SymbolRange range) {
  Var out;
  out.node_ = std::make_shared<const VarNode>(VarNode{std::move(name), Type{}, range});
  return out;
}

Var::operator Expr() const { return make_expr(type(), VarRef{*this}); }

Buffer::Buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope)
    : node_(std::make_shared<const BufferNode>(
          BufferNode{std::move(name), dtype, std::move(shape), scope, {}, {}})) {}

const StmtNode& Stmt::node() const {
  TENON_CHECK(node_ != nullptr, "use of an undefined statement");
  return *node_;
}

Stmt seq(std::vector<Stmt> stmts) {
  const auto stays = [](const Stmt& s) { return s.defined() && !s.as<Seq>(); };
  if (stmts.size() > 1 && std::all_of(stmts.begin(), stmts.end(), stays))
    return make_stmt(Seq{std::move(stmts)});
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (!s.defined()) continue;
    if (const Seq* inner = s.as<Seq>()) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  if (flat.empty()) return {};
  if (flat.size() == 1) return flat[0];
  return make_stmt(Seq{std::move(flat)});
}

}  // namespace tenon
