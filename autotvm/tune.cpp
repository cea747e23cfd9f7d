#include <tenon/autotvm/tune.h>
#include <tenon/support/error.h>

#include "autotvm/budget.h"

namespace tenon {
namespace {

ProgressState state_of(const TuneSession& session, const TuneOptions& options,
                       const Deadline& deadline) {
  ProgressState state = session.progress();
  state.elapsed_s = deadline.elapsed_s();
  add_peak_share(state, session.task().target.cores, options);
  return state;
}

}  // namespace

SpaceKind parse_space_kind(const std::string& word) {
  if (word == "both") return SpaceKind::both;
  if (word == "templates") return SpaceKind::templates;
  if (word == "sketches") return SpaceKind::sketches;
  throw UserError(fmt::format(
      "there is no space \"{}\"\n  what can be searched: both, templates, sketches", word));
}

TuneReport tune_with_report(const Task& task, const TuneOptions& options) {
  const Deadline deadline(options.time_s);
  TuneSession session(task, options);
  ProgressLine line(options.quiet);
  auto state = [&] { return state_of(session, options, deadline); };
  session.start();
  line.show(state());
  bool said_busy = false;
  while (!session.finished() && !deadline.passed(session.finish_s())) {
    session.begin_until(deadline.us(session.finish_s()));
    session.run(batch_size(session));
    line.show(state());
    mention_busy(session, line, said_busy);
  }
  TuneReport report = session.finish();
  line.finish(state());
  return report;
}

Record tune(const Task& task, const TuneOptions& options) {
  return tune_with_report(task, options).best.record;
}

}  // namespace tenon
