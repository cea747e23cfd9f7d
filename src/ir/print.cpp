#include <fmt/format.h>
#include <tenon/ir/intrinsic.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/hash.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

/// Printed names of variables and buffers: the own name, or "name~2" where another one of that name
/// is in use. Names are given in order of first use, so every caller must print its parts in one
/// fixed order (statements of their own, never several arguments of one call).
class Names {
 public:
  const std::string& of(const Var& v) {
    auto found = vars_.find(v.get());
    return found != vars_.end() ? found->second : bind(v);
  }
  const std::string& bind(const Var& v) { return vars_[v.get()] = fresh(v.name(), used_vars_); }
  void unbind(const Var& v) {
    auto found = vars_.find(v.get());
    if (found == vars_.end()) return;  // bound twice on one path: the verifier prints that too
    used_vars_.erase(std::find(used_vars_.begin(), used_vars_.end(), found->second));
    vars_.erase(found);
  }
  const std::string& of(const Buffer& b) {
    auto found = buffers_.find(b.get());
    if (found != buffers_.end()) return found->second;
    return buffers_[b.get()] = fresh(b->name, used_buffers_);
  }

 private:
  static std::string fresh(const std::string& base, std::vector<std::string>& used) {
    std::string name = base;
    for (int k = 2; std::find(used.begin(), used.end(), name) != used.end(); ++k) {
      name = fmt::format("{}~{}", base, k);
    }
    used.push_back(name);
    return name;
  }

  std::unordered_map<const VarNode*, std::string> vars_;
  std::unordered_map<const BufferNode*, std::string> buffers_;
  std::vector<std::string> used_vars_, used_buffers_;
};

struct Operator {
  std::string_view symbol;  // empty: printed as a function
  int level;                // binds tighter when higher
};

Operator operator_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::logical_or:
      return {"||", 1};
    case BinaryOp::logical_and:
      return {"&&", 2};
    case BinaryOp::bit_or:
      return {"|", 3};
    case BinaryOp::bit_xor:
      return {"^", 4};
    case BinaryOp::bit_and:
      return {"&", 5};
    case BinaryOp::eq:
      return {"==", 6};
    case BinaryOp::ne:
      return {"!=", 6};
    case BinaryOp::lt:
      return {"<", 7};
    case BinaryOp::le:
      return {"<=", 7};
    case BinaryOp::gt:
      return {">", 7};
    case BinaryOp::ge:
      return {">=", 7};
    case BinaryOp::shl:
      return {"<<", 8};
    case BinaryOp::shr:
      return {">>", 8};
    case BinaryOp::add:
      return {"+", 9};
    case BinaryOp::sub:
      return {"-", 9};
    case BinaryOp::mul:
      return {"*", 10};
    case BinaryOp::div:
      return {"/", 10};
    case BinaryOp::floor_div:
      return {"//", 10};
    case BinaryOp::floor_mod:
      return {"%", 10};
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod:
    case BinaryOp::min:
    case BinaryOp::max:
      return {"", 12};
  }
  return {"", 12};
}
constexpr int kUnaryLevel = 11, kAtomLevel = 12;

std::string int_text(int64_t value, DType t) {
  if (is_bool(t)) return value != 0 ? "true" : "false";
  std::string digits =
      t == u64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
  return t == i64 ? digits : fmt::format("{}:{}", digits, name(t));
}

std::string float_text(double value, DType t) {
  auto single = static_cast<float>(value);
  std::string digits = round_trip(value);
  if (t == f32 && static_cast<double>(single) == value && std::isfinite(value)) {
    digits = fmt::format("{}", single);
  }
  if (std::isfinite(value) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return t == f32 ? digits : fmt::format("{}:{}", digits, name(t));
}

/// Expressions. `tight` leaves out the spaces round operators (inside indices).
class ExprPrinter {
 public:
  ExprPrinter(Names& names, bool hide_extents) : names_(names), hide_extents_(hide_extents) {}

  std::string text(const Expr& e, bool tight = false, int level = 0) {
    std::string out;
    put(out, e, tight, level);
    return out;
  }
  std::string list(const std::vector<Expr>& parts, bool tight = false) {
    std::string out;
    put(out, parts, tight);
    return out;
  }
  std::string element(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask) {
    std::string out;
    put_element(out, b, indices, mask);
    return out;
  }
  std::string extent(const Expr& e) { return hide_extents_ ? "?" : text(e, true); }

 private:
  // Most of a program's text is names, numbers, operators and elements: they go straight to `out`.
  void put(std::string& out, const Expr& e, bool tight, int level) {
    if (!e.defined()) {
      out += "undefined";
    } else if (const VarRef* ref = e.as<VarRef>()) {
      out += names_.of(ref->var);
    } else if (const IntImm* n = e.as<IntImm>(); n && e.type() == Type{i64, 1}) {
      out += std::to_string(n->value);
    } else if (const Binary* b = e.as<Binary>(); b && !operator_of(b->op).symbol.empty()) {
      put_binary(out, *b, tight, level);
    } else if (const Load* l = e.as<Load>()) {
      put_element(out, l->buffer, l->indices, l->mask);
    } else {
      out += std::visit([&](const auto& node) { return show(node, e.type(), tight, level); },
                        e.node().v);
    }
  }
  void put(std::string& out, const std::vector<Expr>& parts, bool tight) {
    for (size_t n = 0; n < parts.size(); ++n) {
      if (n > 0) out += ", ";
      put(out, parts[n], tight, 0);
    }
  }
  void put_binary(std::string& out, const Binary& b, bool tight, int level) {
    const Operator op = operator_of(b.op);
    const std::string_view gap = tight ? "" : " ";
    if (op.level < level) out += '(';
    put(out, b.a, tight, op.level);
    out.append(gap).append(op.symbol).append(gap);
    put(out, b.b, tight, op.level + 1);
    if (op.level < level) out += ')';
  }
  void put_element(std::string& out, const Buffer& b, const std::vector<Expr>& indices,
                   const Expr& mask) {
    out.append(names_.of(b)) += '[';
    put(out, indices, true);
    if (mask.defined()) put(out += "; ", mask, true, 0);
    out += ']';
  }

  std::string show(const IntImm& n, Type t, bool, int) { return int_text(n.value, t.dtype); }
  std::string show(const FloatImm& n, Type t, bool, int) { return float_text(n.value, t.dtype); }
  std::string show(const VarRef& n, Type, bool, int) { return names_.of(n.var); }
  std::string show(const Binary& n, Type, bool tight, int) {  // an operator without a sign
    return fmt::format("{}({})", name(n.op), list({n.a, n.b}, tight));
  }
  std::string show(const Unary& n, Type, bool tight, int level) {
    std::string_view sign;
    if (n.op == UnaryOp::neg) sign = "-";
    if (n.op == UnaryOp::logical_not) sign = "!";
    if (n.op == UnaryOp::bit_not) sign = "~";
    if (sign.empty()) return fmt::format("{}({})", name(n.op), text(n.a, tight));
    bool literal = n.a.as<IntImm>() || n.a.as<FloatImm>();
    std::string body = literal ? fmt::format("{}({})", sign, text(n.a, tight))
                               : fmt::format("{}{}", sign, text(n.a, tight, kAtomLevel));
    return kUnaryLevel < level ? "(" + body + ")" : body;
  }
  std::string show(const Select& n, Type, bool tight, int) {
    return fmt::format("select({})", list({n.condition, n.yes, n.no}, tight));
  }
  std::string show(const Cast& n, Type t, bool tight, int) {
    return fmt::format("{}({})", name(t.dtype), text(n.value, tight));
  }
  std::string show(const Bitcast& n, Type t, bool tight, int) {
    return fmt::format("bitcast_{}({})", name(t.dtype), text(n.value, tight));
  }
  std::string show(const Load& n, Type, bool, int) { return element(n.buffer, n.indices, n.mask); }
  std::string show(const Call& n, Type, bool tight, int) {
    return fmt::format("{}({})", name(n.fn), list(n.args, tight));
  }
  std::string show(const Ramp& n, Type, bool tight, int) {
    return fmt::format("ramp({}, {})", list({n.base, n.stride}, tight), n.lanes);
  }
  std::string show(const Broadcast& n, Type, bool tight, int) {
    return fmt::format("broadcast({}, {})", text(n.value, tight), n.lanes);
  }
  std::string show(const Reduce& n, Type, bool tight, int) {
    std::vector<std::string> axes;
    for (const Axis& a : n.axes) {
      std::string axis = names_.bind(a.var);
      axes.push_back(fmt::format("{} in 0..{}", axis, extent(a.extent)));
    }
    std::string sources = list(n.sources, tight);
    std::string out = fmt::format("{}[{}]({}", n.combiner->name, join(axes), sources);
    if (!n.init.empty()) out += "; init " + list(n.init, tight);
    if (n.condition.defined()) out += "; where " + text(n.condition, tight);
    for (const Axis& a : n.axes) names_.unbind(a.var);
    out += ")";
    return n.sources.size() > 1 ? fmt::format("{}.{}", out, n.element) : out;
  }
  std::string show(const Let& n, Type, bool tight, int) {
    std::string value = text(n.value, tight);
    std::string out = fmt::format("(let {} = {} in ", names_.bind(n.var), value);
    out += text(n.body, tight) + ")";
    names_.unbind(n.var);
    return out;
  }
  std::string show(const VectorReduce& n, Type, bool tight, int) {
    return fmt::format("reduce_{}({})", name(n.op), text(n.value, tight));
  }
  std::string show(const Shuffle& n, Type, bool tight, int) {
    return fmt::format("shuffle({}, [{}])", text(n.value, tight), fmt::join(n.lanes, ", "));
  }
  std::string show(const IntrinsicCall& n, Type, bool tight, int) {
    return fmt::format("{}.x{}({})", n.intrinsic->name,
                       n.intrinsic->implementations[static_cast<size_t>(n.implementation)].lanes,
                       list(n.args, tight));
  }

  Names& names_;
  bool hide_extents_;
};

/// The sign of an update: "+=", "max=", or "name=" for a combiner that is not built in.
std::string update_sign(const Combiner& c) {
  std::optional<BinaryOp> op = combiner_op(c);
  if (!op) return c.name + "=";
  Operator symbol = operator_of(*op);
  return fmt::format("{}=", symbol.symbol.empty() ? name(*op) : symbol.symbol);
}

/// Statements, one per line. An Allocate or let that is last in its block holds for the rest of the
/// block without further indentation; otherwise its body is indented.
class Printer {
 public:
  explicit Printer(const PrintOptions& options)
      : options_(options), expr_(names_, options.hide_extents) {}

  std::string program(const Program& p) {
    find_marked(p.body);
    line(0, p.name.empty() ? "program" : "program " + p.name);
    if (!options_.hide_extents) {  // a family has kernels of fixed and of symbolic extents
      for (const Var& v : p.symbols) {
        line(0,
             fmt::format("symbol {} in [{}, {}]", names_.of(v), v.range()->low, v.range()->high));
      }
    }
    for (const Param& param : p.params) {
      static constexpr std::string_view kRole[] = {"input", "constant", "output"};
      line(0,
           fmt::format("{} {}", kRole[static_cast<size_t>(param.role)], declaration(param.buffer)));
    }
    block(p.body, 0, false, true);
    return std::move(out_);
  }
  std::string statement(const Stmt& s) {
    block(s, 0, false, true);
    return std::move(out_);
  }
  std::string expression(const Expr& e) { return expr_.text(e); }

 private:
  void line(int depth, const std::string& text, bool marked = false) {
    if (!options_.mark_loop.empty()) out_ += marked ? "> " : "  ";
    out_.append(static_cast<size_t>(2 * depth), ' ');
    out_.append(text) += '\n';
  }

  void find_marked(const Stmt& s) {
    size_t colon = options_.mark_loop.find(':');
    if (colon == std::string::npos) return;
    for (const StagePath& path : stage_paths(s)) {
      if (path.stage->name != options_.mark_loop.substr(0, colon)) continue;
      for (const For* loop : path.loops) {
        if (loop->var.name() == options_.mark_loop.substr(colon + 1)) marked_ = loop->var.get();
      }
    }
  }

  std::string declaration(const Buffer& b) {
    std::string text = names_.of(b) + "[";
    for (const Expr& e : b->shape) text.append(expr_.extent(e)) += ',';
    if (!b->shape.empty()) text.pop_back();
    text.append("] ").append(name(b->dtype));
    if (b->scope != Scope::global) text += fmt::format(" {}", name(b->scope));
    if (!b->layout.empty()) text += " " + layout_text(b->layout);
    for (const StrideAlign& a : b->aligns)
      text += fmt::format(" align(stride{}%{} == {})", a.dim, a.factor, a.offset);
    return text;
  }

  /// `headed`: the heading of the only stage below has been printed. `last`: nothing follows in
  /// this block.
  void block(const Stmt& s, int depth, bool headed, bool last) {
    if (!s.defined()) return line(depth, "nothing");
    bool starts_stage = s.as<For>() || s.as<If>() || s.as<Stage>();
    if (!headed && starts_stage) {
      const Stage* below = only_stage(s);
      headed = below != nullptr;
      if (headed) heading(*below, depth++);
    }
    std::visit([&](const auto& node) { show(node, depth, headed, last); }, s.node().v);
  }

  /// Null where there are several, or none.
  static const Stage* only_stage(const Stmt& s) {
    std::vector<const Stage*> found;
    const auto look = [&](const Stmt& part) {
      if (const Stage* stage = part.as<Stage>()) found.push_back(stage);
      return found.size() < 2;
    };
    walk(s, look, nullptr);
    return found.size() == 1 ? found[0] : nullptr;
  }

  void heading(const Stage& stage, int depth) {
    std::vector<std::string> outputs;
    for (const Buffer& b : stage.outputs) outputs.push_back(declaration(b));
    bool same = stage.outputs.size() == 1 && stage.outputs[0]->name == stage.name;
    line(depth, fmt::format("stage {}{}", same ? "" : stage.name + ": ", join(outputs)));
  }

  std::string range(const For& loop) {
    if (options_.hide_extents) return "0..?";
    std::optional<int64_t> low = as_int(loop.min), extent = as_int(loop.extent);
    if (low && extent) return fmt::format("{}..{}", *low, *low + *extent);
    if (low && *low == 0) return "0.." + expr_.text(loop.extent, true);
    std::string start = expr_.text(loop.min, true);
    return fmt::format("{}..+{}", start, expr_.text(loop.extent, true, kAtomLevel));
  }

  void show(const For& loop, int depth, bool headed, bool) {
    std::string bounds = range(loop), marks;
    if (loop.kind == AxisKind::reduce) marks += "  reduce";
    if (loop.kind == AxisKind::sequential) marks += "  sequential";
    if (loop.mark != LoopMark::serial) marks += fmt::format("  {}", name(loop.mark));
    if (loop.intrinsic) marks += " " + loop.intrinsic->name;
    for (const auto& [key, value] : loop.notes) marks += fmt::format("  {}={}", key, value);
    line(depth, "for " + names_.bind(loop.var) + " in " + bounds + marks,
         loop.var.get() == marked_);
    block(loop.body, depth + 1, headed, true);
    names_.unbind(loop.var);
  }
  void show(const Store& s, int depth, bool, bool) {
    std::string target = expr_.element(s.buffer, s.indices, s.mask);
    line(depth, fmt::format("{}{} = {}", s.atomic ? "atomic " : "", target, expr_.text(s.value)));
  }
  void show(const Seq& s, int depth, bool headed, bool last) {
    if (s.stmts.empty()) line(depth, "nothing");
    for (const Stmt& part : s.stmts) block(part, depth, headed, last && &part == &s.stmts.back());
  }
  void show(const If& s, int depth, bool headed, bool) {
    line(depth, "if " + expr_.text(s.condition));
    block(s.then_case, depth + 1, headed, true);
    if (!s.else_case.defined()) return;
    line(depth, "else");
    block(s.else_case, depth + 1, headed, true);
  }
  void show(const Allocate& s, int depth, bool headed, bool last) {
    line(depth, "allocate " + declaration(s.buffer));
    block(s.body, last ? depth : depth + 1, headed, true);
  }
  void show(const Evaluate& s, int depth, bool, bool) {
    line(depth, "evaluate " + expr_.text(s.value));
  }
  void show(const LetStmt& s, int depth, bool headed, bool last) {
    std::string value = expr_.text(s.value);
    line(depth, fmt::format("let {} = {}", names_.bind(s.var), value));
    block(s.body, last ? depth : depth + 1, headed, true);
    names_.unbind(s.var);
  }
  void show(const Barrier&, int depth, bool, bool) { line(depth, "barrier"); }
  void show(const PrefetchLine& s, int depth, bool, bool) {
    line(depth, "prefetch " + expr_.element(s.buffer, s.indices, {}));
  }

  void show(const Stage& stage, int depth, bool, bool) {
    VarMap bindings;
    for (const AxisBinding& b : stage.axes) bindings[b.axis.var] = b.value;
    auto bound = [&](std::vector<Expr> parts) {
      for (Expr& e : parts) e = substitute(e, bindings);
      return parts;
    };
    unseen_axes(stage, depth);
    if (stage.spatial_guard.defined()) line(depth, "where " + expr_.text(stage.spatial_guard));
    std::vector<Expr> at = bound(stage.indices);
    std::vector<std::string> targets;
    for (const Buffer& b : stage.outputs) targets.push_back(expr_.element(b, at, {}));
    auto assign = [&](std::string_view sign, const std::vector<Expr>& values) {
      bool tuple = targets.size() != 1;
      std::string left = join(targets), right = expr_.list(bound(values));
      return tuple ? fmt::format("({}) {} ({})", left, sign, right)
                   : fmt::format("{} {} {}", left, sign, right);
    };
    if (!stage.init.empty()) line(depth, "init " + assign("=", stage.init));
    if (stage.reduce_guard.defined()) line(depth, "update where " + expr_.text(stage.reduce_guard));
    if (stage.combiner && !combiner_op(*stage.combiner)) combiner(*stage.combiner, depth);
    line(depth, assign(stage.combiner ? update_sign(*stage.combiner) : "=", stage.values));
  }

  /// Axes that the body does not mention would leave no trace of their loops.
  void unseen_axes(const Stage& stage, int depth) {
    std::vector<const VarNode*> seen;
    const auto look = [&](const Expr& e) {
      if (const VarRef* ref = e.as<VarRef>()) seen.push_back(ref->var.get());
      return true;
    };
    for (const Expr& e : stage.indices) walk(e, look);
    for (const Expr& e : stage.values) walk(e, look);
    for (const AxisBinding& b : stage.axes) {
      if (std::find(seen.begin(), seen.end(), b.axis.var.get()) == seen.end())
        line(depth, fmt::format("over {} = {}", b.axis.var.name(), expr_.text(b.value)));
    }
  }

  void combiner(const Combiner& c, int depth) {
    std::vector<std::string> lhs, rhs;
    for (const Var& v : c.lhs) lhs.push_back(names_.bind(v));
    for (const Var& v : c.rhs) rhs.push_back(names_.bind(v));
    std::string result = expr_.list(c.result), identity = expr_.list(c.identity);
    line(depth, fmt::format("combiner {}({}; {}) = ({}) identity ({}){}", c.name, join(lhs),
                            join(rhs), result, identity, c.commutative ? "" : "  ordered"));
    for (const Var& v : c.lhs) names_.unbind(v);
    for (const Var& v : c.rhs) names_.unbind(v);
  }

  const PrintOptions options_;
  Names names_;
  ExprPrinter expr_;
  const VarNode* marked_ = nullptr;
  std::string out_;
};

std::string hash_of(const Program& program, const PrintOptions& options) {
  return hex64(hash_text(print({"", program.params, program.body, program.symbols}, options)));
}

}  // namespace

std::string print(const Program& program, const PrintOptions& options) {
  return Printer(options).program(program);
}

std::string layout_text(const std::vector<LayoutDim>& layout) {
  std::vector<std::string> dims;
  for (const LayoutDim& d : layout) {
    std::string text = fmt::format("d{}", d.dim);
    if (d.divide != 1) text += fmt::format("//{}", d.divide);
    if (d.modulo != 0) text += fmt::format("%{}", d.modulo);
    dims.push_back(text);
  }
  return fmt::format("layout({})", join(dims));
}

std::string print(const Program& program) { return print(program, PrintOptions{}); }

std::string print(const Expr& e) { return Printer(PrintOptions{}).expression(e); }

std::string print(const Stmt& s) { return Printer(PrintOptions{}).statement(s); }

std::string program_hash(const Program& program) { return hash_of(program, {}); }

std::string family_hash(const Program& program) { return hash_of(program, {.hide_extents = true}); }

}  // namespace tenon
