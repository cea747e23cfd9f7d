#include "codegen/llvm/codegen.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Verifier.h>
#include <tenon/support/error.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace tenon {
namespace {

struct Translation {
  std::unique_ptr<llvm::LLVMContext> context;  // before the module, which it must outlive
  std::unique_ptr<llvm::Module> module;
  llvm::TargetMachine* machine = nullptr;
  WorkspaceBytes workspace;
};

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

Translation translate(const Program& flat, const Target& target, const CodegenOptions& options) {
  Translation t;
  t.machine = &machine_for(target);
  t.context = std::make_unique<llvm::LLVMContext>();
  t.module = std::make_unique<llvm::Module>(flat.name, *t.context);
  t.module->setTargetTriple(t.machine->getTargetTriple().str());
  t.module->setDataLayout(t.machine->createDataLayout());
  const CodePlan plan = plan_code(flat, options.reuse_workspace);
  t.workspace.symbolic = plan.symbolic_workspace();
  if (!t.workspace.symbolic)
    t.workspace = {*as_int(plan.shared_bytes), *as_int(plan.bytes_per_worker), false};
  Emitter(flat, target, plan, *t.module, options).run();
  if (options.verify_module) {
    std::string problem;
    llvm::raw_string_ostream out(problem);
    if (llvm::verifyModule(*t.module, &out)) {
      throw InternalError(
          fmt::format("code generation for \"{}\" gave a module that LLVM refuses: {}\n{}",
                      flat.name, problem, text_of(*t.module)));
    }
  }
  run_passes(*t.module, *t.machine);
  return t;
}

}  // namespace

ObjectCode generate_object(const Program& flat, const Target& target,
                           const CodegenOptions& options) {
  const Translation t = translate(flat, target, options);
  return {emit_machine_code(*t.module, *t.machine, false), options.symbol, t.workspace};
}

std::string generate_llvm_ir(const Program& flat, const Target& target,
                             const CodegenOptions& options) {
  return text_of(*translate(flat, target, options).module);
}

std::string generate_assembly(const Program& flat, const Target& target,
                              const CodegenOptions& options) {
  const Translation t = translate(flat, target, options);
  return emit_machine_code(*t.module, *t.machine, true);
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace tenon
