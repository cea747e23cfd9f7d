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
};

enum class Form : uint8_t { LoopTree, Flat };

/// All the rules of the form that `program` breaks, in words; empty when it is well-formed.
std::vector<std::string> verify_errors(const Program& program, Form form);

/// Throws InternalError with the first rules broken and the program's text.
void verify(const Program& program, Form form);

/// The one printer. Deterministic; two programs with equal text are the same program.
std::string print(const Program& program);
std::string print(const Expr& e);
std::string print(const Stmt& s);

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
