#pragma once
#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/schedule/fields.h>

#include <functional>

#include "schedule/legality.h"

namespace tenon {

// Finding and rebuilding parts of a loop tree. What is not found is refused in words.

/// "\"a\", \"b\"" and "did you mean \"b\"?" (empty when nothing is near).
std::string quoted_list(const std::vector<std::string>& names);
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// The stage of that name with the loops around it; the pointers live as long as the program.
StagePath find_stage(const Program& program, const std::string& stage);
/// Position in path.loops of the innermost loop of that name, or of the loop printed so ("i~2").
size_t find_loop(const StagePath& path, const std::string& loop);

std::string full_name(const StagePath& path, size_t loop);

/// A reduce axis, or the axis of a scan.
bool binds_reduce(const Stage& stage, const Var& loop);
bool binds(const Stage& stage, const Var& loop);
/// Do the indices speak of reduce axes, so that iterations of their loops may meet in an element?
bool is_scatter(const Stage& stage);
/// Reads the buffer in a value, an init or an index.
bool reads(const Stage& stage, const Buffer& buffer);
bool writes(const Stage& stage, const Buffer& buffer);
/// Buffers that the stage loads from, each once.
std::vector<Buffer> inputs_of(const Stage& stage);
bool is_output(const Program& program, const Buffer& buffer);

std::optional<int64_t> extent_of(const For& loop);
/// Whether it may run no iteration: its extent is 0, or symbolic with 0 in its range.
bool may_be_empty(const For& loop);
/// Throws a Refusal when a buffer of this scope would have a symbolic size: `sizes` are the sides
/// of the box that is kept of it.
void check_scope_size(const std::string& buffer, Scope scope, const std::vector<Expr>& sizes,
                      const std::string& loop = {});

/// `root` with the loop over `var` replaced by f(loop).
Stmt replace_loop(const Stmt& root, const Var& var, const std::function<Stmt(const For&)>& f);
/// `root` with the stage called `name` replaced; an undefined result removes it together with the
/// loops and sequences that become empty.
Stmt replace_stage(const Stmt& root, const std::string& name,
                   const std::function<Stmt(const Stage&)>& f);
Stmt map_stages(const Stmt& root, const std::function<Stage(const Stage&)>& f);
/// Bindings and guards of all stages with variables replaced (bodies speak of axes only).
Stmt substitute_loops(const Stmt& root, const VarMap& values);
/// Without the Allocate of that buffer.
Stmt drop_allocate(const Stmt& root, const Buffer& buffer);

/// A name no stage and no buffer of the program has: base, base.2, ...
std::string fresh_name(const Program& program, const std::string& base);

/// The buffer allocated inside the program under that name, or a parameter.
Buffer find_buffer(const Program& program, const std::string& name);
/// The Allocate nodes' buffers in order of appearance.
std::vector<Buffer> allocated(const Stmt& root);

For make_loop(Var var, Expr extent, AxisKind kind, Stmt body);

}  // namespace tenon
