#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include <tenon/runtime/module.h>

// This program counts what it allocates with new, where a checked call's containers would get their
// memory from.
namespace {
thread_local int64_t allocations = 0;
}

[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

using namespace tenon;

namespace {

/// out = the sum of all inputs, one symbolic extent each.
int32_t add_all(void* const* args, const int64_t* dims, void* scratch, tenon_parallel_for, void*) {
  *static_cast<float*>(scratch) = 0;
  for (int64_t k = 0; k < dims[0]; ++k)
    *static_cast<float*>(scratch) += *static_cast<float*>(args[k]);
  *static_cast<float*>(args[dims[0]]) = *static_cast<float*>(scratch);
  return TENON_OK;
}

Module adds(int inputs) {
  Module m;
  m.name = "adds";
  m.entry = add_all;
  m.workspace_bytes = 4;
  m.symbols = {{"n", 1, 100}};
  for (int k = 0; k < inputs; ++k)
    m.parameters.push_back({"x" + std::to_string(k), f32, {1, Extent::of_symbol(0)}, false});
  m.parameters.push_back({"out", f32, {}, true});
  return m;
}

/// `count` arrays of one row of as many elements as there are, the first of which counts.
std::vector<Array> arguments_of(int count) {
  std::vector<Array> all;
  for (int k = 0; k < count; ++k) all.push_back(full(f32, {1, count}, k + 1));
  all.push_back(zeros(f32, {}));
  return all;
}

}  // namespace

TEST_CASE("a checked call allocates nothing") {
  const Module m = adds(3);
  const std::vector<Array> list = arguments_of(3);
  const Array* const pointers[] = {&list[0], &list[1], &list[2], &list[3]};
  Workspace workspace;
  call(m, list, serial_pool(), workspace);  // the workspace grows once
  const int64_t before = allocations;
  call(m, list, serial_pool(), workspace);
  call(m, Arguments(pointers), serial_pool(), workspace);
  CHECK(allocations == before);
  CHECK(list[3].to_doubles()[0] == 6);
}

TEST_CASE("a call takes any number of arguments") {
  Workspace workspace;
  for (int count : {1, 15, 16, 17, 40}) {
    const std::vector<Array> list = arguments_of(count);
    call(adds(count), list, serial_pool(), workspace);
    CHECK(list.back().to_doubles()[0] == count * (count + 1) / 2);
  }
}
