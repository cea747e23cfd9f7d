#include "codegen/text/text.h"

#include <fmt/format.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "codegen/text/emit.h"

namespace tenon {
namespace {

constexpr int64_t kAlign = 64;  // bytes, of buffers in the workspace
constexpr int64_t kPrivateBytes =
    4096;  // a global buffer of one thread that is an array of its own

constexpr int64_t kLocalBytes = 16 << 10;  // local memory of one thread

/// A kernel of OpenCL knows all sizes when it is made.
void refuse_symbols(const Program& program) {
  if (program.symbols.empty()) return;
  std::vector<std::string> names;
  for (const Var& v : program.symbols) names.push_back(v.name());
  throw UserError(fmt::format(
      "code generation of {}: the extents {} are symbolic; code for OpenCL is made for "
      "one size\n  try: the formula with numbers for them, or the CPU, where one kernel "
      "serves all sizes",
      program.name, join(names)));
}

int64_t constant(const Expr& extent) {
  const std::optional<int64_t> value = as_int(extent);
  TENON_CHECK(value, "text code: {} is no constant", print(extent));
  return *value;
}

int64_t bytes_of(const Buffer& b) { return constant(b->shape[0]) * byte_size(b->dtype); }

/// Everything that is one source text: kernels in order, helpers, the workspace.
class Source {
 public:
  Source(const Program& program, const Target& target, const Dialect& dialect)
      : program_(program), target_(target), d_(dialect), helpers_(dialect) {}

  DeviceSource run() {
    refuse_symbols(program_);
    for (const Param& p : program_.params) {
      check_type(p.buffer);
      params_.push_back(names_.fresh(p.buffer->name));
      globals_[p.buffer] = {params_.back(), false};
    }
    if (program_.body.defined()) root(program_.body);
    out_.text = d_.prelude + helpers_.definitions() + kernels_;
    return std::move(out_);
  }

 private:
  void check_type(const Buffer& b) const {
    if (b->dtype != f64 || target_.has_feature("fp64")) return;
    throw UserError(
        fmt::format("code generation of {}: {} is f64, which {} cannot compute with\n  try: f32",
                    program_.name, b->name, target_.cpu));
  }

  int64_t place(int64_t bytes) {
    const int64_t at = out_.workspace_bytes;
    out_.workspace_bytes += (bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  }

  /// Buffers outside all nests live in the workspace, nests are kernels. Neighbours for one thread
  /// are one kernel: each costs the driver time.
  void root(const Stmt& s) {
    if (const Seq* n = s.as<Seq>()) {
      std::vector<Stmt> single;
      const auto flush = [&] {
        if (!single.empty()) kernel(seq(single));
        single.clear();
      };
      for (const Stmt& part : n->stmts) {
        if (!part.as<Allocate>() && !has_bound_loop(part)) {
          single.push_back(part);
          continue;
        }
        flush();
        root(part);
      }
      flush();
    } else if (const Allocate* n = s.as<Allocate>(); n && n->buffer->scope == Scope::global) {
      check_type(n->buffer);
      outside_.push_back({n->buffer, place(bytes_of(n->buffer))});
      root(n->body);
    } else {
      kernel(s);
    }
  }

  std::string pointer(const Buffer& b, const std::string& name, const std::string& offset) const {
    return fmt::format("{0}{1}* const {2} = ({0}{1}*)(workspace + {3});", d_.global,
                       d_.type(b->dtype), name, offset);
  }

  void kernel(const Stmt& nest) {
    TextKernel k;
    k.name = fmt::format("kernel_{}", out_.kernels.size());
    TextEmitter e(d_, helpers_, names_, globals_);
    for (const auto& [buffer, offset] : outside_) {
      const std::string name = names_.fresh(buffer->name);
      e.line(pointer(buffer, name, fmt::format("{}L", offset)));
      e.add_buffer(buffer, {name, false});
    }
    Stmt body = nest;
    std::vector<Buffer> of_block;
    while (peel(body, k, e, of_block)) {
    }
    // A buffer of the block lies between block and thread loops; without either, in the body.
    const int64_t blocks = k.grid[0] * k.grid[1] * k.grid[2];
    int64_t shared = 0;
    collect_shared(body, of_block);
    for (const Buffer& b : of_block) block_memory(b, k, blocks, e, shared);
    check_shared(shared);
    thread_memory(body, k, blocks, e);
    e.stmt(body);
    std::vector<std::string> params;
    for (size_t p = 0; p < params_.size(); ++p)
      params.push_back(fmt::format("{}{}* {}", d_.global, d_.type(program_.params[p].buffer->dtype),
                                   params_[p]));
    params.push_back(fmt::format("{}uchar* workspace", d_.global));
    kernels_ += fmt::format("\n{} {}({}) {{\n{}}}\n", d_.kernel, k.name, join(params), e.text());
    out_.kernels.push_back(k);
  }

  /// Takes the outermost block or thread loop, or block's buffer, off the body.
  bool peel(Stmt& body, TextKernel& k, TextEmitter& e, std::vector<Buffer>& of_block) {
    if (const Allocate* n = body.as<Allocate>();
        n && (n->buffer->scope == Scope::shared || holds_threads(n->body))) {
      check_type(n->buffer);
      of_block.push_back(n->buffer);
      const Stmt inside = n->body;
      body = inside;
      return true;
    }
    const For* n = body.as<For>();
    if (!n || !is_bound(n->mark)) return false;
    const bool thread = is_thread(n->mark);
    const int axis = static_cast<int>(n->mark) -
                     static_cast<int>(thread ? LoopMark::thread_x : LoopMark::block_x);
    const int64_t extent = constant(n->extent);
    (thread ? k.block : k.grid)[static_cast<size_t>(axis)] = extent;
    e.define(n->var, (thread ? d_.thread_id : d_.block_id)(axis), extent);
    const Stmt inside = n->body;
    body = inside;
    return true;
  }

  static void collect_shared(const Stmt& body, std::vector<Buffer>& of_block) {
    walk(
        body,
        [&](const Stmt& s) {
          const Allocate* n = s.as<Allocate>();
          if (n && n->buffer->scope == Scope::shared) of_block.push_back(n->buffer);
          return true;
        },
        nullptr);
  }

  static bool has_loop(const Stmt& s, bool (*wanted)(LoopMark)) {
    bool found = false;
    walk(
        s,
        [&](const Stmt& x) {
          const For* n = x.as<For>();
          found = found || (n && wanted(n->mark));
          return !found;
        },
        nullptr);
    return found;
  }
  static bool holds_threads(const Stmt& s) {
    return has_loop(s, [](LoopMark m) { return is_thread(m); });
  }
  static bool has_bound_loop(const Stmt& s) {
    return has_loop(s, [](LoopMark m) { return is_bound(m); });
  }

  /// The number of a block or thread, in 64 bits.
  std::string linear_id(std::string (*id)(int), const std::array<int64_t, 3>& extents) const {
    return fmt::format("((({0}){1} * {2}L + {3}) * {4}L + {5})", d_.type(i64), id(2), extents[1],
                       id(1), extents[0], id(0));
  }
  std::string linear_block(const TextKernel& k) const { return linear_id(d_.block_id, k.grid); }

  void block_memory(const Buffer& b, const TextKernel& k, int64_t blocks, TextEmitter& e,
                    int64_t& shared) {
    const std::string name = names_.fresh(b->name);
    const int64_t bytes = std::max<int64_t>(bytes_of(b), 1);
    if (b->scope == Scope::shared) {
      shared += (bytes + 15) / 16 * 16;
      e.line(fmt::format("{}{} {}[{}];", d_.shared, d_.type(b->dtype), name,
                         bytes / byte_size(b->dtype)));
    } else {
      const int64_t slice = (bytes + kAlign - 1) / kAlign * kAlign, at = place(slice * blocks);
      e.line(pointer(b, name, fmt::format("{}L + {} * {}L", at, linear_block(k), slice)));
    }
    e.add_buffer(b, {name, false});
  }

  void check_shared(int64_t bytes) const {
    if (bytes <= target_.limits.shared_bytes) return;
    throw UserError(fmt::format(
        "code generation of {}: a block needs {} bytes of shared memory; {} allows {}\n  try: a "
        "smaller tile, or global scope for one of the buffers",
        program_.name, bytes, target_.cpu, target_.limits.shared_bytes));
  }

  void check_private(const Buffer& b, int64_t bytes) const {
    if (bytes <= kLocalBytes) return;
    throw UserError(fmt::format(
        "code generation of {}: local buffer {} has {} bytes in each thread; the limit is {}\n  "
        "try: a smaller tile, or shared or global scope",
        program_.name, b->name, bytes, kLocalBytes));
  }

  /// Large global buffers inside thread loops: a slice of the workspace for each thread.
  void thread_memory(const Stmt& body, const TextKernel& k, int64_t blocks, TextEmitter& e) {
    walk(
        body,
        [&](const Stmt& s) {
          const Allocate* n = s.as<Allocate>();
          if (!n) return true;
          check_type(n->buffer);
          const int64_t bytes = bytes_of(n->buffer);
          if (n->buffer->scope == Scope::local) check_private(n->buffer, bytes);
          if (n->buffer->scope != Scope::global) return true;
          if (bytes <= kPrivateBytes) return true;
          const int64_t threads = k.block[0] * k.block[1] * k.block[2],
                        slice = (bytes + kAlign - 1) / kAlign * kAlign,
                        at = place(slice * blocks * threads);
          const std::string name = names_.fresh(n->buffer->name),
                            thread = linear_id(d_.thread_id, k.block);
          e.line(pointer(n->buffer, name,
                         fmt::format("{}L + ({} * {}L + {}) * {}L", at, linear_block(k), threads,
                                     thread, slice)));
          e.add_buffer(n->buffer, {name, false});
          return true;
        },
        nullptr);
  }

  const Program& program_;
  const Target& target_;
  const Dialect& d_;
  Helpers helpers_;
  Names names_;
  std::vector<std::string> params_;
  TextBuffers globals_;
  std::vector<std::pair<Buffer, int64_t>> outside_;  // with their offsets in the workspace
  std::string kernels_;
  DeviceSource out_;
};

}  // namespace

DeviceSource generate_text(const Program& flat, const Target& target, const Dialect& dialect) {
  return Source(flat, target, dialect).run();
}

}  // namespace tenon
