#include <llvm/IR/Dominators.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>
#include <algorithm>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"

namespace tenon {

Emitter::Emitter(const Program& program, const Target& target, const CodePlan& plan,
                 llvm::Module& module, const CodegenOptions& options)
    : program_(program),
      target_(target),
      plan_(plan),
      module_(module),
      context_(module.getContext()),
      symbol_(options.symbol),
      in_place_(options.in_place),
      poison_(options.poison),
      builder_(context_) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder_.setFastMathFlags(flags);
}

llvm::BasicBlock* Emitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, frame_.function);
}

/// A function with the target's attributes and two blocks: "entry" for allocas and bases, "body"
/// for the rest.
llvm::Function* Emitter::begin_function(const std::string& name, llvm::FunctionType* type,
                                        bool is_entry) {
  frame_ = Frame{};
  const auto linkage = is_entry ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage;
  llvm::Function* f = llvm::Function::Create(type, linkage, name, module_);
  frame_.function = f;
  f->setDoesNotThrow();
  f->addFnAttr("target-cpu", machine_cpu());
  f->addFnAttr("tune-cpu", tune_cpu(target_));
  f->addFnAttr("target-features", feature_text(target_));
  f->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
  f->addFnAttr("min-legal-vector-width", std::to_string(target_.vector_bits));
  llvm::BasicBlock* entry = new_block("entry");
  llvm::BasicBlock* body = new_block("body");
  builder_.SetInsertPoint(entry);
  frame_.entry_end = builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  return f;
}

/// Register parts become SSA values; that they can is part of what this file promises.
void Emitter::finish_function() {
  for (const llvm::AllocaInst* part : frame_.register_parts) {
    TENON_CHECK(llvm::isAllocaPromotable(part), "register buffer part \"{}\" has an address",
                part->getName().str());
  }
  if (frame_.register_parts.empty()) return;
  llvm::DominatorTree dominators(*frame_.function);
  llvm::PromoteMemToReg(frame_.register_parts, dominators);
}

/// Each buffer in memory is a scope of its own, apart from all others except workspace buffers that
/// share bytes with it and parameters that may be one array. (Other arguments that are written
/// overlap none: the runtime refuses such calls.)
void Emitter::make_alias_scopes() {
  std::vector<const BufferNode*> buffers;
  for (const Param& p : program_.params) buffers.push_back(p.buffer.get());
  std::unordered_set<const BufferNode*> known(buffers.begin(), buffers.end());
  walk(
      program_.body,
      [&](const Stmt& s) {
        const Allocate* n = s.as<Allocate>();
        if (n && !in_registers(*n->buffer) && known.insert(n->buffer.get()).second)
          buffers.push_back(n->buffer.get());
        return true;
      },
      [](const Expr&) { return false; });
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(symbol_);
  std::vector<llvm::Metadata*> scopes;
  for (const BufferNode* b : buffers) {
    scopes.push_back(metadata.createAnonymousAliasScope(domain, b->name));
    scopes_[b] = llvm::MDNode::get(context_, scopes.back());
  }
  const auto one_array = [&](const BufferNode* a, const BufferNode* b) {
    return std::any_of(in_place_.begin(), in_place_.end(), [&](const auto& pair) {
      const BufferNode* first = program_.params[pair.first].buffer.get();
      const BufferNode* second = program_.params[pair.second].buffer.get();
      return (first == a && second == b) || (first == b && second == a);
    });
  };
  auto apart = [&](const BufferNode* a, const BufferNode* b) {
    return !one_array(a, b) && !plan_.may_overlap(a, b);
  };
  for (const BufferNode* b : buffers) {
    std::vector<llvm::Metadata*> others;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i] != b && apart(b, buffers[i])) others.push_back(scopes[i]);
    }
    others_[b] = others.empty() ? nullptr : llvm::MDNode::get(context_, others);
  }
}

void Emitter::bind_dims(llvm::Value* dims) {
  llvm::IRBuilder<> top(frame_.entry_end);
  for (size_t i = 0; i < plan_.dims.size(); ++i) {
    llvm::Value* place = top.CreateConstGEP1_64(top.getInt64Ty(), dims, i);
    llvm::Value* extent = top.CreateLoad(top.getInt64Ty(), place, plan_.dims[i].name());
    frame_.depths[extent] = 0;
    bind(plan_.dims[i], extent);
    frame_.non_negative.insert(plan_.dims[i].get());
  }
}

/// The value of an expression of symbolic extents, computed once for the function.
llvm::Value* Emitter::evaluate_at_entry(const Expr& e) {
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(frame_.entry_end);
  return evaluate(e);
}

/// void workspace(const int64_t* dims, int64_t* bytes): a tenon_workspace.
void Emitter::emit_workspace() {
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(),
                                       {builder_.getPtrTy(), builder_.getPtrTy()}, false);
  llvm::Function* f = begin_function(workspace_symbol(symbol_), type, true);
  bind_dims(f->getArg(0));
  const Expr bytes[] = {plan_.shared_bytes, plan_.bytes_per_worker};
  for (unsigned n = 0; n < 2; ++n) {
    llvm::Value* place = builder_.CreateConstGEP1_64(builder_.getInt64Ty(), f->getArg(1), n);
    builder_.CreateStore(evaluate(bytes[n]), place);
  }
  builder_.CreateRetVoid();
}

void Emitter::emit_entry() {
  llvm::Type* ptr = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {ptr, ptr, ptr, ptr, ptr}, false);
  llvm::Function* f = begin_function(symbol_, type, true);
  llvm::IRBuilder<> top(frame_.entry_end);
  for (size_t i = 0; i < program_.params.size(); ++i) {
    const BufferNode& b = *program_.params[i].buffer;
    llvm::Value* place = top.CreateConstGEP1_64(ptr, f->getArg(0), i);
    llvm::Value* pointer = top.CreateLoad(ptr, place, b.name);
    frame_.depths[pointer] = 0;
    frame_.homes[&b].pointer = pointer;
  }
  bind_dims(f->getArg(1));
  frame_.workspace = f->getArg(2);
  frame_.parallel_for = f->getArg(3);
  frame_.pool = f->getArg(4);
  emit(program_.body);
  finish_tiles();
  builder_.CreateRet(builder_.getInt32(0));
  finish_function();
}

void Emitter::run() {
  make_alias_scopes();
  emit_entry();
  if (plan_.symbolic_workspace()) emit_workspace();
}

}  // namespace tenon
