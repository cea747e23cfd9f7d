#pragma once
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/llvm/codegen.h"

namespace tenon {

/// The baseline whose features every target's list extends: "x86-64".
std::string machine_cpu();

/// The processor whose instruction costs the scheduler assumes: the target's own, or one typical of
/// its level.
std::string tune_cpu(const Target& target);

/// "+avx2,+fma,..."
std::string feature_text(const Target& target);

/// LLVM's description of `target`, cached per thread (a TargetMachine is not thread-safe).
/// UserError for a machine that is no x86-64.
llvm::TargetMachine& machine_for(const Target& target);

/// Cleans `module` up: a short list of passes, never the default pipeline. (passes.cpp)
void run_passes(llvm::Module& module, llvm::TargetMachine& machine);

/// The bytes of an object file, or assembly text.
std::string emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, bool as_text);

}  // namespace tenon
