#pragma once
#include <fmt/format.h>
#include <tenon/schedule/schedule.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends.h"
#include "report.h"

namespace tenon::cases {

/// What a case computes, on what, and what must come out.
struct Work {
  std::vector<Tensor> outputs;
  std::map<std::string, Array> inputs;  ///< by name
  std::vector<Array> want;              ///< one an output
  /// Floats: |got - want| <= tolerance * max(1, |want|), NaN where NaN is wanted. 0: the same bits,
  /// but for the payload of a NaN. Integers and bools are always equal.
  double tolerance = 0;
  bool random_schedules = true;  ///< off where sums in another order have other results
  bool zeros_equal = false;      ///< -0.0 is as good as 0.0
  Dims dims = {};                ///< of symbolic extents
  /// As Task::input_ranges, for the tuner.
  std::map<std::string, std::pair<int64_t, int64_t>> input_ranges = {};
};

using Steps = std::function<void(Schedule&)>;

struct CheckOptions {
  bool may_refuse = false;             ///< the case allows a refusal
  std::vector<std::string> says = {};  ///< parts that the refusal must have
};

/// Runs the work under the steps on every backend and compares: each output with what is wanted, 64
/// canary bytes on each side, inputs unchanged; machine code also flush against forbidden pages.
void check(const Work& work, const std::string& label, const Steps& steps,
           const CheckOptions& options = {});

/// check() on one backend.
void check_on(const Backend& backend, const Work& work, const std::string& label,
              const Steps& steps, const CheckOptions& options = {});

/// check() of steps for GPUs: threads in lockstep from barrier to barrier in the interpreter, in
/// race mode, and the OpenCL device where there is one.
void check_gpu(const Work& work, const std::string& label, const Steps& steps,
               const CheckOptions& options = {});

/// The comparison alone, of a program that was prepared before: `run` is of s.program(), whose
/// symbolic extents the work's arrays and dims give values.
void check_calls(const Backend& backend, const Run& run, const Work& work, const Schedule& s,
                 const std::string& label);

/// check() unscheduled and under the default schedule.
void check_default(const Work& work, const std::string& label);

/// check_default() and: split + vectorise, parallel, unroll, one schedule found by the tuner, and
/// some drawn at random (steps that are refused are left out of those).
void check_schedules(const Work& work, const std::string& label);

/// The steps must be refused when they are applied, with all parts of `says` in the message.
void refused(const std::vector<Tensor>& outputs, const std::string& label, const Steps& steps,
             const std::vector<std::string>& says);

/// The call must throw a UserError with all parts of `says`.
void refused_call(const std::string& target, const std::string& label,
                  const std::function<void()>& call, const std::vector<std::string>& says);

/// As the work says, but the named stages' loops: of each stage the innermost spatial loop is split
/// by 8 and vectorised; the outermost spatial loop is parallel; the innermost loop is split by 4
/// and the inner part unrolled. Loops that a step is refused for are left.
void split_and_vectorize(Schedule& s);
void parallelize(Schedule& s);
void unroll_inner(Schedule& s);

/// An array of f(n) for each flat position n.
template <class T, class F>
Array table(Shape shape, F f) {
  Array a = Array::empty(dtype_of<T>(), std::move(shape));
  for (int64_t n = 0; n < a.size(); ++n) a.data<T>()[n] = static_cast<T>(f(n));
  return a;
}

/// The same in any type, each value converted as by a cast.
Array table_of(DType dtype, Shape shape, const std::function<double(int64_t)>& f);

/// Reads two-dimensional data as in the formulas: m(i, j).
template <class T>
struct Matrix {
  const T* data;
  int64_t columns;
  explicit Matrix(const Array& a) : data(a.data<T>()), columns(a.shape()[1]) {}
  T operator()(int64_t i, int64_t j) const { return data[i * columns + j]; }
};

/// name[i] = f(i) over n points.
Tensor map_of(const std::string& name, int64_t n, const std::function<Expr(Expr)>& f);

/// What an allocated buffer has shrunk to in the lowered program (its box inside its Allocate);
/// empty where there is no such buffer.
Shape compacted_shape(const Program& scheduled, const std::string& buffer);

}  // namespace tenon::cases
