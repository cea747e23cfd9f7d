#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <memory>
#include <mutex>

#include "runtime/opencl/launches.h"
#include "runtime/opencl/opencl.h"
#include "target/opencl/opencl_loader.h"
#include "target/opencl_api.h"

namespace tenon {
namespace {

[[noreturn]] void fail(const std::string& what, cl_int code) {
  throw DeviceError(fmt::format("OpenCL: {} failed: {}", what, opencl_error_text(code)));
}

void need(cl_int code, const char* what) {
  if (code != CL_SUCCESS) fail(what, code);
}

/// A device with its context and queue, made once and kept: drivers do not like to be left.
struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  bool unified_memory = false;
  bool correct_division = false;
  std::mutex mutex;  // one call at a time
};

Device& open_device(size_t index) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Device>> open;
  const std::lock_guard<std::mutex> lock(mutex);
  if (open.size() <= index) open.resize(index + 1);
  if (open[index]) return *open[index];
  auto d = std::make_unique<Device>();
  d->id = opencl_device_ids().at(index);
  cl_int code = CL_SUCCESS;
  d->context = opencl().clCreateContext(nullptr, 1, &d->id, nullptr, nullptr, &code);
  need(code, "making a context");
  d->queue = opencl().clCreateCommandQueue(d->context, d->id, 0, &code);
  need(code, "making a queue");
  cl_bool unified = CL_FALSE;
  opencl().clGetDeviceInfo(d->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified,
                           nullptr);
  cl_device_fp_config config = 0;
  opencl().clGetDeviceInfo(d->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(config), &config, nullptr);
  d->unified_memory = unified == CL_TRUE;
  d->correct_division = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  open[index] = std::move(d);
  return *open[index];
}

size_t index_of(const std::string& device) {
  const std::vector<OpenclDevice> all = probe_opencl();
  std::vector<std::string> names;
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].name == device) return k;
    names.push_back(all[k].name);
  }
  if (device == "a common GPU") return 0;
  throw DeviceError(
      fmt::format("the code is for the OpenCL device \"{}\"; this machine has {}\n  "
                  "try: compile it for --target opencl here",
                  device, join(names)));
}

/// Memory of the device that is given back with the object.
class Memory {
 public:
  Memory(Device& device, cl_mem_flags flags, size_t bytes, void* host) {
    cl_int code = CL_SUCCESS;
    handle_ = opencl().clCreateBuffer(device.context, flags, std::max<size_t>(bytes, 1),
                                      bytes == 0 ? nullptr : host, &code);
    if (code != CL_SUCCESS) fail(fmt::format("getting {} bytes of memory", bytes), code);
  }
  ~Memory() { opencl().clReleaseMemObject(handle_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  cl_mem handle() const { return handle_; }

 private:
  cl_mem handle_ = nullptr;
};

class OpenclCode : public DeviceCode {
 public:
  explicit OpenclCode(const std::string& source)
      : plan_(read_launches(source)), device_(open_device(index_of(plan_.device))) {
    build(source);
    for (const Launch& l : plan_.launches) {
      cl_int code = CL_SUCCESS;
      kernels_.push_back(opencl().clCreateKernel(program_, l.kernel.c_str(), &code));
      need(code, "finding a kernel");
    }
  }
  ~OpenclCode() override {
    for (cl_kernel k : kernels_) opencl().clReleaseKernel(k);
    opencl().clReleaseProgram(program_);
  }
  OpenclCode(const OpenclCode&) = delete;
  OpenclCode& operator=(const OpenclCode&) = delete;

  void run(std::span<const DeviceArgument> arguments) override {
    const std::lock_guard<std::mutex> lock(device_.mutex);
    std::vector<std::unique_ptr<Memory>> memory;
    for (const DeviceArgument& a : arguments) memory.push_back(bring(a));
    if (!workspace_)
      workspace_ = std::make_unique<Memory>(device_, CL_MEM_READ_WRITE,
                                            static_cast<size_t>(plan_.workspace_bytes), nullptr);
    for (size_t k = 0; k < kernels_.size(); ++k) launch(k, memory);
    need(opencl().clFinish(device_.queue), "running the kernels");
    for (size_t a = 0; a < arguments.size(); ++a)
      if (arguments[a].is_output && arguments[a].bytes > 0) fetch(*memory[a], arguments[a]);
  }

 private:
  void build(const std::string& source) {
    const char* text = source.c_str();
    const size_t length = source.size();
    cl_int code = CL_SUCCESS;
    program_ = opencl().clCreateProgramWithSource(device_.context, 1, &text, &length, &code);
    need(code, "handing over the source");
    const char* options = device_.correct_division
                              ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                              : "-cl-std=CL1.2";
    code = opencl().clBuildProgram(program_, 1, &device_.id, options, nullptr, nullptr);
    if (code == CL_SUCCESS) return;
    std::string log(1 << 16, '\0');
    size_t bytes = 0;
    opencl().clGetProgramBuildInfo(program_, device_.id, CL_PROGRAM_BUILD_LOG, log.size(),
                                   log.data(), &bytes);
    log.resize(std::min(log.size(), bytes));
    opencl().clReleaseProgram(program_);
    throw DeviceError(fmt::format("OpenCL: the driver of {} refuses the code ({}):\n{}",
                                  plan_.device, opencl_error_text(code), log.c_str()));
  }

  /// Devices that share our memory work in place; others get a copy.
  std::unique_ptr<Memory> bring(const DeviceArgument& a) {
    const auto bytes = static_cast<size_t>(a.bytes);
    const cl_mem_flags access = a.is_output ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY;
    if (bytes == 0) return std::make_unique<Memory>(device_, access, 0, nullptr);
    const cl_mem_flags how = device_.unified_memory ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR;
    return std::make_unique<Memory>(device_, access | how, bytes, a.data);
  }

  void fetch(const Memory& memory, const DeviceArgument& a) {
    const auto bytes = static_cast<size_t>(a.bytes);
    if (!device_.unified_memory) {
      need(opencl().clEnqueueReadBuffer(device_.queue, memory.handle(), CL_TRUE, 0, bytes, a.data,
                                        0, nullptr, nullptr),
           "reading an output");
      return;
    }
    cl_int code = CL_SUCCESS;
    void* there = opencl().clEnqueueMapBuffer(device_.queue, memory.handle(), CL_TRUE, CL_MAP_READ,
                                              0, bytes, 0, nullptr, nullptr, &code);
    need(code, "reading an output");
    opencl().clEnqueueUnmapMemObject(device_.queue, memory.handle(), there, 0, nullptr, nullptr);
    need(opencl().clFinish(device_.queue), "reading an output");
  }

  void launch(size_t k, const std::vector<std::unique_ptr<Memory>>& memory) {
    const Launch& l = plan_.launches[k];
    cl_uint index = 0;
    const auto pass = [&](const Memory& m) {
      const cl_mem handle = m.handle();
      need(opencl().clSetKernelArg(kernels_[k], index++, sizeof(handle), &handle),
           "passing an argument");
    };
    for (const auto& m : memory) pass(*m);
    pass(*workspace_);
    const size_t all[3] = {l.grid[0] * l.block[0], l.grid[1] * l.block[1], l.grid[2] * l.block[2]};
    const cl_int code = opencl().clEnqueueNDRangeKernel(device_.queue, kernels_[k], 3, nullptr, all,
                                                        l.block.data(), 0, nullptr, nullptr);
    if (code != CL_SUCCESS)
      fail(fmt::format("launching {} ({} x {} x {} blocks of {} x {} x {} threads)", l.kernel,
                       l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2]),
           code);
  }

  LaunchPlan plan_;
  Device& device_;
  cl_program program_ = nullptr;
  std::vector<cl_kernel> kernels_;
  std::unique_ptr<Memory> workspace_;
};

}  // namespace

std::shared_ptr<DeviceCode> load_opencl(const std::string& source) {
  return std::make_shared<OpenclCode>(source);
}

}  // namespace tenon
