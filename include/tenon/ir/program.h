#pragma once
#include <tenon/ir/stmt.h>

namespace tenon {

enum class ParamRole : uint8_t {
  input,
  constant,
  output
};  // constant: an input the task knows ahead of time

struct Param {
  Buffer buffer;
  ParamRole role = ParamRole::input;
};

/// A whole operator at one stage of its journey. Parameters: inputs in order of first use, then
/// outputs. A loop tree has Stage leaves; flat code has none, one-dimensional buffers, vectors and
/// masks.
struct Program {
  std::string name;
  std::vector<Param> params;
  Stmt body;
  /// The symbolic extents (Var::symbol) in the order of the kernel's `dims`; names are unique. Each
  /// is bound by a parameter: one of its dimensions has an extent symbol_term() understands.
  std::vector<Var> symbols{};
};

/// constant + factor * symbol: an extent that a call can solve for its symbol.
struct SymbolTerm {
  int64_t constant = 0, factor = 0;
  Var symbol{};  // undefined: a constant, and factor is 0
};
/// Nothing for other forms: n * m, n // 2.
std::optional<SymbolTerm> symbol_term(const Expr& extent);

/// The symbolic extents that an expression speaks of, in order of first appearance.
std::vector<Var> symbols_in(const Expr& e);

enum class Form : uint8_t { LoopTree, Flat };

/// All the rules of the form that `program` breaks, in words; empty when it is well-formed.
std::vector<std::string> verify_errors(const Program& program, Form form);

/// Throws InternalError with the first rules broken and the program's text.
void verify(const Program& program, Form form);

/// The one printer. Deterministic; two programs with equal text are the same program.
std::string print(const Program& program);
std::string print(const Expr& e);
std::string print(const Stmt& s);

/// "layout(d1//16, d0, d1%16)"
std::string layout_text(const std::vector<LayoutDim>& layout);

struct PrintOptions {
  std::string mark_loop;      // the full name "stage:loop" of a loop to mark with '>' in the margin
  bool hide_extents = false;  // extents and shapes as '?': the text of a record's family
};
std::string print(const Program& program, const PrintOptions& options);

/// Hash of the canonical text, stable across machines, runs and versions of the compiler: 16 hex
/// digits. The program's own name is left out: it changes no meaning.
std::string program_hash(const Program& program);
std::string family_hash(const Program& program);

}  // namespace tenon
