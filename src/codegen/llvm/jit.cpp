#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <atomic>

#include <tenon/support/error.h>
#include "codegen/llvm/codegen.h"

namespace tenon {
namespace {

namespace orc = llvm::orc;

template <class T>
T expect(llvm::Expected<T> value, const char* doing) {
  if (value) return std::move(*value);
  throw InternalError(
      fmt::format("loading machine code: {} failed: {}", doing, llvm::toString(value.takeError())));
}

void expect(llvm::Error error, const char* doing) {
  if (error)
    throw InternalError(fmt::format("loading machine code: {} failed: {}", doing,
                                    llvm::toString(std::move(error))));
}

/// The process's linker for objects (JITLink): each object gets a library of its own, so equal
/// symbols never meet. Lives as long as the process: code may be unloaded by destructors of static
/// objects.
class Linker {
 public:
  static Linker& instance() {
    static Linker* linker = new Linker;
    return *linker;
  }

  orc::JITDylib& add(std::string_view bytes) {
    orc::JITDylib& library = session_.createBareJITDylib(fmt::format("kernel{}", next_++));
    try {
      library.addGenerator(
          expect(orc::DynamicLibrarySearchGenerator::GetForCurrentProcess('\0'), "symbol search"));
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(
          llvm::StringRef(bytes.data(), bytes.size()), "kernel");
      expect(layer_.add(library, std::move(buffer)), "reading the object");
    } catch (...) {
      remove(library);
      throw;
    }
    return library;
  }

  void* find(orc::JITDylib& library, const std::string& symbol) {
    reported().clear();
    auto found = session_.lookup({&library}, symbol);
    if (found) return found->getAddress().toPtr<void*>();
    throw InternalError(fmt::format("loading machine code: linking failed: {}{}",
                                    llvm::toString(found.takeError()), reported()));
  }

  /// Called from destructors: what is left behind when this fails is memory.
  void remove(orc::JITDylib& library) {
    llvm::consumeError(session_.removeJITDylib(library));
    session_.getSymbolStringPool()->clearDeadEntries();
  }

 private:
  Linker()
      : session_(expect(orc::SelfExecutorProcessControl::Create(), "setting up")),
        layer_(session_) {
    session_.setErrorReporter(
        [](llvm::Error error) { reported() += "\n" + llvm::toString(std::move(error)); });
  }

  /// The reasons behind a failed look-up, which the session hands out on the thread that links.
  static std::string& reported() {
    thread_local std::string text;
    return text;
  }

  orc::ExecutionSession session_;
  orc::ObjectLinkingLayer layer_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

LoadedCode load_object(std::string_view object_bytes, const std::string& symbol,
                       bool symbolic_workspace) {
  Linker& linker = Linker::instance();
  orc::JITDylib& library = linker.add(object_bytes);
  std::shared_ptr<void> handle(
      &library, [&linker](void* p) { linker.remove(*static_cast<orc::JITDylib*>(p)); });
  void* entry = linker.find(library, symbol);
  void* workspace = symbolic_workspace ? linker.find(library, workspace_symbol(symbol)) : nullptr;
  return {entry, workspace, std::move(handle)};
}

}  // namespace tenon
