#pragma once
#include <tenon/support/error.h>

#include <string>
#include <utility>
#include <variant>

namespace tenon {

/// Why something did not work, in words for a person.
struct Failure {
  std::string message;
};

/// A value or the reason why there is none. C++20 has no std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::move(value)) {}
  Result(Failure failure) : v_(std::move(failure)) {}

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    TENON_CHECK(ok(), "{}", std::get<1>(v_).message);
    return std::get<0>(v_);
  }
  T&& value() && {
    TENON_CHECK(ok(), "{}", std::get<1>(v_).message);
    return std::get<0>(std::move(v_));
  }
  const T& operator*() const& { return value(); }
  const T* operator->() const { return &value(); }
  const std::string& error() const {
    TENON_CHECK(!ok(), "Result::error() of a success");
    return std::get<1>(v_).message;
  }

 private:
  std::variant<T, Failure> v_;
};

}  // namespace tenon
