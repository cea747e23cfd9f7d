#include <tenon/ir/visit.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>
#include <tenon/support/log.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "schedule/alternatives.h"
#include "schedule/tree.h"

namespace tenon {
namespace {

constexpr size_t kMostSteps = 64;  // that a template takes, as a rule

/// Loops that a step consumed, and what became of them: {"k", "was split into ..."}.
std::vector<std::pair<std::string, std::string>> consumed(const Primitive& primitive) {
  if (const Split* p = std::get_if<Split>(&primitive))
    return {{p->loop, fmt::format("was split into \"{0}.o\", \"{0}.i\"", p->loop)}};
  if (const Tile* p = std::get_if<Tile>(&primitive))
    return {{p->outer, fmt::format("was split into \"{0}.o\", \"{0}.i\"", p->outer)},
            {p->inner, fmt::format("was split into \"{0}.o\", \"{0}.i\"", p->inner)}};
  if (const Fuse* p = std::get_if<Fuse>(&primitive)) {
    const std::string fate = fmt::format("was fused into \"{}_{}\"", p->outer, p->inner);
    return {{p->outer, fate}, {p->inner, fate}};
  }
  return {};
}

/// Adds what the step uses up, by "stage:loop" or stage, and what becomes of it.
void note_used_up(const Primitive& primitive, const Program& before, size_t number,
                  std::map<std::string, std::string>& used_up) {
  const std::string step = fmt::format(" by step {}", number);
  if (const ComputeInline* p = std::get_if<ComputeInline>(&primitive))
    used_up[p->stage] = "was inlined into its readers" + step;
  if (const ReverseComputeInline* p = std::get_if<ReverseComputeInline>(&primitive))
    used_up[p->stage] = "was inlined into what it reads" + step;
  if (const RFactor* p = std::get_if<RFactor>(&primitive)) {
    const StagePath path = find_stage(before, p->stage);
    for (const For* l : path.loops)
      if (binds_reduce(*path.stage, l->var) && l->var.name() != p->loop)
        used_up[p->stage + ":" + l->var.name()] =
            fmt::format("went to \"{}\"{}", fresh_name(before, p->stage + ".rf"), step);
  }
  const auto loops = consumed(primitive);
  if (loops.empty()) return;
  const std::string stage = std::visit(
      [](const auto& p) -> std::string {
        if constexpr (requires { p.stage; }) return p.stage;
        return {};
      },
      primitive);
  const StagePath path = find_stage(before, stage);
  for (const auto& [loop, fate] : loops) {
    const For* gone = path.loops[find_loop(path, loop)];
    for (const StagePath& other : stage_paths(before.body))
      if (std::find(other.loops.begin(), other.loops.end(), gone) != other.loops.end())
        used_up[other.stage->name + ":" + loop] = fate + step;
  }
}

std::string indented(const std::string& text, std::string_view margin) {
  std::string out;
  for (const std::string& line : split_text(text, '\n'))
    if (!line.empty()) out += fmt::format("{}{}\n", margin, line);
  return out;
}

/// A loop tree for an error message: long lines cut, and of many lines only those around the marked
/// one (or the first).
std::string excerpt(const std::string& tree) {
  constexpr size_t kColumns = 200, kLines = 80, kBefore = 30;
  const std::vector<std::string> lines = split_text(tree, '\n');
  size_t from = 0;
  if (lines.size() > kLines) {
    const auto marked = std::find_if(lines.begin(), lines.end(),
                                     [](const std::string& l) { return l.rfind("> ", 0) == 0; });
    const size_t at = marked == lines.end() ? 0 : static_cast<size_t>(marked - lines.begin());
    from = std::min(at < kBefore ? 0 : at - kBefore, lines.size() - kLines);
  }
  const size_t to = std::min(lines.size(), from + kLines);
  std::string out = from > 0 ? fmt::format("... {} lines before\n", from) : "";
  for (size_t n = from; n < to; ++n)
    out += lines[n].size() <= kColumns ? lines[n] + "\n" : lines[n].substr(0, kColumns) + " ...\n";
  if (to < lines.size()) out += fmt::format("... {} lines more\n", lines.size() - to);
  return out;
}

}  // namespace

LoopRef::LoopRef(std::string_view text) : name(text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return;
  stage = text.substr(0, colon);
  name = text.substr(colon + 1);
}

Schedule::Schedule(Program program, Target target)
    : target_(std::make_shared<const Target>(std::move(target))) {
  ScheduleState first{std::move(program), {}, 0};
  first.paths = stage_paths(first.program.body);
  first_ = state_ = std::make_shared<const ScheduleState>(std::move(first));
  if (paths().size() == 1) only_stage_ = paths()[0].stage->name;
}

Schedule::Schedule(std::shared_ptr<StepCache> steps)
    : first_(steps->first()), state_(first_), target_(steps->target()), steps_(std::move(steps)) {
  trace_.reserve(kMostSteps);
  if (paths().size() == 1) only_stage_ = paths()[0].stage->name;
}

std::string Schedule::print() const { return tenon::print(program()); }

std::vector<std::string> Schedule::stages() const {
  std::vector<std::string> out;
  for (const StagePath& path : paths()) out.push_back(path.stage->name);
  return out;
}

bool Schedule::has_stage(std::string_view name) const {
  return std::any_of(paths().begin(), paths().end(),
                     [&](const StagePath& path) { return path.stage->name == name; });
}

StageSteps Schedule::operator[](const StageRef& stage) {
  if (has_stage(stage.name)) return {*this, stage.name};
  const std::vector<std::string> all = stages();
  const std::map<std::string, std::string> fates = used_up();
  const auto fate = fates.find(stage.name);
  throw ScheduleError(
      fmt::format("schedule error in {}: there is no stage \"{}\"; the stages are {}\n{}",
                  program().name, stage.name, quoted_list(all),
                  fate != fates.end() ? fmt::format("  stage \"{}\" {}\n", stage.name, fate->second)
                                      : indented(did_you_mean(stage.name, all), "  try: ")));
}

std::string Schedule::spoken_stage() {
  if (!only_stage_.empty()) return only_stage_;
  throw ScheduleError(
      fmt::format("schedule error in {}: there are several stages: {}\n"
                  "  try: name one, as in s[\"{}\"].split(...)\n",
                  program().name, quoted_list(stages()), stages().back()));
}

std::optional<Refusal> Schedule::try_apply(const Primitive& primitive) {
  try {
    state_ = steps_
                 ? steps_->step(state_, primitive)
                 : std::make_shared<const ScheduleState>(next_state(*state_, *target_, primitive));
    trace_.push_back(primitive);
    if (log_level() >= 2) log_line(2, "schedule", to_cpp(primitive));
    return std::nullopt;
  } catch (const Refusal& refusal) {
    return refusal;
  }
}

void Schedule::apply(const Primitive& primitive) {
  if (const std::optional<Refusal> refusal = try_apply(primitive))
    throw ScheduleError(message(primitive, *refusal));
}

std::string Schedule::message(const Primitive& primitive, const Refusal& refusal) const {
  std::string out = fmt::format("schedule error in {}, step {}: {}\n", program().name,
                                trace_.size() + 1, to_text(primitive));
  out += indented(refusal.rule, "  ");
  const std::map<std::string, std::string> fates = used_up();
  const auto fate = fates.find(refusal.missing);
  if (fate != fates.end()) {
    const size_t colon = refusal.missing.find(':');
    out += colon == std::string::npos
               ? fmt::format("  stage \"{}\" {}\n", refusal.missing, fate->second)
               : fmt::format("  loop \"{}\" {}\n", refusal.missing.substr(colon + 1), fate->second);
  }
  out += indented(refusal.hint, "  try: ");
  const auto rule = std::find_if(rules().begin(), rules().end(),
                                 [&](const RuleInfo& r) { return r.id == refusal.id; });
  if (rule != rules().end() && rule->kind != RuleKind::usage)
    out += alternatives_text(alternatives(program(), *target_, primitive));
  const std::string tree = tenon::print(program(), {.mark_loop = refusal.loop});
  return out + indented(excerpt(tree), refusal.loop.empty() ? "  " : " ");
}

/// "stage:loop" -> what became of it, of the loops and stages that the steps used up.
std::map<std::string, std::string> Schedule::used_up() const {
  std::map<std::string, std::string> out;
  Program before = first_->program;
  for (size_t n = 0; n < trace_.size(); ++n) {
    note_used_up(trace_[n], before, n + 1, out);
    before = tenon::apply(before, *target_, trace_[n]);
  }
  return out;
}

Schedule replay(Program program, Target target, const Trace& trace) {
  Schedule s(std::move(program), std::move(target));
  for (const Primitive& p : trace) s.apply(p);
  return s;
}

}  // namespace tenon
