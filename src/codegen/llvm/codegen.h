#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <memory>
#include <utility>
#include <vector>

namespace tenon {

/// Global-scope Allocates of a flat program live in the caller's workspace: those outside parallel
/// loops once, those inside once per worker. Total bytes = shared + workers * per_worker; all
/// offsets are 64-byte aligned.
struct WorkspaceBytes {
  int64_t shared = 0;
  int64_t per_worker = 0;
  /// Both depend on the symbolic extents: workspace_symbol() in the object says them.
  bool symbolic = false;
};

struct ObjectCode {
  std::string bytes;   // an ELF object file
  std::string symbol;  // its entry, of type tenon_kernel
  WorkspaceBytes workspace;
};

/// The function of type tenon_workspace that an object with a symbolic workspace has beside its
/// entry.
inline std::string workspace_symbol(const std::string& entry) { return entry + "_workspace"; }

struct CodegenOptions {
  std::string symbol = "tenon_entry";
  bool verify_module = true;
  /// Pairs of parameters that may be the same memory at a call; all others never overlap where one
  /// of them is written.
  std::vector<std::pair<size_t, size_t>> in_place = {};
  bool reuse_workspace = true;  ///< for tests; off: every Allocate has bytes of its own
  bool poison = false;          ///< for tests: an Allocate fills its bytes with 0xff at each entry
};

/// Flat function -> machine code for `target`. Thread-safe; each call has an LLVM context of its
/// own.
ObjectCode generate_object(const Program& flat, const Target& target,
                           const CodegenOptions& options = {});

/// The same up to LLVM IR after passes, or to assembly text, for people.
std::string generate_llvm_ir(const Program& flat, const Target& target,
                             const CodegenOptions& options = {});
std::string generate_assembly(const Program& flat, const Target& target,
                              const CodegenOptions& options = {});

/// Machine code made executable in this process; unloaded with the last handle.
struct LoadedCode {
  void* entry = nullptr;
  void* workspace = nullptr;  // of a symbolic workspace
  std::shared_ptr<void> keep_alive;
};
LoadedCode load_object(std::string_view object_bytes, const std::string& symbol,
                       bool symbolic_workspace = false);

/// "19.1.7"
std::string llvm_version();

}  // namespace tenon
