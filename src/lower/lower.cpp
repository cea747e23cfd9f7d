#include "lower/lower.h"

#include <tenon/support/log.h>

#include <cstdlib>

#include "lower/passes.h"

namespace tenon {
namespace {

class Passes {
 public:
  Passes(Program program, const LowerOptions& options)
      : program_(std::move(program)), options_(options) {}

  template <class F>
  void run(std::string_view name, const F& pass) {
    program_ = pass(program_);
    if (log_level() >= 3) log_line(3, fmt::format("lower/{}", name), print(program_));
    if (std::getenv("TENON_DUMP")) dump_text(fmt::format("lower-{}", name), print(program_));
    if (options_.after_pass) options_.after_pass(name, program_);
  }

  Program result() && { return std::move(program_); }

 private:
  Program program_;
  const LowerOptions& options_;
};

}  // namespace

Program lower(const Program& loop_tree, const Target& target, const LowerOptions& options) {
  Passes passes(loop_tree, options);
  passes.run("expand_inits", expand_inits);
  passes.run("lower_stages", lower_stages);
  if (target.is_gpu()) {
    passes.run("compact_block_buffers",
               [&](const Program& p) { return compact_buffers(p, target, Memory::of_block); });
    passes.run("bind_threads", bind_threads);
    passes.run("compact_thread_buffers",
               [&](const Program& p) { return compact_buffers(p, target, Memory::of_thread); });
  } else {
    passes.run("compact_buffers", [&](const Program& p) { return compact_buffers(p, target); });
    passes.run("issue_prefetches", issue_prefetches);
    passes.run("double_buffers", double_buffers);
  }
  passes.run("partition_loops",
             [&](const Program& p) { return partition_loops(p, options.max_statements); });
  passes.run("flatten_buffers", flatten_buffers);
  passes.run("vectorize_loops", [&](const Program& p) {
    Program out = vectorize_loops(p, target);
    check_registers(out);
    return out;
  });
  passes.run("expand_math", [&](const Program& p) { return expand_math(p, target); });
  passes.run("simplify_program", simplify_program);
  return std::move(passes).result();
}

}  // namespace tenon
