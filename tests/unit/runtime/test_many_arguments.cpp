#include <tenon/runtime/module.h>

#include <catch2/catch.hpp>

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

TEST_CASE("a call takes any number of arguments") {
  Workspace workspace;
  for (int count : {1, 15, 16, 17, 40}) {
    const std::vector<Array> list = arguments_of(count);
    call(adds(count), list, serial_pool(), workspace);
    CHECK(list.back().to_doubles()[0] == count * (count + 1) / 2);
  }
}
