#include "oracle.h"

#include <tenon/compile/compile.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <cstring>

#include "autotvm/measure/check.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "packed_data.h"
#include "tests/differential/formulas.h"

using tenon::test::guarded_copy;

namespace tenon {
namespace {

double random_number(const RandomFormula& f, const Buffer& b, Rng& rng) {
  if (b->name == "idx") return static_cast<double>(rng.below(f.index_limit));
  if (b->dtype == boolean) return static_cast<double>(rng.below(2));
  if (is_float(b->dtype) && !f.exact) return 2 * rng.real() - 1;
  const bool negative = is_float(b->dtype) || is_signed_int(b->dtype);
  return static_cast<double>(rng.between(negative ? -20 : 0, 20));
}

void interpret_on(const Program& program, const std::vector<Array>& data) {
  std::vector<HostBuffer> args;
  for (const Array& a : data) args.push_back({a.raw()});
  interpret(program, args);
}

/// What the limits promise: expressions of at most so many nodes, so many unrolled copies.
std::string beyond_limits(const Program& tree) {
  constexpr int64_t kNodes = 4000, kCopies = 1024;
  for (const StagePath& p : stage_paths(tree.body)) {
    int64_t nodes = 0, copies = 1;
    for (const Expr& e : p.stage->values)
      walk(e, [&](const Expr&) { return ++nodes <= 2 * kNodes; });
    for (const For* l : p.loops)
      if (l->mark == LoopMark::unroll)
        copies = std::min(copies * as_int(l->extent).value_or(1), kCopies * kCopies);
    if (nodes > kNodes) return fmt::format("stage {} has grown to {} nodes", p.stage->name, nodes);
    if (copies > kCopies)
      return fmt::format("stage {} is unrolled to {} copies", p.stage->name, copies);
  }
  return "";
}

/// Lowering may refuse register buffers (too large a tile, or one picked at run time) and operands
/// of an intrinsic. Nothing else: what the schedule allowed can be carried out.
std::string unless_registers(const UserError& e, bool* refused) {
  const std::string text = e.what();
  const bool expected = text.find("register") != std::string::npos ||
                        text.find("cannot be tensorized") != std::string::npos ||
                        text.rfind("code generation of", 0) == 0;  // the limits of a GPU
  if (!expected) return text;
  if (refused) *refused = true;
  return "";
}

/// f() says what is wrong or throws it.
template <class F>
std::string caught(F&& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

std::vector<Array> random_arguments(const RandomFormula& f, uint64_t seed,
                                    std::optional<GuardAt> guard) {
  Rng rng(seed);
  std::vector<Array> out;
  for (const Param& p : f.program.params) {
    const Shape shape = const_shape(p.buffer->shape).value();
    Array a = guard ? guarded_array(p.buffer->dtype, shape, *guard)
                    : Array::empty(p.buffer->dtype, shape);
    if (p.role == ParamRole::output) {
      std::fill_n(static_cast<unsigned char*>(a.raw()), a.bytes(), 0xff);
    } else {
      std::vector<double> numbers(static_cast<size_t>(a.size()));
      for (double& x : numbers) x = random_number(f, p.buffer, rng);
      const Array values = from_doubles(p.buffer->dtype, shape, numbers);
      std::copy_n(static_cast<const char*>(values.raw()), a.bytes(), static_cast<char*>(a.raw()));
    }
    out.push_back(std::move(a));
  }
  return out;
}

Oracle::Oracle(const RandomFormula& formula, uint64_t data_seed)
    : formula_(formula),
      seed_(data_seed),
      factor_(formula.exact ? 0 : tolerance_factor(formula.program)),
      expected_(random_arguments(formula, data_seed)) {
  interpret_on(formula.program, expected_);
}

std::string Oracle::difference(const std::vector<Array>& got) const {
  for (size_t n = 0; n < got.size(); ++n) {
    const Param& p = formula_.program.params[n];
    if (p.role != ParamRole::output) {
      if (std::memcmp(got[n].raw(), expected_[n].raw(), static_cast<size_t>(got[n].bytes())) != 0)
        return fmt::format("input {} was written", p.buffer->name);
      continue;
    }
    const Comparison c = compare_output(p.buffer->name, expected_[n], got[n], factor_);
    if (!c.passed) return "other values: " + c.reason;
  }
  return "";
}

/// Flat code takes the parameters that `stored_as` packs ahead as they are stored.
std::string Oracle::run(const Program& program, const Program* stored_as) const {
  const std::vector<Array> data = random_arguments(formula_, seed_);
  std::vector<Array> passed = data;
  for (size_t n = 0; stored_as && n < passed.size(); ++n)
    passed[n] = as_stored(*stored_as->params[n].buffer, data[n]);
  interpret_on(program, passed);
  return difference(data);
}

std::string Oracle::tree_fault(const Program& tree) const {
  return caught([&] {
    verify(tree, Form::LoopTree);
    const std::string beyond = beyond_limits(tree);
    return beyond.empty() ? run(tree) : beyond;
  });
}

std::string Oracle::flat_fault(const Program& tree, const Target& target, bool* refused) const {
  return caught([&]() -> std::string {
    Program flat;
    try {
      flat = lower(tree, target);
    } catch (const UserError& e) {
      return unless_registers(e, refused);
    }
    verify(flat, Form::Flat);
    return run(flat, &tree);
  });
}

std::string Oracle::machine_fault(const Program& tree, const Target& target, bool* refused) const {
  return caught([&]() -> std::string {
    static ThreadPool pool(2);
    Kernel kernel;
    try {
      kernel = compile(tree, target);
    } catch (const UserError& e) {
      return unless_registers(e, refused);
    }
    for (const GuardAt at : {GuardAt::end, GuardAt::start}) {
      const std::vector<Array> data = random_arguments(formula_, seed_, at);
      std::vector<Array> passed = kernel.prepacked(data);
      for (size_t k = 0; k < data.size(); ++k)
        if (passed[k].raw() != data[k].raw()) passed[k] = guarded_copy(passed[k], at);
      kernel.run(passed, pool);
      const std::string wrong = difference(data);
      if (!wrong.empty()) return "machine code: " + wrong;
    }
    return "";
  });
}

}  // namespace tenon
