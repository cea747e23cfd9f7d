#include <tenon/runtime/array.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include <tenon/support/error.h>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

constexpr DType kAll[] = {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

}  // namespace

TEST_CASE("arrays are aligned and know their size") {
  for (DType t : kAll) {
    const Array a = Array::empty(t, {3, 1, 5});
    CAPTURE(name(t));
    CHECK(reinterpret_cast<uintptr_t>(a.raw()) % 64 == 0);
    CHECK(a.size() == 15);
    CHECK(a.bytes() == 15 * byte_size(t));
    CHECK(a.rank() == 3);
  }
  // Large ones start a large page.
  CHECK(reinterpret_cast<uintptr_t>(Array::empty(u8, {int64_t{9} << 20}).raw()) % (2 << 20) == 0);
  CHECK(zeros(f32, {}).size() == 1);
  const Array none = zeros(f32, {4, 0, 2});
  CHECK(none.size() == 0);
  CHECK(static_cast<bool>(none));
  CHECK(!Array());
}

TEST_CASE("impossible shapes are refused") {
  CHECK_THROWS_WITH(Array::empty(f32, {2, -1}), Contains("2x-1") && Contains("negative"));
  CHECK_THROWS_WITH(Array::empty(f32, {int64_t{1} << 40, int64_t{1} << 40}),
                    Contains("more than 2^62"));
  CHECK_THROWS_WITH(Array::empty(f64, {int64_t{1} << 61}), Contains("no memory"));
  CHECK_THROWS_AS(Array::empty(f32, {-1}), UserError);
  CHECK(element_count({0, int64_t{1} << 61}) == 0);
}

TEST_CASE("handles share, copies do not") {
  Array a = full(f32, {4}, 2.5);
  const Array shared = a;
  const Array own = a.copy();
  a.data<float>()[1] = 7;
  CHECK(shared.data<float>()[1] == 7);
  CHECK(own.data<float>()[1] == 2.5f);
}

TEST_CASE("typed access is checked") {
  const Array a = zeros(f32, {2, 3});
  CHECK_NOTHROW(a.data<float>());
  CHECK_THROWS_WITH(a.data<double>(), Contains("array f32 2x3") && Contains("data<f64>()"));
  CHECK_THROWS_AS(a.data<int32_t>(), UserError);
  CHECK_NOTHROW(zeros(f16, {1}).data<uint16_t>());
  CHECK_NOTHROW(zeros(bf16, {1}).data<uint16_t>());
  CHECK_NOTHROW(zeros(boolean, {1}).data<bool>());
  CHECK_NOTHROW(zeros(boolean, {1}).data<uint8_t>());
  CHECK_THROWS_AS(zeros(f16, {1}).data<int16_t>(), UserError);
  CHECK_THROWS_WITH(Array().data<float>(), Contains("no array at all"));
}

TEST_CASE("reshape and view share the elements") {
  const Array a = from_vector<int32_t>({2, 3}, {0, 1, 2, 3, 4, 5});
  const Array r = a.reshaped({3, 2});
  CHECK(r.raw() == a.raw());
  CHECK(r.shape() == Shape{3, 2});
  CHECK_THROWS_WITH(a.reshaped({4}), Contains("reshaped to 4") && Contains("6"));
  const Array v = a.view(1, {4});
  CHECK(v.to_doubles() == std::vector<double>{1, 2, 3, 4});
  CHECK(reinterpret_cast<uintptr_t>(v.raw()) % 64 == 4);
  v.data<int32_t>()[0] = 9;
  CHECK(a.data<int32_t>()[1] == 9);
  CHECK_NOTHROW(a.view(6, {0}));
  CHECK_THROWS_WITH(a.view(3, {4}), Contains("view of 4 elements from 3"));
  CHECK_THROWS_AS(a.view(-1, {1}), UserError);
}

TEST_CASE("foreign memory is kept as long as an array needs it") {
  auto memory = std::make_shared<std::vector<float>>(6, 1.0f);
  std::weak_ptr<std::vector<float>> watch = memory;
  Array a = Array::wrap(memory->data(), f32, {2, 3}, memory);
  memory.reset();
  Array part = a.view(3, {3});
  a = Array();
  CHECK(!watch.expired());
  CHECK(part.data<float>()[2] == 1);
  part = Array();
  CHECK(watch.expired());
  alignas(8) char bytes[16];
  CHECK_THROWS_WITH(Array::wrap(bytes + 1, f32, {2}, nullptr), Contains("aligned to 4 bytes"));
  CHECK_THROWS_AS(Array::wrap(nullptr, f32, {2}, nullptr), UserError);
}

TEST_CASE("random is the same for a seed and stays in its range") {
  for (DType t : kAll) {
    CAPTURE(name(t));
    const std::vector<double> a = random(t, {500}, 3).to_doubles();
    CHECK(a == random(t, {500}, 3).to_doubles());
    CHECK(a != random(t, {500}, 4).to_doubles());
    const double low = *std::min_element(a.begin(), a.end());
    const double high = *std::max_element(a.begin(), a.end());
    if (is_float(t)) {
      CHECK(low >= -1);
      CHECK(low < -0.9);
      CHECK(high < 1);
      CHECK(high > 0.9);
    } else {
      CHECK(low == (is_signed_int(t) ? -8 : 0));
      CHECK(high == (is_bool(t) ? 1 : is_signed_int(t) ? 7 : 15));
    }
  }
  // The sequence itself is part of the contract: records name inputs by seed alone.
  CHECK(random(i32, {6}, 7).to_doubles() == random(i16, {6}, 7).to_doubles());
}

TEST_CASE("values are converted like casts") {
  CHECK(full(i8, {1}, 3.9).to_doubles()[0] == 3);
  CHECK(full(i8, {1}, -3.9).to_doubles()[0] == -3);
  CHECK(full(u8, {1}, 300).to_doubles()[0] == 44);
  CHECK(full(boolean, {1}, 0.5).to_doubles()[0] == 1);
  CHECK(full(u64, {1}, 0x1p63).elements<uint64_t>()[0] == uint64_t{1} << 63);
  CHECK(full(i64, {1}, 1e300).elements<int64_t>()[0] == INT64_MAX);
  CHECK(full(f16, {1}, 0.1).to_doubles()[0] == Approx(0.1).epsilon(1e-3));
  CHECK(from_doubles(f32, {2}, {1.5, -2}).to_doubles() == std::vector<double>{1.5, -2});
  CHECK_THROWS_WITH(from_doubles(f32, {2}, {1}), Contains("has 2 elements, but 1 values"));
  CHECK(from_vector<bool>({2}, {true, false}).dtype() == boolean);
  CHECK_THROWS_AS(from_vector<float>({3}, {1, 2}), UserError);
}
