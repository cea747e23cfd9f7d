#include "target/opencl/opencl_loader.h"

#include <dlfcn.h>

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <map>

#include "target/opencl_api.h"

namespace tenon {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

template <class F>
void take(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function)
    throw DeviceError(
        fmt::format("{} lacks the function {}\n  try: an OpenCL loader of version "
                    "1.2 or later (apt-get install ocl-icd-libopencl1)",
                    kLibrary, name));
}

OpenclFunctions load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw DeviceError(
        fmt::format("no OpenCL on this machine: {} cannot be opened\n  try: apt-get install "
                    "ocl-icd-libopencl1 and a driver (pocl-opencl-icd runs OpenCL on the CPU)",
                    kLibrary));
  OpenclFunctions f{};
  take(library, "clGetPlatformIDs", f.clGetPlatformIDs);
  take(library, "clGetPlatformInfo", f.clGetPlatformInfo);
  take(library, "clGetDeviceIDs", f.clGetDeviceIDs);
  take(library, "clGetDeviceInfo", f.clGetDeviceInfo);
  take(library, "clCreateContext", f.clCreateContext);
  take(library, "clCreateCommandQueue", f.clCreateCommandQueue);
  take(library, "clCreateProgramWithSource", f.clCreateProgramWithSource);
  take(library, "clBuildProgram", f.clBuildProgram);
  take(library, "clGetProgramBuildInfo", f.clGetProgramBuildInfo);
  take(library, "clCreateKernel", f.clCreateKernel);
  take(library, "clSetKernelArg", f.clSetKernelArg);
  take(library, "clCreateBuffer", f.clCreateBuffer);
  take(library, "clEnqueueWriteBuffer", f.clEnqueueWriteBuffer);
  take(library, "clEnqueueReadBuffer", f.clEnqueueReadBuffer);
  take(library, "clEnqueueMapBuffer", f.clEnqueueMapBuffer);
  take(library, "clEnqueueUnmapMemObject", f.clEnqueueUnmapMemObject);
  take(library, "clEnqueueNDRangeKernel", f.clEnqueueNDRangeKernel);
  take(library, "clFinish", f.clFinish);
  take(library, "clReleaseKernel", f.clReleaseKernel);
  take(library, "clReleaseProgram", f.clReleaseProgram);
  take(library, "clReleaseMemObject", f.clReleaseMemObject);
  return f;
}

std::vector<cl_platform_id> platforms() {
  cl_uint count = 0;
  if (opencl().clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> out(count);
  if (count > 0) opencl().clGetPlatformIDs(count, out.data(), nullptr);
  return out;
}

std::string text_of(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (opencl().clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0)
    return "";
  std::string out(bytes, '\0');
  opencl().clGetDeviceInfo(device, what, bytes, out.data(), nullptr);
  out.resize(out.find('\0') == std::string::npos ? bytes : out.find('\0'));
  return out;
}

template <class T>
T number_of(cl_device_id device, cl_device_info what) {
  T out{};
  opencl().clGetDeviceInfo(device, what, sizeof(T), &out, nullptr);
  return out;
}

OpenclDevice describe(cl_device_id id) {
  OpenclDevice d;
  d.name = text_of(id, CL_DEVICE_NAME);
  d.version = text_of(id, CL_DEVICE_VERSION);
  const auto platform = number_of<cl_platform_id>(id, CL_DEVICE_PLATFORM);
  char name[256] = {};
  opencl().clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, nullptr);
  d.platform = name;
  d.threads_per_block = static_cast<int64_t>(number_of<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  size_t sizes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  opencl().clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes, nullptr);
  for (size_t a = 0; a < d.block.size(); ++a) d.block[a] = static_cast<int64_t>(sizes[a]);
  d.shared_bytes = static_cast<int64_t>(number_of<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE));
  d.compute_units = static_cast<int>(number_of<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  const std::string extensions = " " + text_of(id, CL_DEVICE_EXTENSIONS) + " ";
  d.has_f16 = extensions.find(" cl_khr_fp16 ") != std::string::npos;
  d.has_f64 = extensions.find(" cl_khr_fp64 ") != std::string::npos;
  return d;
}

}  // namespace

const OpenclFunctions& opencl() {
  static const OpenclFunctions functions = load();
  return functions;
}

std::vector<cl_device_id> opencl_device_ids() {
  std::vector<cl_device_id> out;
  for (cl_platform_id platform : platforms()) {
    cl_uint count = 0;
    if (opencl().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS)
      continue;
    std::vector<cl_device_id> ids(count);
    if (count > 0)
      opencl().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    out.insert(out.end(), ids.begin(), ids.end());
  }
  if (out.empty())
    throw DeviceError(
        "no OpenCL device: the loader is there, but no driver offers a device\n  try: the driver "
        "of your GPU, or apt-get install pocl-opencl-icd, which runs OpenCL on the CPU");
  return out;
}

std::vector<OpenclDevice> probe_opencl() {
  std::vector<OpenclDevice> out;
  for (cl_device_id id : opencl_device_ids()) out.push_back(describe(id));
  return out;
}

std::string opencl_error_text(cl_int code) {
  static const std::map<cl_int, const char*> names = {
      {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
      {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
      {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
      {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
      {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
      {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
      {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
      {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
      {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"}};
  const auto found = names.find(code);
  return fmt::format("{} ({})", found == names.end() ? "OpenCL error" : found->second, code);
}

}  // namespace tenon
