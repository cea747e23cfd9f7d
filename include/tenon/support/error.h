#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tenon {

/// Base of every error Tenon throws. `what()` is the whole message for a person:
/// where - what rule - the values - what exists - what to try.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user's formula, call, file or option is at fault. Exit code 2.
class UserError : public Error {
 public:
  using Error::Error;
};

/// A schedule step that is not legal.
class ScheduleError : public UserError {
 public:
  using UserError::UserError;
};

/// A device is missing, lost or refuses. Exit code 3.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A bug in Tenon itself. Exit code 70.
class InternalError : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line,
                             const std::string& message);

}  // namespace tenon

/// Internal invariant: throws InternalError with the condition, the place and a formatted message.
#define TENON_CHECK(cond, ...)                                                             \
  do {                                                                                     \
    if (!(cond)) ::tenon::fail_check(#cond, __FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
