#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/runtime/array.h>
#include <tenon/runtime/kernel_abi.h>
#include <tenon/runtime/thread_pool.h>

namespace tenon {

/// One extent of a parameter: a number, or value + factor * (symbolic extent `symbol` of the
/// module).
struct Extent {
  int64_t value = 0;
  int symbol = -1;  ///< index into Module::symbols; -1 for a number
  int64_t factor = 0;

  Extent(int64_t number) : value(number) {}
  static Extent of_symbol(int index, int64_t factor = 1, int64_t value = 0) {
    Extent extent(value);
    extent.symbol = index;
    extent.factor = factor;
    return extent;
  }
  /// The extent when the module's symbols have these values.
  int64_t at(const int64_t* dims) const {
    return symbol < 0 ? value : value + factor * dims[symbol];
  }
  int64_t at(const std::vector<int64_t>& dims) const { return at(dims.data()); }
  bool operator==(const Extent&) const = default;
};

/// A symbolic extent: takes its value from the first argument that has it.
struct Symbol {
  std::string name;
  int64_t low = 0, high = 0;  ///< values the kernel was made for, both inclusive
};

struct Module;

struct Parameter {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Extent> shape;  ///< of the array that the kernel takes
  bool is_output = false;
  /// Of an input that is packed ahead: how it lies, "layout(d1//16, d0, d1%16)", and the kernel
  /// that makes the packed array (its second parameter) of the plain one (its first).
  std::string layout;
  std::shared_ptr<const Module> packer;
  /// Of an output: positions of the inputs that may be the very same array at a call. The code then
  /// reads each of their elements before it writes it, and never after.
  std::vector<size_t> in_place = {};
};

/// An argument in this process's memory.
struct DeviceArgument {
  void* data = nullptr;
  int64_t bytes = 0;
  bool is_output = false;
};

/// Code that runs elsewhere than on this process's processor.
class DeviceCode {
 public:
  virtual ~DeviceCode() = default;
  /// Runs it on the arguments, one a parameter; the outputs are there when it returns. Calls at the
  /// same time wait for each other. DeviceError with the driver's word for what it refuses.
  virtual void run(std::span<const DeviceArgument> arguments) = 0;
};

/// A compiled kernel ready to be called. Plain data; copies share the code.
struct Module {
  std::string name;                    ///< for messages
  tenon_kernel entry = nullptr;        ///< null where `device` runs it
  std::shared_ptr<DeviceCode> device;  ///< null for code of this processor
  std::shared_ptr<void> keep_alive;    ///< the code
  int64_t workspace_bytes = 0;         ///< once a call
  int64_t workspace_bytes_per_worker = 0;
  tenon_workspace workspace_of = nullptr;  ///< where the bytes depend on the symbols: the code says
  bool many_loops = true;  ///< may start several parallel loops a call: workers stay awake between
  std::vector<Parameter> parameters;  ///< inputs, then outputs
  std::vector<Symbol> symbols;

  /// Bytes of parameter `k` at these values of the symbols.
  int64_t bytes_of(size_t k, const int64_t* dims) const;

  bool needs_workspace() const {
    return workspace_bytes > 0 || workspace_bytes_per_worker > 0 || workspace_of;
  }
  /// Bytes of workspace of a call with these values of the symbols.
  int64_t workspace_total(int workers, const int64_t* dims = nullptr) const {
    int64_t bytes[2] = {workspace_bytes, workspace_bytes_per_worker};
    if (workspace_of) workspace_of(dims, bytes);
    return bytes[0] + bytes[1] * workers;
  }
};

/// Scratch memory that grows to the largest request and is used again. One call at a time.
class Workspace {
 public:
  /// At least `bytes` bytes, 64-byte aligned; what was in it is lost when it grows. Null for 0
  /// bytes.
  void* reserve(int64_t bytes);
  int64_t bytes() const { return memory_ ? memory_.bytes() : 0; }

 private:
  Array memory_;
};

/// The arguments of a call; pointers, since copying a handle costs more than checking it.
using Arguments = std::span<const Array* const>;

/// Checks the arguments against the parameters and runs the kernel. UserError, naming the
/// parameter, for a wrong number of arguments, element type, rank or extent, a symbolic extent out
/// of range or with two values, and for an output whose memory overlaps another argument, unless it
/// is all of an input that its Parameter::in_place names.
/// InternalError when the kernel returns a status. Allocates nothing (up to 16 arguments), so that
/// a call of the smallest kernel costs some tens of nanoseconds.
void call(const Module& module, Arguments arguments, ThreadPool& pool, Workspace& workspace);
void call(const Module& module, std::span<const Array> arguments, ThreadPool& pool,
          Workspace& workspace);

/// The values of the module's symbols that these arguments bind; throws as call() does.
std::vector<int64_t> check_arguments(const Module& module, std::span<const Array> arguments);

/// The array that the kernel takes for `parameter`, which is packed ahead, made of the plain one.
/// UserError for a parameter that is not, and as call() for the array.
Array prepack(const Module& module, size_t parameter, const Array& array, ThreadPool& pool);

/// The same call without checks or allocation: for callers that checked once and run often.
/// `dims` has a value a symbol (may be null when there are none).
void call_unchecked(const Module& module, void* const* arguments, const int64_t* dims,
                    ThreadPool& pool, Workspace& workspace);

}  // namespace tenon
