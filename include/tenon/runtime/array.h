#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <tenon/support/dtype.h>

namespace tenon {

using Shape = std::vector<int64_t>;

/// A dense row-major array of one element type. A value handle: copies share the elements, copy()
/// does not.
class Array {
 public:
  /// No array at all: converts to false, has no elements.
  Array() = default;

  /// 64-byte aligned, elements not initialised. UserError for a negative or absurd extent, or no
  /// memory.
  static Array empty(DType dtype, Shape shape);

  /// Memory of someone else, held by `keep_alive` (which may be null: then the caller keeps it).
  /// `data` must be aligned to the element.
  static Array wrap(void* data, DType dtype, Shape shape, std::shared_ptr<const void> keep_alive);

  explicit operator bool() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }  ///< elements
  int64_t bytes() const { return size_ * byte_size(dtype_); }

  /// First element. Handles are shallow: a const Array still gives writable elements.
  void* raw() const { return data_.get(); }

  /// The same, typed. UserError unless T holds the element type: float for f32, bool or uint8_t for
  /// bool, uint16_t (the bits) for f16 and bf16.
  template <class T>
  T* data() const;

  /// data<T>() with its size.
  template <class T>
  std::span<T> elements() const {
    return {data<T>(), static_cast<size_t>(size_)};
  }

  /// The same elements in memory of their own.
  Array copy() const;

  /// Shares the elements. UserError unless the number of elements stays.
  Array reshaped(Shape shape) const;

  /// A part of the elements from position `offset` on, shared. UserError when it does not fit.
  Array view(int64_t offset, Shape shape) const;

  /// Every element as a double (i64 and u64 beyond 2^53 are rounded).
  std::vector<double> to_doubles() const;

 private:
  void check_holds(bool fits, const char* type) const;

  std::shared_ptr<void> data_;
  DType dtype_ = DType::f32;
  Shape shape_;
  int64_t size_ = 0;
};

/// Product of the extents. UserError for a negative one or a product beyond 2^62.
int64_t element_count(const Shape& shape);

Array zeros(DType dtype, Shape shape);

/// `value` converted as by a cast: floats rounded to nearest, integers truncated, then wrapped.
Array full(DType dtype, Shape shape, double value);

/// The same numbers everywhere for a seed: floats uniform in [-1, 1), signed integers in [-8, 7],
/// unsigned in [0, 15], bool 0 or 1.
Array random(DType dtype, Shape shape, uint64_t seed = 0);

/// One double an element, converted as full() does. UserError when the counts differ.
Array from_doubles(DType dtype, Shape shape, const std::vector<double>& values);

/// The element type that T stands for.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return boolean;
  else if constexpr (std::is_same_v<T, float>)
    return f32;
  else if constexpr (std::is_same_v<T, double>)
    return f64;
  else {
    static_assert(std::is_integral_v<T>, "no element type stands for this type");
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return kSigned ? i8 : u8;
    else if constexpr (sizeof(T) == 2)
      return kSigned ? i16 : u16;
    else if constexpr (sizeof(T) == 4)
      return kSigned ? i32 : u32;
    else
      return kSigned ? i64 : u64;
  }
}

/// UserError when the counts differ.
void check_count(const Shape& shape, size_t values);

template <class T>
Array from_vector(Shape shape, const std::vector<T>& values) {
  check_count(shape, values.size());
  Array array = Array::empty(dtype_of<T>(), std::move(shape));
  T* out = array.data<T>();
  for (size_t k = 0; k < values.size(); ++k) out[k] = values[k];
  return array;
}

template <class T>
T* Array::data() const {
  constexpr DType exact = dtype_of<T>();
  const bool bits16 = exact == u16 && (dtype_ == f16 || dtype_ == bf16);
  const bool bool8 = exact == u8 && dtype_ == boolean;
  check_holds(dtype_ == exact || bits16 || bool8, name(exact).data());
  return static_cast<T*>(data_.get());
}

}  // namespace tenon
