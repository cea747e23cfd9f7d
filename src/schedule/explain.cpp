#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "schedule/region.h"

namespace tenon {
namespace {

/// What the stages under a loop do to one buffer in one iteration.
struct Traffic {
  Buffer buffer;
  bool reads = false, writes = false;
  BoxBuilder box;
  explicit Traffic(const Buffer& b) : buffer(b), box(b->shape) {}
};

class IterationTraffic {
 public:
  IterationTraffic(const Stmt& body, size_t outside) : outside_(outside) {
    for (const Buffer& b : allocated(body)) inside_.push_back(b);
  }

  void add(const StagePath& path) {
    const Stage& stage = *path.stage;
    for (const Buffer& b : stage.outputs) {
      Traffic& t = of(b);
      t.writes = true;
      t.reads = t.reads || stage.combiner;
      t.box.add(path, outside_, {over_loops(stage, stage.indices)});
    }
    for (const Buffer& b : inputs_of(stage)) {
      Traffic& t = of(b);
      t.reads = true;
      t.box.add(path, outside_, loads_of(stage, b, true));
    }
  }

  /// A line for each buffer, then the sum.
  std::string text(Simplifier& math) const {
    std::string out;
    int64_t total = 0;
    bool known = true;
    for (const Traffic& t : traffic_) {
      const std::optional<int64_t> bytes = bytes_of(t);
      known = known && bytes;
      total += bytes.value_or(0);
      out += line(t, bytes, math);
    }
    return out + fmt::format("  touches {} in all\n", known ? words(total) : "an unknown number");
  }

 private:
  Traffic& of(const Buffer& b) {
    for (Traffic& t : traffic_)
      if (t.buffer == b) return t;
    return traffic_.emplace_back(b);
  }

  static std::string words(int64_t bytes) { return fmt::format("{} bytes", bytes); }

  static std::optional<int64_t> bytes_of(const Traffic& t) {
    int64_t bytes = byte_size(t.buffer->dtype);
    for (const BoxDim& d : t.box.finish().dims) {
      const std::optional<int64_t> n = as_int(d.extent);
      if (!n || __builtin_mul_overflow(bytes, *n, &bytes)) return std::nullopt;
    }
    return bytes;
  }

  std::string line(const Traffic& t, std::optional<int64_t> bytes, Simplifier& math) const {
    std::vector<std::string> dims;
    for (const BoxDim& d : t.box.finish().dims) {
      const std::string first = print(math.simplify(to_expr(d.min)));
      dims.push_back(is_const(d.extent, 1) ? first
                                           : fmt::format("{} .. +{}", first, print(d.extent)));
    }
    const bool inside = std::count(inside_.begin(), inside_.end(), t.buffer) > 0;
    std::string box;
    for (const std::string& d : dims) box += (box.empty() ? "" : ", ") + d;
    return fmt::format("  {} {}[{}] {}: {}{}\n",
                       t.reads && t.writes ? "updates"
                       : t.writes          ? "writes "
                                           : "reads  ",
                       t.buffer->name, box, name(t.buffer->dtype),
                       bytes ? words(*bytes) : "unknown", inside ? ", its own" : "");
  }

  size_t outside_;
  std::vector<Buffer> inside_;
  std::vector<Traffic> traffic_;
};

/// "i.o = 0 .. 4, k"
std::string loops_text(const StagePath& path, size_t at) {
  std::string out;
  for (size_t n = 0; n <= at; ++n)
    out += (n ? ", " : "") +
           fmt::format("{} of {}", path.loops[n]->var.name(), print(path.loops[n]->extent));
  return out;
}

}  // namespace

std::string Schedule::explain(const LoopRef& loop) const {
  const std::string stage = loop.stage.empty() ? only_stage_ : loop.stage;
  if (stage.empty())
    throw ScheduleError(
        fmt::format("schedule error in {}: there are several stages: {}\n"
                    "  try: name one, as in explain(\"{}:{}\")\n",
                    program().name, quoted_list(stages()), stages().back(), loop.name));
  try {
    const StagePath path = find_stage(program(), stage);
    const size_t at = find_loop(path, loop.name);
    IterationTraffic traffic(path.loops[at]->body, at + 1);
    for (const StagePath& p : stage_paths(program().body))
      if (std::find(p.loops.begin(), p.loops.end(), path.loops[at]) != p.loops.end())
        traffic.add(p);
    Simplifier math = math_for(path);
    return fmt::format("one iteration of \"{}\" ({})\n{}", full_name(path, at),
                       loops_text(path, at), traffic.text(math));
  } catch (const Refusal& missing) {
    throw ScheduleError(fmt::format("schedule error in {}: {}\n{}", program().name, missing.rule,
                                    missing.hint.empty() ? "" : "  try: " + missing.hint + "\n"));
  }
}

namespace {

/// Lines of both texts, common ones once: the longest common subsequence.
std::string line_diff(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out += "  " + a[i++] + "\n";
      ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      out += "- " + a[i++] + "\n";
    } else {
      out += "+ " + b[j++] + "\n";
    }
  }
  return out;
}

}  // namespace

std::string Schedule::diff(size_t from, size_t to) const {
  if (std::max(from, to) > trace_.size())
    throw ScheduleError(fmt::format("schedule error in {}: there is no step {}; the trace has {}\n",
                                    program().name, std::max(from, to), trace_.size()));
  Program program = first_->program;
  std::vector<std::string> before, after;
  for (size_t n = 0;; ++n) {
    if (n == from) before = split_text(tenon::print(program), '\n');
    if (n == to) after = split_text(tenon::print(program), '\n');
    if (n >= std::max(from, to)) break;
    program = tenon::apply(program, *target_, trace_[n]);
  }
  while (!before.empty() && before.back().empty()) before.pop_back();
  while (!after.empty() && after.back().empty()) after.pop_back();
  std::string steps;
  for (size_t n = std::min(from, to); n < std::max(from, to); ++n)
    steps += fmt::format("step {}: {}\n", n + 1, to_text(trace_[n]));
  return steps + line_diff(before, after);
}

}  // namespace tenon
