#include "codegen/llvm/machine.h"
#include <tenon/support/error.h>

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetOptions.h>

#include <map>
#include <mutex>

namespace tenon {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

const llvm::Target& x86_64() {
  static const llvm::Target* found = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    std::string error;
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, error);
    TENON_CHECK(t, "LLVM has no target {}: {}", kTriple, error);
    return t;
  }();
  return *found;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // fuse what carries the contract flag
  std::unique_ptr<llvm::TargetMachine> machine(x86_64().createTargetMachine(
      kTriple, machine_cpu(), feature_text(target), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/false));
  TENON_CHECK(machine, "LLVM makes no machine for {}", target.name);
  return machine;
}

}  // namespace

std::string machine_cpu() { return "x86-64"; }

std::string tune_cpu(const Target& target) {
  if (!target.llvm_cpu.empty()) return target.llvm_cpu;
  if (target.vector_bits >= 512) return "icelake-server";
  return target.vector_bits == 256 ? "haswell" : "x86-64";
}

std::string feature_text(const Target& target) {
  std::string text;
  for (const std::string& f : target.features) text += (text.empty() ? "+" : ",+") + f;
  return text;
}

llvm::TargetMachine& machine_for(const Target& target) {
  if (target.name.rfind("x86-64", 0) != 0) {
    throw UserError(fmt::format(
        "target {}: this build generates code for x86-64 processors only\n  try: one of {}",
        target.name, fmt::join(Target::known_names(), ", ")));
  }
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  auto& machine = machines[feature_text(target)];
  if (!machine) machine = make_machine(target);
  return *machine;
}

std::string emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, bool as_text) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  const auto kind =
      as_text ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  const bool refused = machine.addPassesToEmitFile(passes, out, nullptr, kind);
  TENON_CHECK(!refused, "LLVM cannot write this kind of file");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace tenon
