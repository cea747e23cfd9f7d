#include <sys/mman.h>
#include <tenon/runtime/array.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <tenon/support/error.h>
#include <tenon/support/float16.h>
#include <tenon/support/rng.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

constexpr int64_t kAlignment = 64, kMostElements = int64_t{1} << 62;
constexpr int64_t kLargePage = int64_t{2} << 20, kLargeArray = 2 * kLargePage;

/// Large ones in large pages where the system gives them: a sweep through memory then seldom waits
/// for an address to be translated.
void* allocate(int64_t bytes) {
  const int64_t alignment = bytes >= kLargeArray ? kLargePage : kAlignment;
  const auto rounded = static_cast<size_t>((bytes + alignment - 1) / alignment * alignment);
  void* data = std::aligned_alloc(static_cast<size_t>(alignment), rounded);
  if (data && bytes >= kLargeArray) madvise(data, rounded, MADV_HUGEPAGE);
  return data;
}

std::string describe(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", name(dtype), shape_text(shape));
}

/// Calls f with a null pointer of the C++ type that stores `dtype` (16-bit floats as their bits).
template <class F>
void with_storage(DType dtype, F f) {
  switch (dtype) {
    case DType::boolean:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::i8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::i16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::i32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::i64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::u8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::u16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::u32:
      return f(static_cast<uint32_t*>(nullptr));
    case DType::u64:
      return f(static_cast<uint64_t*>(nullptr));
    case DType::f16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::bf16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::f32:
      return f(static_cast<float*>(nullptr));
    case DType::f64:
      return f(static_cast<double*>(nullptr));
  }
}

template <class T>
double widen(DType dtype, T stored) {
  if (dtype == f16) return from_f16(static_cast<uint16_t>(stored));
  if (dtype == bf16) return from_bf16(static_cast<uint16_t>(stored));
  return static_cast<double>(stored);
}

/// Truncates towards zero; NaN gives 0 and what int64 cannot hold its nearest end (u64 keeps its
/// upper half).
int64_t to_integer(double value, DType dtype) {
  if (std::isnan(value)) return 0;
  if (dtype == u64 && value >= 0x1p63) {
    return static_cast<int64_t>(value < 0x1p64 ? static_cast<uint64_t>(value) : UINT64_MAX);
  }
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(value);
}

template <class T>
T narrow(DType dtype, double value) {
  if (dtype == f16) return static_cast<T>(to_f16(value));
  if (dtype == bf16) return static_cast<T>(to_bf16(value));
  if (is_bool(dtype)) return static_cast<T>(value != 0);
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value);
  else
    return static_cast<T>(to_integer(value, dtype));
}

/// Fills a new array with next(), one call an element, in row-major order.
template <class F>
Array generate(DType dtype, Shape shape, F next) {
  Array array = Array::empty(dtype, std::move(shape));
  with_storage(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* out = static_cast<T*>(array.raw());
    for (int64_t k = 0; k < array.size(); ++k) out[k] = narrow<T>(dtype, next());
  });
  return array;
}

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  bool none = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw UserError(fmt::format("array of shape {}: an extent is negative", shape_text(shape)));
    none = none || extent == 0;
    if (extent > 0 && count > kMostElements / extent) {
      throw UserError(fmt::format("array of shape {}: more than 2^62 elements", shape_text(shape)));
    }
    count *= extent > 0 ? extent : 1;
  }
  return none ? 0 : count;
}

void check_count(const Shape& shape, size_t values) {
  if (static_cast<size_t>(element_count(shape)) == values) return;
  throw UserError(fmt::format("array of shape {}: has {} elements, but {} values were given",
                              shape_text(shape), element_count(shape), values));
}

Array Array::empty(DType dtype, Shape shape) {
  Array array;
  array.size_ = element_count(shape);
  array.dtype_ = dtype;
  array.shape_ = std::move(shape);
  // An array of no elements still has an address, so that it is told apart from no array.
  const int64_t most = std::numeric_limits<int64_t>::max() / 16;
  void* data = nullptr;
  if (array.size_ <= most) {
    data = allocate(std::max<int64_t>(array.bytes(), 1));
  }
  if (!data) {
    throw UserError(fmt::format("array {}: no memory for {} elements of {} bytes",
                                describe(dtype, array.shape_), array.size_, byte_size(dtype)));
  }
  array.data_ = std::shared_ptr<void>(data, [](void* p) { std::free(p); });
  return array;
}

Array Array::wrap(void* data, DType dtype, Shape shape, std::shared_ptr<const void> keep_alive) {
  Array array;
  array.size_ = element_count(shape);
  array.dtype_ = dtype;
  array.shape_ = std::move(shape);
  if (!data || reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(byte_size(dtype)) != 0) {
    throw UserError(fmt::format(
        "array {}: its memory must not be null and must be aligned to {} bytes, but is at {}",
        describe(dtype, array.shape_), byte_size(dtype), data));
  }
  array.data_ = std::shared_ptr<void>(std::const_pointer_cast<void>(keep_alive), data);
  return array;
}

void Array::check_holds(bool fits, const char* type) const {
  if (fits && data_) return;
  if (!data_) throw UserError(fmt::format("data<{}>() of no array at all", type));
  throw UserError(fmt::format("array {}: data<{}>() asks for another element type than {}",
                              describe(dtype_, shape_), type, name(dtype_)));
}

Array Array::copy() const {
  if (!data_) return {};
  Array array = empty(dtype_, shape_);
  std::memcpy(array.raw(), raw(), static_cast<size_t>(bytes()));
  return array;
}

Array Array::reshaped(Shape shape) const {
  if (element_count(shape) != size_) {
    throw UserError(fmt::format("array {}: reshaped to {} would have {} elements instead of {}",
                                describe(dtype_, shape_), shape_text(shape), element_count(shape),
                                size_));
  }
  Array array = *this;
  array.shape_ = std::move(shape);
  return array;
}

Array Array::view(int64_t offset, Shape shape) const {
  const int64_t count = element_count(shape);
  if (offset < 0 || offset > size_ || count > size_ - offset) {
    throw UserError(fmt::format("array {}: a view of {} elements from {} on does not fit into {}",
                                describe(dtype_, shape_), count, offset, size_));
  }
  Array array = *this;
  array.data_ =
      std::shared_ptr<void>(data_, static_cast<char*>(raw()) + offset * byte_size(dtype_));
  array.shape_ = std::move(shape);
  array.size_ = count;
  return array;
}

std::vector<double> Array::to_doubles() const {
  std::vector<double> values(static_cast<size_t>(size_));
  with_storage(dtype_, [&](auto* type) {
    const auto* in = static_cast<decltype(type)>(raw());
    for (int64_t k = 0; k < size_; ++k) values[static_cast<size_t>(k)] = widen(dtype_, in[k]);
  });
  return values;
}

Array zeros(DType dtype, Shape shape) {
  Array array = Array::empty(dtype, std::move(shape));
  std::memset(array.raw(), 0, static_cast<size_t>(array.bytes()));
  return array;
}

Array full(DType dtype, Shape shape, double value) {
  return generate(dtype, std::move(shape), [&] { return value; });
}

Array random(DType dtype, Shape shape, uint64_t seed) {
  Rng rng(seed);
  return generate(dtype, std::move(shape), [&]() -> double {
    if (is_bool(dtype)) return static_cast<double>(rng.below(2));
    if (is_signed_int(dtype)) return static_cast<double>(rng.between(-8, 7));
    if (is_unsigned_int(dtype)) return static_cast<double>(rng.below(16));
    // Steps that the type holds exactly, so that no value rounds up to 1.
    const double steps = dtype == f64   ? 0x1p52
                         : dtype == f32 ? 0x1p23
                         : dtype == f16 ? 0x1p10
                                        : 0x1p7;
    return std::floor((2 * rng.real() - 1) * steps) / steps;
  });
}

Array from_doubles(DType dtype, Shape shape, const std::vector<double>& values) {
  check_count(shape, values.size());
  size_t k = 0;
  return generate(dtype, std::move(shape), [&] { return values[k++]; });
}

}  // namespace tenon
