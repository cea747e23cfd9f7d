#include "interp/race.h"

#include <fmt/format.h>
#include <tenon/ir/ops.h>

namespace tenon {

void RaceLog::enter(const For& loop) { running_.push_back({entries_++, &loop, current_}); }

void RaceLog::iterate(int64_t iteration) {
  const Running& loop = running_.back();
  current_ = first_ + static_cast<NodeId>(nodes_.size());
  nodes_.push_back({loop.outer, loop.entry, iteration, node(loop.outer).depth + 1});
}

void RaceLog::leave() {
  current_ = running_.back().outer;
  running_.pop_back();
  if (!running_.empty()) return;
  first_ += static_cast<NodeId>(nodes_.size());
  nodes_.assign(1, {kNever, kNever, 0, 0});
  current_ = first_;
}

std::optional<RaceLog::Parting> RaceLog::parting(NodeId before) const {
  if (before < first_ || before == current_) return std::nullopt;
  NodeId a = before, b = current_;
  while (node(a).depth > node(b).depth) a = node(a).parent;
  while (node(b).depth > node(a).depth) b = node(b).parent;
  if (a == b) return std::nullopt;
  while (node(a).parent != node(b).parent) {
    a = node(a).parent;
    b = node(b).parent;
  }
  if (node(a).entry != node(b).entry) return std::nullopt;  // one loop after the other
  if (node(a).iteration == node(b).iteration) return std::nullopt;  // one thread, resumed
  return Parting{node(a).entry, node(a).iteration, node(b).iteration};
}

const RaceLog::Running* RaceLog::running(int64_t entry) const {
  for (const Running& r : running_) {
    if (r.entry == entry) return &r;
  }
  return nullptr;
}

std::string RaceLog::describe(const Parting& p, std::string_view before,
                              std::string_view now) const {
  const For& loop = *running(p.entry)->loop;
  return fmt::format("{} loop \"{}\": iteration {} {} it and iteration {} {} it", name(loop.mark),
                     loop.var.name(), p.before, before, p.now, now);
}

std::optional<std::string> RaceLog::on_read(Element& e) {
  if (e.write != kNever && e.write != current_) {
    if (auto p = parting(e.write)) return describe(*p, "writes", "reads");
  }
  if (e.read != current_) {
    // The outermost entry that still runs is enough: later writes under inner ones are also under
    // it.
    auto p = e.read == kNever ? std::nullopt : parting(e.read);
    if (p && (!running(e.readers) || p->entry < e.readers)) e.readers = p->entry;
    e.read = current_;
  }
  return std::nullopt;
}

std::optional<std::string> RaceLog::on_write(Element& e, bool atomic) {
  if (e.write != kNever && e.write != current_ && !(atomic && e.atomic)) {
    if (auto p = parting(e.write)) return describe(*p, "writes", "writes");
  }
  if (e.read != kNever && e.read != current_) {
    if (auto p = parting(e.read)) return describe(*p, "reads", "writes");
  }
  if (e.readers != kNever && running(e.readers)) {
    const For& loop = *running(e.readers)->loop;
    return fmt::format("{} loop \"{}\": several iterations read it and iteration {} writes it",
                       name(loop.mark), loop.var.name(), node(current_).iteration);
  }
  e.write = current_;
  e.atomic = atomic;
  return std::nullopt;
}

}  // namespace tenon
