#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <vector>

namespace tenon {

/// The functions of OpenCL 1.2 that are used here, from libOpenCL.so.1, which is opened when it is
/// first asked for: nothing links against it.
struct OpenclFunctions {
  decltype(&::clGetPlatformIDs) clGetPlatformIDs;
  decltype(&::clGetPlatformInfo) clGetPlatformInfo;
  decltype(&::clGetDeviceIDs) clGetDeviceIDs;
  decltype(&::clGetDeviceInfo) clGetDeviceInfo;
  decltype(&::clCreateContext) clCreateContext;
  decltype(&::clCreateCommandQueue) clCreateCommandQueue;
  decltype(&::clCreateProgramWithSource) clCreateProgramWithSource;
  decltype(&::clBuildProgram) clBuildProgram;
  decltype(&::clGetProgramBuildInfo) clGetProgramBuildInfo;
  decltype(&::clCreateKernel) clCreateKernel;
  decltype(&::clSetKernelArg) clSetKernelArg;
  decltype(&::clCreateBuffer) clCreateBuffer;
  decltype(&::clEnqueueWriteBuffer) clEnqueueWriteBuffer;
  decltype(&::clEnqueueReadBuffer) clEnqueueReadBuffer;
  decltype(&::clEnqueueMapBuffer) clEnqueueMapBuffer;
  decltype(&::clEnqueueUnmapMemObject) clEnqueueUnmapMemObject;
  decltype(&::clEnqueueNDRangeKernel) clEnqueueNDRangeKernel;
  decltype(&::clFinish) clFinish;
  decltype(&::clReleaseKernel) clReleaseKernel;
  decltype(&::clReleaseProgram) clReleaseProgram;
  decltype(&::clReleaseMemObject) clReleaseMemObject;
};

/// DeviceError when there is no loader.
const OpenclFunctions& opencl();

/// The devices' handles in the order of probe_opencl(); DeviceError when there are none.
std::vector<cl_device_id> opencl_device_ids();

/// "CL_OUT_OF_RESOURCES (-5)".
std::string opencl_error_text(cl_int code);

}  // namespace tenon
