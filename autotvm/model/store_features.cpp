#include "autotvm/model/store_features.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "autotvm/model/forms.h"

namespace tenon {
namespace {

constexpr size_t kStores = 2, kBuffers = 4;

/// A store and what stands round it.
struct Site {
  const Store* store = nullptr;
  std::vector<const For*> marks;
  FormLoops loops;
  std::vector<BoundForm> bound;
  int guards = 0;
  double times = 1;  // it is executed
};

class SiteFinder {
 public:
  SiteFinder(const Program& program, const std::map<std::string, int64_t>& sizes) {
    for (const Var& symbol : program.symbols) {
      const auto size = sizes.find(symbol.name());
      IndexForm form;
      form.constant = static_cast<double>(
          size != sizes.end() ? size->second : std::min<int64_t>(symbol.range()->high, 1024));
      here_.bound.push_back({symbol.get(), form});
    }
    visit(program.body);
  }
  std::vector<Site> sites;

 private:
  void visit(const Stmt& s) {
    if (!s.defined()) return;
    std::visit(
        overloaded{
            [&](const For& n) { visit_loop(n); },
            [&](const Store& n) {
              Site site = here_;
              site.store = &n;
              sites.push_back(std::move(site));
            },
            [&](const Seq& n) {
              for (const Stmt& child : n.stmts) visit(child);
            },
            [&](const If& n) {
              ++here_.guards;
              visit(n.then_case);
              visit(n.else_case);
              --here_.guards;
            },
            [&](const Allocate& n) { visit(n.body); },
            [&](const LetStmt& n) {
              here_.bound.push_back({n.var.get(), form_of(n.value, here_.loops, here_.bound)});
              visit(n.body);
              here_.bound.pop_back();
            },
            [](const Evaluate&) {}, [](const Barrier&) {}, [](const PrefetchLine&) {},
            [](const Stage&) {}},
        s.node().v);
  }

  /// Extents that differ between iterations count as their mean.
  void visit_loop(const For& n) {
    const IndexForm form = form_of(n.extent, here_.loops, here_.bound);
    const double extent = std::max(1.0, form.constant + form.span[0] / 2.0);
    if (extent == 1 || here_.loops.vars.size() == kMaxDraftLoops) return visit(n.body);
    const double times = here_.times;
    here_.times *= extent;
    here_.loops.vars.push_back(n.var.get());
    here_.loops.extents.push_back(extent);
    here_.marks.push_back(&n);
    visit(n.body);
    here_.marks.pop_back();
    here_.loops.extents.pop_back();
    here_.loops.vars.pop_back();
    here_.times = times;
  }

  Site here_;
};

/// What one execution computes, in vector instructions.
struct Counts {
  double adds = 0, muls = 0, divisions = 0, extremes = 0, choices = 0, functions = 0;
  double conversions = 0, turns = 0, integers = 0, others = 0;
  double index_ops = 0, register_loads = 0, loads = 0, masked = 0;
  double arithmetic() const {
    return adds + muls + divisions + extremes + choices + functions + conversions + turns +
           integers + others;
  }
};

class Counter {
 public:
  Counter(const Store& store, const Target& target) : target_(target) {
    walk(store.value, [&](const Expr& e) { return count(e); });
    index(store.indices);
    if (store.mask.defined()) c_.masked += 1;
  }
  const Counts& counts() const { return c_; }
  const std::vector<const Load*>& loads() const { return loads_; }

 private:
  double vectors(Type type) const {
    return std::max(1.0, std::ceil(static_cast<double>(type.lanes) * byte_size(type.dtype) * 8 /
                                   target_.vector_bits));
  }

  void index(const std::vector<Expr>& indices) {
    for (const Expr& i : indices)
      walk(i, [&](const Expr& e) {
        if (e.as<Binary>() || e.as<Load>()) c_.index_ops += 1;
        return true;
      });
  }

  bool count(const Expr& e) {
    const double v = vectors(e.type());
    return std::visit(overloaded{[&](const Binary& n) { return count_binary(n, e.type(), v); },
                                 [&](const Load& n) {
                                   loads_.push_back(&n);
                                   (n.buffer->scope == Scope::reg ? c_.register_loads : c_.loads) +=
                                       v;
                                   if (n.mask.defined()) c_.masked += 1;
                                   index(n.indices);
                                   return false;
                                 },
                                 [&](const Unary& n) {
                                   (n.op == UnaryOp::sqrt ? c_.divisions : c_.others) += v;
                                   return true;
                                 },
                                 [&](const Select&) { return add(c_.choices, v); },
                                 [&](const Cast&) { return add(c_.conversions, v); },
                                 [&](const Call&) { return add(c_.functions, v); },
                                 [&](const VectorReduce&) { return add(c_.turns, v); },
                                 [&](const Shuffle&) { return add(c_.turns, v); },
                                 [&](const IntrinsicCall&) { return add(c_.others, v); },
                                 [](const auto&) { return true; }},
                      e.node().v);
  }

  bool count_binary(const Binary& n, Type type, double v) {
    if (!is_float(n.a.dtype())) return add(c_.integers, v);
    switch (n.op) {
      case BinaryOp::add:
      case BinaryOp::sub:
        return add(c_.adds, v);
      case BinaryOp::mul:
        return add(c_.muls, v);
      case BinaryOp::div:
        return add(c_.divisions, v);
      case BinaryOp::min:
      case BinaryOp::max:
        return add(c_.extremes, v);
      default:
        return add(c_.choices, vectors(type.with_lanes(n.a.lanes())));
    }
  }

  static bool add(double& to, double v) {
    to += v;
    return true;
  }

  const Target& target_;
  Counts c_;
  std::vector<const Load*> loads_;
};

/// A place in memory over the loops of its store.
struct Access {
  const BufferNode* buffer = nullptr;
  IndexForm form;
  bool store = false, contiguous = false, broadcast = false;
  double element = 4, lane_bytes = 4;  // of what one execution reaches
};

Access access_of(const Buffer& buffer, const Expr& index, bool store, const Site& site) {
  Access a;
  a.buffer = buffer.get();
  a.store = store;
  a.element = static_cast<double>(byte_size(buffer->dtype));
  a.lane_bytes = a.element * index.lanes();
  a.broadcast = index.lanes() == 1;
  const Ramp* ramp = index.as<Ramp>();
  const auto stride = ramp ? as_int(ramp->stride) : std::optional<int64_t>();
  a.contiguous = stride == 1;
  a.form = form_of(ramp ? ramp->base : index, site.loops, site.bound);
  return a;
}

/// What the loops from `level` on reach of it: bytes, and bytes in whole cache lines.
struct Reach {
  double bytes = 0, lines = 0;
};
Reach reach_of(const Access& a, const FormLoops& loops, size_t level, double line) {
  double places = 1, least = INFINITY;
  for (size_t l = level; l < loops.extents.size(); ++l) {
    if (a.form.step[l] == 0 && !a.form.data) continue;
    places *= loops.extents[l];
    least = std::min(least, std::abs(static_cast<double>(a.form.step[l])) * a.element);
  }
  const double lane_lines =
      a.contiguous || a.broadcast ? std::max(1.0, a.lane_bytes / line) : a.lane_bytes / a.element;
  if (a.form.data) return {places * a.lane_bytes, places * lane_lines};
  const double box = a.form.span[level] * a.element + a.lane_bytes;
  Reach out{std::min(places * a.lane_bytes, box), places * lane_lines};
  if (least < line) out.lines = std::min(out.lines, std::ceil(box / line));
  return out;
}

struct BufferNumbers {
  double store = 0, contiguous = 0, broadcast = 0;
  double bytes = 0, unique_bytes = 0, lines = 0;
  double reuse_bytes = 0, reuse_count = 0, step_bytes = 0;
};

struct StoreNumbers {
  Counts counts;
  double times = 0, share = 0, lanes = 0, guards = 0, accumulates = 0, registers = 0;
  double parallel = 0, unroll = 0, vector_loops = 0, serial = 0, innermost = 0, reduce = 0;
  double loops = 0, intensity = 0, first_intensity = 0, second_intensity = 0;
  std::array<BufferNumbers, kBuffers> buffers{};
};

class StoreAnalyst {
 public:
  StoreAnalyst(const Site& site, const Target& target)
      : site_(site), target_(target), counter_(*site.store, target) {
    out_.counts = counter_.counts();
    out_.times = site.times;
    out_.lanes = site.store->value.lanes();
    out_.guards = site.guards;
    out_.loops = static_cast<double>(site.marks.size());
    out_.registers = site.store->buffer->scope == Scope::reg;
    look_at_loops();
    look_at_accesses();
  }
  const StoreNumbers& numbers() const { return out_; }

 private:
  void look_at_loops() {
    out_.parallel = out_.unroll = out_.vector_loops = out_.serial = out_.reduce = 1;
    for (size_t l = 0; l < site_.marks.size(); ++l) {
      const For& loop = *site_.marks[l];
      const double extent = site_.loops.extents[l];
      if (loop.kind == AxisKind::reduce) out_.reduce *= extent;
      if (loop.mark == LoopMark::parallel) {
        out_.parallel *= extent;
      } else if (loop.mark == LoopMark::unroll) {
        out_.unroll *= extent;
      } else if (makes_lanes(loop.mark)) {
        out_.vector_loops *= extent;
      } else {
        out_.serial *= extent;
        out_.innermost = extent;
        inner_ = l;
      }
    }
  }

  void look_at_accesses() {
    std::vector<Access> all;
    const auto note = [&](const Buffer& buffer, const Expr& index, bool store) {
      if (!store && buffer.get() == site_.store->buffer.get()) out_.accumulates = 1;
      if (buffer->scope != Scope::reg) all.push_back(access_of(buffer, index, store, site_));
    };
    note(site_.store->buffer, site_.store->indices.at(0), true);
    for (const Load* load : counter_.loads()) note(load->buffer, load->indices.at(0), false);
    intensities(all);
    std::vector<BufferNumbers> numbers;
    for (const Access& a : all) numbers.push_back(numbers_of(a, all));
    std::stable_sort(numbers.begin(), numbers.end(),
                     [](const auto& x, const auto& y) { return x.lines > y.lines; });
    for (size_t n = 0; n < std::min(kBuffers, numbers.size()); ++n) out_.buffers[n] = numbers[n];
  }

  double line() const { return target_.cache_line_bytes; }

  double bytes_in_lines(const std::vector<Access>& all, size_t level) const {
    double sum = 0;
    for (const Access& a : all) sum += reach_of(a, site_.loops, level, line()).lines * line();
    return sum;
  }

  /// Arithmetic per byte: of the whole, and of the outermost loop whose memory fits a cache.
  void intensities(const std::vector<Access>& all) {
    if (all.empty()) return;
    const auto at = [&](size_t level) {
      double times = 1;
      for (size_t l = level; l < site_.loops.extents.size(); ++l) times *= site_.loops.extents[l];
      return times * out_.counts.arithmetic() * target_.vector_bits / 8 /
             bytes_in_lines(all, level);
    };
    const auto in = [&](double cache) {
      size_t level = 0;
      while (level < site_.loops.extents.size() && bytes_in_lines(all, level) > cache) ++level;
      return at(level);
    };
    out_.intensity = at(0);
    out_.first_intensity = in(static_cast<double>(target_.l1d_bytes));
    out_.second_intensity = in(static_cast<double>(target_.l2_bytes));
  }

  BufferNumbers numbers_of(const Access& a, const std::vector<Access>& all) const {
    const Reach whole = reach_of(a, site_.loops, 0, line());
    BufferNumbers out;
    out.store = a.store;
    out.contiguous = a.contiguous;
    out.broadcast = a.broadcast;
    out.bytes = site_.times * a.lane_bytes;
    out.unique_bytes = whole.bytes;
    out.lines = whole.lines;
    if (inner_ < site_.marks.size())
      out.step_bytes = std::abs(static_cast<double>(a.form.step[inner_])) * a.element;
    for (size_t l = site_.marks.size(); l-- > 0;) {
      if (a.form.step[l] != 0 || a.form.data) continue;
      out.reuse_count = site_.loops.extents[l];
      out.reuse_bytes = bytes_in_lines(all, l + 1);
      break;
    }
    return out;
  }

  const Site& site_;
  const Target& target_;
  Counter counter_;
  StoreNumbers out_;
  size_t inner_ = kMaxDraftLoops;  // the innermost loop that stays a loop
};

// -- the list

/// How a number is given: as it is, as log2(1 + x), or so per execution of the store.
enum class Scale : uint8_t { plain, size, each };

template <class T>
struct Member {
  const char* name;
  double T::*value;
  Scale scale;
};

constexpr Member<Counts> kCounts[] = {{"adds", &Counts::adds, Scale::size},
                                      {"muls", &Counts::muls, Scale::size},
                                      {"divisions", &Counts::divisions, Scale::size},
                                      {"extremes", &Counts::extremes, Scale::size},
                                      {"choices", &Counts::choices, Scale::size},
                                      {"functions", &Counts::functions, Scale::size},
                                      {"conversions", &Counts::conversions, Scale::size},
                                      {"turns", &Counts::turns, Scale::size},
                                      {"integers", &Counts::integers, Scale::size},
                                      {"others", &Counts::others, Scale::size},
                                      {"index_ops", &Counts::index_ops, Scale::size},
                                      {"register_loads", &Counts::register_loads, Scale::size},
                                      {"loads", &Counts::loads, Scale::size},
                                      {"masked", &Counts::masked, Scale::size}};

constexpr Member<StoreNumbers> kNumbers[] = {
    {"times", &StoreNumbers::times, Scale::size},
    {"share", &StoreNumbers::share, Scale::plain},
    {"lanes", &StoreNumbers::lanes, Scale::size},
    {"guards", &StoreNumbers::guards, Scale::plain},
    {"accumulates", &StoreNumbers::accumulates, Scale::plain},
    {"registers", &StoreNumbers::registers, Scale::plain},
    {"parallel", &StoreNumbers::parallel, Scale::size},
    {"unroll", &StoreNumbers::unroll, Scale::size},
    {"vector_loops", &StoreNumbers::vector_loops, Scale::size},
    {"serial", &StoreNumbers::serial, Scale::size},
    {"innermost", &StoreNumbers::innermost, Scale::size},
    {"reduce", &StoreNumbers::reduce, Scale::size},
    {"loops", &StoreNumbers::loops, Scale::plain},
    {"intensity", &StoreNumbers::intensity, Scale::size},
    {"first_intensity", &StoreNumbers::first_intensity, Scale::size},
    {"second_intensity", &StoreNumbers::second_intensity, Scale::size}};

constexpr Member<BufferNumbers> kBufferNumbers[] = {
    {"store", &BufferNumbers::store, Scale::plain},
    {"contiguous", &BufferNumbers::contiguous, Scale::plain},
    {"broadcast", &BufferNumbers::broadcast, Scale::plain},
    {"bytes", &BufferNumbers::bytes, Scale::each},
    {"unique_bytes", &BufferNumbers::unique_bytes, Scale::each},
    {"lines", &BufferNumbers::lines, Scale::each},
    {"reuse_bytes", &BufferNumbers::reuse_bytes, Scale::each},
    {"reuse_count", &BufferNumbers::reuse_count, Scale::size},
    {"step_bytes", &BufferNumbers::step_bytes, Scale::size}};

template <class T, size_t N>
void put(std::vector<float>& out, const Member<T> (&list)[N], const T& numbers, double times) {
  for (const Member<T>& m : list) {
    double value = numbers.*m.value;
    if (m.scale != Scale::plain) value = std::log2(1 + value);
    if (m.scale == Scale::each) value -= std::log2(1 + times);
    out.push_back(static_cast<float>(value));
  }
}

template <class T, size_t N>
void put_names(std::vector<std::string>& out, const Member<T> (&list)[N], const std::string& of) {
  for (const Member<T>& m : list) out.push_back(of + m.name);
}

std::vector<std::string> all_names() {
  std::vector<std::string> out;
  for (const std::string of : {"first.", "second."}) {
    put_names(out, kCounts, of);
    put_names(out, kNumbers, of);
    for (size_t b = 0; b < kBuffers; ++b)
      put_names(out, kBufferNumbers, of + "buffer" + std::to_string(b) + ".");
  }
  out.push_back("stores");
  return out;
}

}  // namespace

std::vector<float> store_features(const Program& flat, const Target& target,
                                  const std::map<std::string, int64_t>& sizes) {
  const std::vector<Site> sites = SiteFinder(flat, sizes).sites;
  std::vector<std::pair<double, size_t>> costs;  // most expensive first, then in program order
  double all = 0;
  for (size_t n = 0; n < sites.size(); ++n) {
    const Counts c = Counter(*sites[n].store, target).counts();
    const double cost = sites[n].times * (c.arithmetic() + c.loads + 1);
    costs.emplace_back(-cost, n);
    all += cost;
  }
  std::sort(costs.begin(), costs.end());
  std::vector<float> out;
  for (size_t n = 0; n < kStores; ++n) {
    StoreNumbers numbers;
    if (n < costs.size()) {
      numbers = StoreAnalyst(sites[costs[n].second], target).numbers();
      numbers.share = -costs[n].first / all;
    }
    put(out, kCounts, numbers.counts, numbers.times);
    put(out, kNumbers, numbers, numbers.times);
    for (const BufferNumbers& b : numbers.buffers) put(out, kBufferNumbers, b, numbers.times);
  }
  out.push_back(static_cast<float>(std::log2(1.0 + static_cast<double>(sites.size()))));
  return out;
}

const std::vector<std::string>& store_feature_names() {
  static const std::vector<std::string> kNames = all_names();
  return kNames;
}

}  // namespace tenon
