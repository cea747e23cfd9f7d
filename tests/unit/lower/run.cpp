#include "run.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "interp/interp.h"
#include "lower/lower.h"

namespace tenon {
namespace {

using Bytes = std::vector<unsigned char>;

int64_t elements(const Buffer& b) {
  int64_t n = 1;
  const auto shape = const_shape(b->shape);
  for (int64_t extent : shape.value()) n *= extent;
  return n;
}

template <class T>
void put(Bytes& bytes, int64_t k, T value) {
  std::memcpy(bytes.data() + k * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

Bytes random_contents(const Param& p, Rng& rng) {
  const DType t = p.buffer->dtype;
  const int64_t n = elements(p.buffer);
  Bytes out(static_cast<size_t>(n * byte_size(t)), 0xA5);
  if (p.role == ParamRole::output) return out;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t small = rng.between(-8, 8);
    if (t == DType::f32) put(out, k, static_cast<float>(rng.real() * 2 - 1));
    if (t == DType::f64) put(out, k, rng.real() * 2 - 1);
    if (t == DType::i32) put(out, k, static_cast<int32_t>(small));
    if (t == DType::i64) put(out, k, small);
    if (t == DType::i8) put(out, k, static_cast<int8_t>(small));
    if (t == DType::boolean) put(out, k, static_cast<unsigned char>(small > 0));
  }
  return out;
}

std::vector<Bytes> run(const Program& p, const std::vector<Bytes>& inputs) {
  std::vector<Bytes> memory = inputs;
  std::vector<HostBuffer> args;
  for (Bytes& b : memory) args.push_back({b.data()});
  interpret(p, args);
  return memory;
}

bool close(const Bytes& a, const Bytes& b, DType t) {
  if (t != DType::f32) return a == b;
  for (size_t k = 0; k < a.size(); k += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.data() + k, sizeof x);
    std::memcpy(&y, b.data() + k, sizeof y);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!(std::fabs(x - y) <= 1e-5f * std::max(1.0f, std::fabs(x)))) return false;
  }
  return true;
}

bool combines_lanes(const Program& p) {
  bool found = false;
  walk(p.body, nullptr, [&](const Expr& e) { return !(found = found || e.as<VectorReduce>()); });
  return found;
}

}  // namespace

void check_every_pass(const Program& loop_tree, const Target& target, int64_t max_statements) {
  Rng rng(17);
  std::vector<Bytes> inputs;
  for (const Param& p : loop_tree.params) inputs.push_back(random_contents(p, rng));
  const std::vector<Bytes> want = run(loop_tree, inputs);
  bool exact = true;
  LowerOptions options;
  options.max_statements = max_statements;
  options.after_pass = [&](std::string_view pass, const Program& p) {
    INFO("after " << pass << "\n" << print(loop_tree) << "\n" << print(p));
    // Polynomials round, and lanes that are combined add in another order.
    exact &= pass != "expand_math" && !combines_lanes(p);
    std::vector<Bytes> got;
    REQUIRE_NOTHROW(got = run(p, inputs));
    for (size_t k = 0; k < got.size(); ++k) {
      INFO("parameter " << loop_tree.params[k].buffer->name);
      const DType t = loop_tree.params[k].buffer->dtype;
      REQUIRE((exact ? got[k] == want[k] : close(got[k], want[k], t)));
    }
  };
  const Program flat = lower(loop_tree, target, options);
  REQUIRE(verify_errors(flat, Form::Flat) == std::vector<std::string>{});
}

}  // namespace tenon
