#include <tenon/ir/notes.h>
#include <tenon/schedule/mark_primitives.h>

#include <algorithm>

#include "ir/loop_body.h"
#include "schedule/mark.h"
#include "schedule/place.h"

namespace tenon {
namespace {

bool holds(const std::vector<Buffer>& buffers, const Buffer& b) {
  return std::find(buffers.begin(), buffers.end(), b) != buffers.end();
}

/// One loop that is to have two copies of a buffer.
class DoubleBuffered {
 public:
  DoubleBuffered(const For& loop, const std::string& mark)
      : loop_(loop), body_(loop.body), mark_(mark) {}

  void check(const std::string& name) const {
    const auto found = std::find_if(body_.allocated.begin(), body_.allocated.end(),
                                    [&](const Buffer& b) { return b->name == name; });
    if (found == body_.allocated.end())
      return refuse(Rule::double_buffer_place,
                    cannot(name, fmt::format("{} is not allocated in the body of loop \"{}\"", name,
                                             where())),
                    "cache_read or compute_at at that loop, then double_buffer", mark_);
    const Buffer& buffer = *found;
    if (buffer->scope == Scope::reg)
      refuse(Rule::double_buffer_register, cannot(name, fmt::format("{} is in registers", name)),
             "registers need no second copy", mark_);
    if (loop_.mark != LoopMark::serial)
      refuse(Rule::double_buffer_serial,
             cannot(name,
                    fmt::format("loop \"{}\" is {}, and its iterations hand the copies on in order",
                                where(), tenon::name(loop_.mark))),
             "a serial loop", mark_);
    check_parts(buffer);
  }

 private:
  const std::string& where() const { return loop_.var.name(); }

  void check_parts(const Buffer& buffer) const {
    bool read = false, filled = false;
    for (const Stmt& part : body_.parts) {
      const std::vector<StagePath> stages = stage_paths(part);
      const bool fills = std::any_of(stages.begin(), stages.end(),
                                     [&](const StagePath& p) { return writes(*p.stage, buffer); });
      for (const StagePath& p : stages) {
        if (!fills) {
          read = read || reads(*p.stage, buffer);
          continue;
        }
        if (read)
          refuse(Rule::double_buffer_late,
                 cannot(buffer->name,
                        fmt::format(
                            "stage \"{}\" writes {} after it has been read in the same iteration",
                            p.stage->name, buffer->name)),
                 "only what is filled at the top of the loop's body can be filled ahead", mark_);
        check_filler(*p.stage, part, buffer);
      }
      filled = filled || fills;
    }
    if (!filled)
      refuse(Rule::double_buffer_unfilled,
             cannot(buffer->name,
                    fmt::format("nothing in loop \"{}\" fills {}", where(), buffer->name)),
             {}, mark_);
  }

  /// A stage of a part that fills `buffer`.
  void check_filler(const Stage& stage, const Stmt& part, const Buffer& buffer) const {
    const std::vector<Buffer> own = allocated(part);
    for (const Buffer& b : stage.outputs)
      if (!(b == buffer) && !holds(own, b))
        refuse(Rule::double_buffer_beside,
               cannot(buffer->name,
                      fmt::format("stage \"{}\" also writes {} in the nest that fills {}",
                                  stage.name, b->name, buffer->name)),
               "fill it in a nest of its own", mark_);
    for (const Buffer& b : inputs_of(stage)) {
      if (b == buffer || holds(own, b)) continue;
      for (const StagePath& p : stage_paths(loop_.body))
        if (writes(*p.stage, b))
          refuse(Rule::double_buffer_depends,
                 cannot(buffer->name,
                        fmt::format(
                            "stage \"{}\" fills {} from {}, which stage \"{}\" writes in the same "
                            "loop: the next iteration's contents are not known yet",
                            stage.name, buffer->name, b->name, p.stage->name)),
                 "double-buffer what reads only buffers written before the loop", mark_);
    }
  }

  std::string cannot(const std::string& name, const std::string& why) const {
    return fmt::format("{} cannot have two copies in loop \"{}\": {}", name, where(), why);
  }

  const For& loop_;
  const LoopBody body_;
  const std::string mark_;
};

}  // namespace

void check_double_buffers(const std::vector<StagePath>& all) {
  for (const StagePath& path : all)
    for (size_t n = 0; n < path.loops.size(); ++n) {
      if (path.loops[n]->notes.empty()) continue;
      for (const std::string& buffer : noted_buffers(path.loops[n]->notes, "double_buffer"))
        DoubleBuffered(*path.loops[n], full_name(path, n)).check(buffer);
    }
}

/// for x: { allocate T; fill T; S reads T }   ->   for x  double_buffer(T)=1: { ... }
Program DoubleBuffer::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  find_buffer(program, buffer);
  return with_note(program, path.loops[at]->var, double_buffer_note(buffer), 1);
}

}  // namespace tenon
