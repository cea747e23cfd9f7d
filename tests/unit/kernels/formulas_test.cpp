#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>

#include "kernels/conv.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/movers.h"
#include "kernels/normalize.h"
#include "kernels/pad.h"
#include "kernels/pool.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"

using namespace tenon;
using Catch::Matchers::Contains;
using Shape = std::vector<int64_t>;
using Names = std::vector<std::string>;

namespace {

Names stages(const Tensor& t) {
  Program p = make_program("p", {t});
  Names names;
  for (const StagePath& path : stage_paths(p.body)) names.push_back(path.stage->name);
  return names;
}

Tensor x(Shape shape, DType t = f32) { return input("x", t, std::move(shape)); }
Tensor w(Shape shape, DType t = f32) { return input("w", t, std::move(shape)); }

}  // namespace

TEST_CASE("matmul follows numpy's shapes") {
  CHECK(matmul(x({3, 4}), w({4, 5})).extents() == Shape{3, 5});
  CHECK(matmul(x({7, 1, 3, 4}), w({2, 4, 5})).extents() == Shape{7, 2, 3, 5});
  CHECK(matmul(x({4}), w({4, 5})).extents() == Shape{5});
  CHECK(matmul(x({3, 4}), w({4})).extents() == Shape{3});
  CHECK(matmul(x({4}), w({4})).extents().empty());
  CHECK_THROWS_WITH(matmul(x({3, 4}), w({5, 6})),
                    Contains("inner dimensions differ") && Contains("k = 4") && Contains("k = 5"));
  CHECK_THROWS_WITH(matmul(x({2, 3, 4}), w({3, 4, 5})), Contains("cannot be broadcast"));
  CHECK_THROWS_WITH(matmul(x({3, 4}), w({4, 5}, f64)), Contains("the types must be equal"));
  CHECK_THROWS_WITH(matmul(x({}), w({4, 5})), Contains("at least one dimension"));
}

TEST_CASE("half precision sums are kept in f32") {
  CHECK(stages(matmul(x({3, 4}, f16), w({4, 5}, f16), "C")) == Names{"C.acc", "C"});
  CHECK(stages(matmul(x({3, 4}), w({4, 5}), "C")) == Names{"C"});
  CHECK(matmul(x({3, 4}, f16), w({4, 5}, f16)).dtype() == f16);
}

TEST_CASE("gemm has the bias as start of its sum unless alpha stands in the way") {
  Tensor c = input("c", f32, {5});
  CHECK(stages(gemm(x({3, 4}), w({4, 5}), c, {}, "Y")) == Names{"Y"});
  CHECK(stages(gemm(x({3, 4}), w({4, 5}), c, {.alpha = 0.5}, "Y")) == Names{"Y.acc", "Y"});
  CHECK(gemm(x({4, 3}), w({5, 4}), {}, {.transpose_a = true, .transpose_b = true}).extents() ==
        Shape{3, 5});
  CHECK_THROWS_WITH(gemm(x({3, 4}), w({4, 5}), input("c", f32, {4}), {}),
                    Contains("cannot be broadcast"));
  CHECK_THROWS_WITH(gemm(x({3, 4}), w({4, 5}), input("c", f32, {2, 3, 5}), {}),
                    Contains("does not broadcast to 3x5"));
  CHECK_THROWS_WITH(gemm(x({3, 4}), w({5, 4}), {}, {}), Contains("inner dimensions differ"));
}

TEST_CASE("convolutions have a pad stage where there is padding and no axis of extent 1") {
  CHECK(stages(conv(x({1, 3, 8, 8}), w({4, 3, 3, 3}), {},
                    {.pads_begin = {1, 1}, .pads_end = {1, 1}}, "Y")) == Names{"Y.pad", "Y"});
  CHECK(stages(conv(x({1, 3, 8, 8}), w({4, 3, 3, 3}), {}, {}, "Y")) == Names{"Y"});
  Program p = make_program("p", {conv(x({1, 3, 8, 8}), w({4, 3, 1, 1}), {}, {})});
  CHECK(stage_paths(p.body)[0].loops.size() == 5);
  CHECK(conv(x({2, 6, 9, 11}), w({4, 3, 3, 2}), {},
             {.strides = {2, 1}, .dilations = {1, 2}, .groups = 2})
            .extents() == Shape{2, 4, 4, 9});
  CHECK(conv(x({2, 6, 9}), w({4, 6, 3}), {}, {}).extents() == Shape{2, 4, 7});
  CHECK(conv(x({1, 2, 4, 5, 6}), w({3, 2, 2, 2, 2}), {}, {}).extents() == Shape{1, 3, 3, 4, 5});
  CHECK(conv(x({1, 2, 2, 2}), w({3, 2, 5, 5}), {}, {}).extents() == Shape{1, 3, 0, 0});
  CHECK(
      conv_transpose(x({1, 4, 5, 5}), w({4, 3, 3, 3}), {}, {.strides = {2, 2}}, {1, 1}).extents() ==
      Shape{1, 3, 12, 12});
}

TEST_CASE("convolutions refuse what does not fit") {
  CHECK_THROWS_WITH(conv(x({1, 3, 8, 8}), w({4, 2, 3, 3}), {}, {}),
                    Contains("channels do not fit"));
  CHECK_THROWS_WITH(conv(x({1, 4, 8, 8}), w({3, 2, 3, 3}), {}, {.groups = 2}),
                    Contains("3 output channels, 2 groups"));
  CHECK_THROWS_WITH(conv(x({1, 3, 8, 8}), w({4, 3, 3, 3}), input("b", f32, {5}), {}),
                    Contains("there are 4 output channels"));
  CHECK_THROWS_WITH(conv(x({1, 3, 8, 8}), w({4, 3, 3, 3}), {}, {.strides = {0, 1}}),
                    Contains("strides must be at least 1"));
  CHECK_THROWS_WITH(conv(x({1, 3, 8, 8}), w({4, 3, 3, 3}), {}, {.strides = {1}}),
                    Contains("2 spatial dimensions"));
  CHECK_THROWS_WITH(conv(x({3, 8}), w({4, 3}), {}, {}), Contains("1 to 3 spatial dimensions"));
}

TEST_CASE("pools round their extent as asked and drop windows in the padding") {
  PoolOptions o{.kernel = {3, 3}, .strides = {2, 2}};
  CHECK(max_pool(x({1, 2, 8, 8}), o).extents() == Shape{1, 2, 3, 3});
  o.ceil_mode = true;
  CHECK(max_pool(x({1, 2, 8, 8}), o).extents() == Shape{1, 2, 4, 4});
  CHECK(pool_extent(4, 1, 3, 1, 0, 0, true) == 2);
  CHECK(pool_extent(2, 2, 2, 1, 1, 1, true) == 2);
  CHECK(pool_extent(2, 5, 1, 1, 0, 0, false) == 0);
  CHECK_THROWS_WITH(max_pool(x({1, 2, 8, 8}), {}), Contains("kernel has 0 numbers"));
  CHECK_THROWS_WITH(average_pool(x({1, 2, 8, 8}, i32), {.kernel = {2, 2}}),
                    Contains("a float type is needed"));
}

TEST_CASE("element-wise kernels broadcast and check their types") {
  CHECK(binary("add", x({3, 1}), w({4})).extents() == Shape{3, 4});
  CHECK(binary("less", x({3}), w({3})).dtype() == boolean);
  CHECK(where(input("c", boolean, {2, 1}), x({3}), w({1})).extents() == Shape{2, 3});
  CHECK_THROWS_WITH(binary("add", x({3}), w({4})), Contains("cannot be broadcast"));
  CHECK_THROWS_WITH(binary("ad", x({3}), w({3})), Contains("nearest: add"));
  CHECK_THROWS_WITH(unary("exp", x({3}, i32)), Contains("takes floats"));
  CHECK_THROWS_WITH(unary("sigmoit", x({3})), Contains("nearest: sigmoid"));
  CHECK_THROWS_WITH(binary("add", x({3}), w({3}, i64)), Contains("the types must be equal"));
  CHECK_THROWS_WITH(where(x({3}), x({3}), w({3})), Contains("must be bool"));
  CHECK_THROWS_WITH(clip(x({3}), w({3}), {}), Contains("must be a scalar"));
}

TEST_CASE("reductions keep or drop their dimensions") {
  CHECK(reduce("sum", x({3, 4, 5}), {1}, false).extents() == Shape{3, 5});
  CHECK(reduce("sum", x({3, 4, 5}), {-1, 0}, true).extents() == Shape{1, 4, 1});
  CHECK(reduce("max", x({3}), {0}, false).extents().empty());
  CHECK(arg_reduce(true, x({3, 4}), 1, true, false).dtype() == i64);
  CHECK_THROWS_WITH(reduce("sum", x({3}), {1}, false), Contains("axis 1 is not in [-1, 1)"));
  CHECK_THROWS_WITH(reduce("sum", x({3, 4}), {0, -2}, false), Contains("axis 0 is given twice"));
  CHECK_THROWS_WITH(reduce("summ", x({3}), {0}, false), Contains("unknown reduction \"summ\""));
  CHECK_THROWS_WITH(reduce("any", x({3}), {0}, false), Contains("combines bools"));
  CHECK_THROWS_WITH(arg_reduce(true, x({3, 0}), 1, true, false), Contains("is empty"));
}

TEST_CASE("a reshape keeps plain indices where dimensions stay") {
  Tensor r = reshape(x({4, 6, 5}), {4, 3, 2, 5});
  Program p = make_program("p", {r});
  const Stage& s = *stage_paths(p.body)[0].stage;
  const Load* l = s.values[0].as<Load>();
  REQUIRE(l);
  CHECK(l->indices[0].as<VarRef>());
  CHECK(l->indices[2].as<VarRef>());
  CHECK(reshape(x({0, 3}), {0, 5}).extents() == Shape{0, 5});
  CHECK_THROWS_WITH(reshape(x({4, 6}), {5, 5}), Contains("has 24 elements"));
}

TEST_CASE("movers check shapes and positions") {
  CHECK(transpose(x({2, 3, 4}), {2, 0, 1}).extents() == Shape{4, 2, 3});
  CHECK(transpose(x({2, 3, 4}), {}).extents() == Shape{4, 3, 2});
  CHECK(concat({x({2, 3}), w({2, 5})}, -1).extents() == Shape{2, 8});
  CHECK(gather(x({5, 6}), input("i", i64, {2, 2}), 1).extents() == Shape{5, 2, 2});
  CHECK(gather_nd(x({5, 6, 7}), input("i", i64, {2, 2}), 0).extents() == Shape{2, 7});
  CHECK(expand(x({3, 1}), {2, 1, 4}).extents() == Shape{2, 3, 4});
  CHECK(tile(x({3, 2}), {2, 3}).extents() == Shape{6, 6});
  CHECK(pad(x({3, 2}), {1, 0}, {1, -1}, PadMode::constant, zero(f32)).extents() == Shape{5, 1});
  CHECK_THROWS_WITH(transpose(x({2, 3}), {0, 0}), Contains("given twice"));
  CHECK_THROWS_WITH(concat({x({2, 3}), w({3, 5})}, 1), Contains("differ outside of dimension 1"));
  CHECK_THROWS_WITH(slice(x({5}), {3}, {1}, {3}), Contains("has no elements 3 to 5"));
  CHECK_THROWS_WITH(gather(x({5}), input("i", f32, {2}), 0), Contains("they must be integers"));
  CHECK_THROWS_WITH(gather(x({0}), input("i", i64, {2}), 0), Contains("nothing to gather"));
  CHECK_THROWS_WITH(pad(x({3}), {-2}, {-2}, PadMode::constant, zero(f32)),
                    Contains("cannot lose 4"));
  CHECK_THROWS_WITH(pad(x({0}), {1}, {0}, PadMode::edge, zero(f32)), Contains("nothing to repeat"));
}

TEST_CASE("normalisations check their channels") {
  Tensor c = input("c", f32, {4});
  CHECK_THROWS_WITH(batch_norm(x({1, 3, 2, 2}), c, c, c, c, 1e-5),
                    Contains("has 4 elements; \"x\" has 3 channels"));
  CHECK(stages(softmax(x({3, 4}), 1, "Y")) == Names{"Y.max", "Y.exp", "Y.sum", "Y.inverse", "Y"});
  CHECK_THROWS_WITH(softmax(x({3, 4}, i32), 1), Contains("a float type is needed"));
  CHECK_THROWS_WITH(softmax(x({3, 4}), 2), Contains("axis 2 is not in [-2, 2)"));
}
