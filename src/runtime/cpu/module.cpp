#include <tenon/runtime/module.h>

#include <algorithm>
#include <optional>

#include <tenon/support/error.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

/// "4", "n", "2*n - 1"
std::string describe(const Module& module, const Extent& e) {
  if (e.symbol < 0) return std::to_string(e.value);
  const std::string& name = module.symbols.at(static_cast<size_t>(e.symbol)).name;
  std::string text = e.factor == 1 ? name : fmt::format("{}*{}", e.factor, name);
  if (e.value > 0) text += fmt::format(" + {}", e.value);
  if (e.value < 0) text += fmt::format(" - {}", -e.value);
  return text;
}

/// "C f32 [4, n]"
std::string describe(const Module& module, const Parameter& p) {
  std::vector<std::string> extents;
  for (const Extent& e : p.shape) extents.push_back(describe(module, e));
  const std::string text = fmt::format("{} {} [{}]", p.name, name(p.dtype), join(extents));
  return p.layout.empty() ? text : fmt::format("{} ({}, packed ahead)", text, p.layout);
}

std::string describe(const Array& a) {
  return a ? fmt::format("{} [{}]", name(a.dtype()), fmt::join(a.shape(), ", "))
           : "no array at all";
}

[[noreturn]] void refuse(const Module& module, const std::string& why) {
  std::vector<std::string> all;
  for (const Parameter& p : module.parameters)
    all.push_back(describe(module, p) + (p.is_output ? " (output)" : ""));
  throw UserError(fmt::format("call of {}: {}\n  parameters: {}", module.name, why, join(all)));
}

/// Where a packed array is wanted, what is wrong is hardly ever one extent.
void check_packed(const Module& module, const Parameter& p, const Array& a) {
  if (p.layout.empty()) return;
  Shape wanted;
  for (const Extent& e : p.shape) wanted.push_back(e.value);
  if (a.shape() == wanted) return;
  const std::string plain =
      p.packer ? " made of " + describe(*p.packer, p.packer->parameters[0]) : "";
  refuse(module,
         fmt::format("argument {} is {}, but this kernel takes it packed ahead: {} [{}], {}{}\n  "
                     "try: pass what prepack(\"{}\", array) of the kernel gives, made once",
                     p.name, describe(a), name(p.dtype), fmt::join(wanted, ", "), p.layout, plain,
                     p.name));
}

/// What the symbolic extents of a call are, and which parameter said so first.
struct Bindings {
  int64_t* dims;
  const Parameter** bound_by;
};

void check_symbolic(const Module& module, const Parameter& p, const Array& a, size_t d,
                    Bindings bindings) {
  const int64_t given = a.shape()[d];
  const Extent& wanted = p.shape[d];
  const auto s = static_cast<size_t>(wanted.symbol);
  const Symbol& symbol = module.symbols.at(s);
  if (bindings.bound_by[s]) {
    if (given == wanted.at(bindings.dims)) return;
    refuse(module, fmt::format("argument {} has {} = {}, but {} has {} = {}", p.name,
                               describe(module, wanted), given, bindings.bound_by[s]->name,
                               symbol.name, bindings.dims[s]));
  }
  const int64_t value = (given - wanted.value) / wanted.factor;
  if (value * wanted.factor + wanted.value != given)
    refuse(module, fmt::format("argument {} is {}, but extent {} must be {} for a whole {}", p.name,
                               describe(a), d, describe(module, wanted), symbol.name));
  if (value < symbol.low || value > symbol.high) {
    refuse(module, fmt::format("argument {} is {}, but extent {} ({}) must be in {} to {}", p.name,
                               describe(a), d, describe(module, wanted),
                               wanted.value + wanted.factor * symbol.low,
                               wanted.value + wanted.factor * symbol.high));
  }
  bindings.bound_by[s] = &p;
  bindings.dims[s] = value;
}

void check_extents(const Module& module, const Parameter& p, const Array& a, Bindings bindings) {
  for (size_t d = 0; d < p.shape.size(); ++d) {
    const Extent& wanted = p.shape[d];
    if (wanted.symbol >= 0) {
      check_symbolic(module, p, a, d, bindings);
    } else if (a.shape()[d] != wanted.value) {
      refuse(module, fmt::format("argument {} is {}, but extent {} must be {}", p.name, describe(a),
                                 d, wanted.value));
    }
  }
}

bool overlap(const Array& a, const Array& b) {
  const auto first = reinterpret_cast<uintptr_t>(a.raw()),
             second = reinterpret_cast<uintptr_t>(b.raw());
  return first < second + static_cast<uintptr_t>(b.bytes()) &&
         second < first + static_cast<uintptr_t>(a.bytes()) && a.size() > 0 && b.size() > 0;
}

/// Outputs may share memory with nothing but inputs that they replace element by element: generated
/// code counts on it.
void check_overlaps(const Module& module, Arguments arguments) {
  for (size_t out = 0; out < arguments.size(); ++out) {
    const Parameter& p = module.parameters[out];
    if (!p.is_output) continue;
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (k == out || !overlap(*arguments[out], *arguments[k])) continue;
      const bool may = std::find(p.in_place.begin(), p.in_place.end(), k) != p.in_place.end();
      if (may && arguments[out]->raw() == arguments[k]->raw()) continue;
      refuse(module, fmt::format("output {} overlaps argument {} in memory; {}\n"
                                 "  try: an output array of its own",
                                 p.name, module.parameters[k].name,
                                 may ? "only all of it may be the output too"
                                     : "this kernel does not work in place"));
    }
  }
}

void check_count(const Module& module, size_t given) {
  if (given != module.parameters.size())
    refuse(module, fmt::format("{} arguments given, {} wanted", given, module.parameters.size()));
}

/// All checks of a call but their number; `bindings` have a place a symbol, none bound yet.
void check(const Module& module, Arguments arguments, Bindings bindings) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Parameter& p = module.parameters[k];
    const Array& a = *arguments[k];
    if (!a || a.dtype() != p.dtype) {
      refuse(module, fmt::format("argument {} is {}, but the element type must be {}", p.name,
                                 describe(a), name(p.dtype)));
    }
    check_packed(module, p, a);
    if (a.shape().size() != p.shape.size()) {
      refuse(module, fmt::format("argument {} is {}, but the rank must be {}", p.name, describe(a),
                                 p.shape.size()));
    }
    check_extents(module, p, a, bindings);
  }
  check_overlaps(module, arguments);
}

/// `count` zeros on the stack, on the heap when there are more than a call usually has.
template <class T>
class Few {
 public:
  explicit Few(size_t count) {
    if (count > kOnStack) many_ = std::make_unique<T[]>(count);
    data_ = many_ ? many_.get() : few_;
    for (size_t k = 0; !many_ && k < count; ++k) few_[k] = T();
  }
  T* data() { return data_; }

 private:
  static constexpr size_t kOnStack = 16;
  T few_[kOnStack];
  T* data_;
  std::unique_ptr<T[]> many_;
};

}  // namespace

void* Workspace::reserve(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  if (this->bytes() < bytes) {
    memory_ = Array();  // first give back, then ask
    memory_ = Array::empty(u8, {bytes});
  }
  return memory_.raw();
}

std::vector<int64_t> check_arguments(const Module& module, std::span<const Array> arguments) {
  check_count(module, arguments.size());
  std::vector<int64_t> dims(module.symbols.size(), 0);
  std::vector<const Parameter*> bound_by(module.symbols.size(), nullptr);
  std::vector<const Array*> pointers;
  for (const Array& a : arguments) pointers.push_back(&a);
  check(module, pointers, {dims.data(), bound_by.data()});
  return dims;
}

int64_t Module::bytes_of(size_t k, const int64_t* dims) const {
  int64_t bytes = byte_size(parameters[k].dtype);
  for (const Extent& e : parameters[k].shape) bytes *= e.at(dims);
  return bytes;
}

namespace {

void call_device(const Module& module, void* const* arguments, const int64_t* dims) {
  std::vector<DeviceArgument> all;
  for (size_t k = 0; k < module.parameters.size(); ++k)
    all.push_back({arguments[k], module.bytes_of(k, dims), module.parameters[k].is_output});
  module.device->run(all);
}

}  // namespace

void call_unchecked(const Module& module, void* const* arguments, const int64_t* dims,
                    ThreadPool& pool, Workspace& workspace) {
  if (module.device) return call_device(module, arguments, dims);
  std::optional<ThreadPool::Busy> busy;
  if (module.many_loops && pool.workers() > 1) busy.emplace(pool);
  void* const scratch = workspace.reserve(module.workspace_total(pool.workers(), dims));
  const int32_t status =
      module.entry(arguments, dims, scratch, &ThreadPool::parallel_for_entry, &pool);
  ThreadPool::rethrow_failure();
  TENON_CHECK(status == TENON_OK, "kernel {} returned status {}", module.name, status);
}

void call(const Module& module, Arguments arguments, ThreadPool& pool, Workspace& workspace) {
  check_count(module, arguments.size());
  const size_t symbols = module.symbols.size();
  Few<int64_t> dims(symbols);
  Few<const Parameter*> bound_by(symbols);
  check(module, arguments, {dims.data(), bound_by.data()});
  TENON_CHECK(module.entry || module.device, "module {} has no code", module.name);
  Few<void*> pointers(arguments.size());
  for (size_t k = 0; k < arguments.size(); ++k) pointers.data()[k] = arguments[k]->raw();
  call_unchecked(module, pointers.data(), symbols > 0 ? dims.data() : nullptr, pool, workspace);
}

void call(const Module& module, std::span<const Array> arguments, ThreadPool& pool,
          Workspace& workspace) {
  Few<const Array*> pointers(arguments.size());
  for (size_t k = 0; k < arguments.size(); ++k) pointers.data()[k] = &arguments[k];
  call(module, Arguments(pointers.data(), arguments.size()), pool, workspace);
}

Array prepack(const Module& module, size_t parameter, const Array& array, ThreadPool& pool) {
  const Parameter& p = module.parameters.at(parameter);
  if (!p.packer) {
    std::vector<std::string> packed;
    for (const Parameter& other : module.parameters)
      if (other.packer) packed.push_back(other.name);
    throw UserError(fmt::format("prepack for {}: {} is not packed ahead; {}", module.name, p.name,
                                packed.empty() ? "no parameter is" : "these are: " + join(packed)));
  }
  Shape shape;
  for (const Extent& e : p.shape) shape.push_back(e.value);
  const Array packed = Array::empty(p.dtype, shape), arguments[] = {array, packed};
  Workspace workspace;
  call(*p.packer, arguments, pool, workspace);
  return packed;
}

}  // namespace tenon
