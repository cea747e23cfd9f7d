#include <tenon/ir/intrinsic.h>
#include <tenon/ir/program_json.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ir/program_json_words.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDeepestStatement = 500;

[[noreturn]] void refuse(const std::string& rule) {
  throw UserError("this is no program in JSON: " + rule);
}

// The enumerator, up to `last`, that goes by the word.
template <class Enum>
Enum enumerator(const Json& line, const char* field, Enum last) {
  const std::string wanted = line.at(field).get<std::string>();
  for (size_t k = 0; k <= static_cast<size_t>(last); ++k) {
    std::string_view word_of;
    if constexpr (std::is_same_v<Enum, AxisKind> || std::is_same_v<Enum, ParamRole>) {
      word_of = word(static_cast<Enum>(k));
    } else {
      word_of = name(static_cast<Enum>(k));
    }
    if (word_of == wanted) return static_cast<Enum>(k);
  }
  refuse(fmt::format("\"{}\" is no {}", wanted, field));
}

DType type_of(const Json& line) {
  const auto word = line.at("type").get<std::string>();
  const std::optional<DType> type = parse_dtype(word);
  if (!type) refuse(fmt::format("\"{}\" is no type", word));
  return *type;
}

double exact_float(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') refuse(fmt::format("\"{}\" is no number", text));
  return value;
}

// Entries of the tables are made in order. Shapes of buffers hold numbers and variables only, so an
// expression may name a buffer that is made on demand; every other reference points backwards.
class ProgramReader {
 public:
  explicit ProgramReader(const Json& json)
      : json_(json), buffers_(json.at("buffers").size()), combiners_(json.at("combiners").size()) {}

  Program read() {
    for (const Json& line : json_.at("vars")) vars_.push_back(make_var(line));
    for (const Json& line : json_.at("exprs")) exprs_.push_back(make(line));
    Program out;
    out.name = json_.at("name").get<std::string>();
    // files written before there were symbols have none
    for (const Json& number : json_.value("symbols", Json::array()))
      out.symbols.push_back(var(number));
    for (const Json& line : json_.at("params"))
      out.params.push_back(
          {buffer(line.at("buffer")), enumerator(line, "role", ParamRole::output)});
    out.body = stmt(json_.at("body"), 0);
    return out;
  }

 private:
  static Var make_var(const Json& line) {
    const auto name = line.at("name").get<std::string>();
    if (!line.contains("range")) return Var(name, Type{type_of(line)});
    const Json& range = line.at("range");
    return Var::symbol(name, {range.at(0).get<int64_t>(), range.at(1).get<int64_t>()});
  }

  template <class T>
  static const T& entry(const std::vector<T>& table, const Json& number, const char* what) {
    const auto at = number.get<int64_t>();
    if (at < 0 || at >= static_cast<int64_t>(table.size()))
      refuse(fmt::format("there is no {} {} here", what, at));
    return table[static_cast<size_t>(at)];
  }

  const Var& var(const Json& number) const { return entry(vars_, number, "variable"); }
  Expr expr(const Json& number) const {
    return number.is_null() ? Expr() : entry(exprs_, number, "expression");
  }
  Expr operand(const Json& line, const char* field) const {
    if (line.at(field).is_null()) refuse(fmt::format("\"{}\" is missing", field));
    return expr(line.at(field));
  }
  std::vector<Expr> list(const Json& numbers) const {
    std::vector<Expr> out;
    for (const Json& number : numbers) {
      if (number.is_null()) refuse("an element of a list is missing");
      out.push_back(expr(number));
    }
    return out;
  }

  const Buffer& buffer(const Json& number) {
    const Buffer& known = entry(buffers_, number, "buffer");
    if (known.defined()) return known;
    const auto at = number.get<size_t>();
    const Json& line = json_.at("buffers").at(at);
    BufferNode node;
    node.name = line.at("name").get<std::string>();
    node.dtype = type_of(line);
    node.shape = list(line.at("shape"));
    node.scope = enumerator(line, "scope", Scope::reg);
    for (const Json& d : line.at("layout"))
      node.layout.push_back(
          {d.at("dim").get<int>(), d.at("divide").get<int64_t>(), d.at("modulo").get<int64_t>()});
    if (line.contains("aligns"))
      for (const Json& a : line.at("aligns"))
        node.aligns.push_back(
            {a.at("dim").get<int>(), a.at("factor").get<int64_t>(), a.at("offset").get<int64_t>()});
    return buffers_[at] = Buffer(std::move(node));
  }

  std::shared_ptr<const Combiner> combiner(const Json& number) {
    if (number.is_null()) return nullptr;
    if (const auto& known = entry(combiners_, number, "combiner")) return known;
    const auto at = number.get<size_t>();
    const Json& line = json_.at("combiners").at(at);
    Combiner c;
    c.name = line.at("name").get<std::string>();
    for (const Json& v : line.at("lhs")) c.lhs.push_back(var(v));
    for (const Json& v : line.at("rhs")) c.rhs.push_back(var(v));
    c.result = list(line.at("result"));
    c.identity = list(line.at("identity"));
    c.commutative = line.at("commutative").get<bool>();
    return combiners_[at] = std::make_shared<const Combiner>(std::move(c));
  }

  Expr make(const Json& line) {
    const Type type{type_of(line)};
    const auto kind = line.at("kind").get<std::string>();
    if (kind == "int") return make_expr(type, IntImm{line.at("value").get<int64_t>()});
    if (kind == "float")
      return make_expr(type, FloatImm{exact_float(line.at("value").get<std::string>())});
    if (kind == "var") return make_expr(type, VarRef{var(line.at("var"))});
    if (kind == "binary")
      return make_expr(type, Binary{enumerator(line, "op", BinaryOp::shr), operand(line, "a"),
                                    operand(line, "b")});
    if (kind == "unary")
      return make_expr(type, Unary{enumerator(line, "op", UnaryOp::is_nan), operand(line, "a")});
    if (kind == "select")
      return make_expr(
          type, Select{operand(line, "condition"), operand(line, "yes"), operand(line, "no")});
    if (kind == "cast") return make_expr(type, Cast{operand(line, "value")});
    if (kind == "bitcast") return make_expr(type, Bitcast{operand(line, "value")});
    if (kind == "load")
      return make_expr(
          type, Load{buffer(line.at("buffer")), list(line.at("indices")), expr(line.at("mask"))});
    if (kind == "call")
      return make_expr(type, Call{enumerator(line, "fn", MathFn::ldexp), list(line.at("args"))});
    if (kind == "let")
      return make_expr(type,
                       Let{var(line.at("var")), operand(line, "value"), operand(line, "body")});
    refuse(fmt::format("\"{}\" is no kind of expression", kind));
  }

  Stmt stmt(const Json& line, size_t depth) {
    if (line.is_null()) return {};
    if (depth > kDeepestStatement) refuse("its statements are nested too deep");
    const auto kind = line.at("kind").get<std::string>();
    if (kind == "for") return make_for(line, depth);
    if (kind == "stage") return make_stmt(make_stage(line));
    if (kind == "allocate")
      return make_stmt(Allocate{buffer(line.at("buffer")), stmt(line.at("body"), depth + 1)});
    if (kind != "seq") refuse(fmt::format("\"{}\" is no kind of statement", kind));
    Seq seq;
    for (const Json& part : line.at("stmts")) seq.stmts.push_back(stmt(part, depth + 1));
    return make_stmt(std::move(seq));
  }

  Stmt make_for(const Json& line, size_t depth) {
    For loop;
    loop.var = var(line.at("var"));
    loop.min = operand(line, "min");
    loop.extent = operand(line, "extent");
    loop.kind = enumerator(line, "axis", AxisKind::sequential);
    loop.mark = enumerator(line, "mark", LoopMark::thread_z);
    for (const auto& [note, value] : line.at("notes").items())
      loop.notes[note] = value.get<int64_t>();
    if (line.contains("intrinsic"))
      loop.intrinsic = intrinsic_from_json(line.at("intrinsic").dump());
    loop.body = stmt(line.at("body"), depth + 1);
    return make_stmt(std::move(loop));
  }

  Stage make_stage(const Json& line) {
    Stage out;
    out.name = line.at("name").get<std::string>();
    for (const Json& b : line.at("axes")) {
      out.axes.push_back({Axis(var(b.at("var")), operand(b, "extent")),
                          enumerator(b, "axis", AxisKind::sequential), operand(b, "value")});
    }
    out.spatial_guard = expr(line.at("spatial_guard"));
    out.reduce_guard = expr(line.at("reduce_guard"));
    for (const Json& b : line.at("outputs")) out.outputs.push_back(buffer(b));
    out.indices = list(line.at("indices"));
    out.values = list(line.at("values"));
    out.combiner = combiner(line.at("combiner"));
    out.init = list(line.at("init"));
    return out;
  }

  const Json& json_;
  std::vector<Var> vars_;
  std::vector<Buffer> buffers_;                             // undefined: not made yet
  std::vector<std::shared_ptr<const Combiner>> combiners_;  // the same
  std::vector<Expr> exprs_;
};

}  // namespace

Program program_from_json(std::string_view text) {
  Program out;
  try {
    const Json json = Json::parse(text);
    out = ProgramReader(json).read();
  } catch (const Json::exception& e) {
    refuse(e.what());
  }
  const std::vector<std::string> errors = verify_errors(out, Form::LoopTree);
  if (!errors.empty()) refuse(join(errors, "\n  "));
  return out;
}

}  // namespace tenon
