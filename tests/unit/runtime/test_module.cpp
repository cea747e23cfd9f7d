#include <tenon/runtime/module.h>

#include <catch2/catch.hpp>
#include <cstring>

#include <tenon/support/error.h>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// out[i] = a[i] + b[0] in parallel; args a, b, out; dims n.
int32_t add_scalar(void* const* args, const int64_t* dims, void*, tenon_parallel_for parallel_for,
                   void* pool) {
  auto task = [](void* context, int64_t begin, int64_t end, int32_t) {
    auto* arrays = static_cast<float**>(context);
    for (int64_t k = begin; k < end; ++k) arrays[2][k] = arrays[0][k] + arrays[1][0];
  };
  parallel_for(pool, dims[0], task, const_cast<void**>(args));
  return TENON_OK;
}

Module add_module() {
  Module m;
  m.name = "add_scalar";
  m.entry = add_scalar;
  m.symbols = {{"n", 1, 100}};
  m.parameters = {{"a", f32, {Extent::of_symbol(0)}, false},
                  {"b", f32, {1}, false},
                  {"out", f32, {Extent::of_symbol(0)}, true}};
  return m;
}

/// The message of the UserError, or nothing when the call works.
std::string refusal(const Module& m, const std::vector<Array>& arguments) {
  Workspace workspace;
  try {
    call(m, arguments, serial_pool(), workspace);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a module runs on arrays") {
  ThreadPool pool(2);
  Workspace workspace;
  const Array a = from_vector<float>({3}, {1, 2, 3}), b = from_vector<float>({1}, {10}),
              out = zeros(f32, {3});
  const Array arguments[] = {a, b, out};
  call(add_module(), arguments, pool, workspace);
  CHECK(out.to_doubles() == std::vector<double>{11, 12, 13});
}

TEST_CASE("inputs may share memory") {
  Workspace workspace;
  const Array a = from_vector<float>({1}, {4}), out = zeros(f32, {1});
  const Array arguments[] = {a, a, out};
  call(add_module(), arguments, serial_pool(), workspace);
  CHECK(out.to_doubles()[0] == 8);
}

TEST_CASE("a symbolic extent is solved from the first argument that has it") {
  Module m = add_module();
  m.symbols = {{"n", 1, 10}};
  m.parameters[0].shape = {Extent::of_symbol(0, 2, 1)};
  m.parameters[2].shape = {Extent::of_symbol(0, 1, -1)};
  const Array b = zeros(f32, {1});
  const std::vector<Array> good = {zeros(f32, {7}), b, zeros(f32, {2})};
  CHECK(check_arguments(m, good) == std::vector<int64_t>{3});
  CHECK_THAT(refusal(m, {zeros(f32, {8}), b, zeros(f32, {2})}),
             Contains("argument a is f32 [8], but extent 0 must be 2*n + 1 for a whole n"));
  CHECK_THAT(refusal(m, {zeros(f32, {7}), b, zeros(f32, {3})}),
             Contains("argument out has n - 1 = 3, but a has n = 3"));
  CHECK_THAT(refusal(m, {zeros(f32, {23}), b, zeros(f32, {10})}),
             Contains("extent 0 (2*n + 1) must be in 3 to 21"));
  CHECK_THAT(refusal(m, {zeros(f32, {1}), b, zeros(f32, {0})}),
             Contains("extent 0 (2*n + 1) must be in 3 to 21"));
}

TEST_CASE("arguments that do not fit are refused by name") {
  const Module m = add_module();
  const Array a = zeros(f32, {3}), b = zeros(f32, {1}), out = zeros(f32, {3});
  CHECK(refusal(m, {a, b, out}).empty());
  CHECK_THAT(refusal(m, {a, b}),
             Contains("call of add_scalar: 2 arguments given, 3 wanted") &&
                 Contains("parameters: a f32 [n], b f32 [1], out f32 [n] (output)"));
  CHECK_THAT(refusal(m, {a, zeros(f64, {1}), out}),
             Contains("argument b is f64 [1]") && Contains("element type must be f32"));
  CHECK_THAT(refusal(m, {a, zeros(f32, {1, 1}), out}),
             Contains("argument b is f32 [1, 1]") && Contains("rank must be 1"));
  CHECK_THAT(refusal(m, {a, zeros(f32, {2}), out}), Contains("extent 0 must be 1"));
  CHECK_THAT(refusal(m, {a, b, zeros(f32, {4})}),
             Contains("argument out has n = 4, but a has n = 3"));
  CHECK_THAT(refusal(m, {zeros(f32, {101}), b, out}), Contains("extent 0 (n) must be in 1 to 100"));
  CHECK_THAT(refusal(m, {a, Array(), out}), Contains("argument b is no array at all"));
}

TEST_CASE("an output that overlaps another argument is refused") {
  const Module m = add_module();
  const Array memory = zeros(f32, {10}), b = zeros(f32, {1});
  CHECK_THAT(refusal(m, {memory.view(0, {4}), b, memory.view(3, {4})}),
             Contains("output out overlaps argument a in memory") && Contains("try:"));
  CHECK_THAT(refusal(m, {memory.view(0, {4}), memory.view(5, {1}), memory.view(4, {4})}),
             Contains("output out overlaps argument b"));
  CHECK(refusal(m, {memory.view(0, {4}), b, memory.view(4, {4})}).empty());
}

TEST_CASE("an output may be all of an input that the kernel replaces") {
  Module m = add_module();
  const Array memory = zeros(f32, {10}), b = zeros(f32, {1}), a = memory.view(0, {4});
  CHECK_THAT(refusal(m, {a, b, a}), Contains("this kernel does not work in place"));
  m.parameters[2].in_place = {0};
  CHECK(refusal(m, {a, b, a}).empty());
  CHECK_THAT(refusal(m, {a, b, memory.view(1, {4})}), Contains("only all of it"));
  CHECK_THAT(refusal(m, {b, memory.view(0, {1}), memory.view(0, {1})}),
             Contains("overlaps argument b in memory; this kernel does not work in place"));
}

TEST_CASE("a status other than 0 is an internal error") {
  Module m = add_module();
  m.entry = [](void* const*, const int64_t*, void*, tenon_parallel_for, void*) -> int32_t {
    return 7;
  };
  Workspace workspace;
  const Array arguments[] = {zeros(f32, {1}), zeros(f32, {1}), zeros(f32, {1})};
  CHECK_THROWS_AS(call(m, arguments, serial_pool(), workspace), InternalError);
  CHECK_THROWS_WITH(call(m, arguments, serial_pool(), workspace),
                    Contains("kernel add_scalar returned status 7"));
  m.entry = nullptr;
  CHECK_THROWS_WITH(call(m, arguments, serial_pool(), workspace), Contains("has no code"));
}

TEST_CASE("workspace is sized by the number of workers and used again") {
  Module m;
  m.name = "scratch";
  m.workspace_bytes = 100;
  m.workspace_bytes_per_worker = 1000;
  m.parameters = {{"out", u64, {1}, true}};
  m.entry = [](void* const* args, const int64_t*, void* scratch, tenon_parallel_for,
               void*) -> int32_t {
    std::memset(scratch, 1, 3100);
    *static_cast<uint64_t*>(args[0]) = reinterpret_cast<uintptr_t>(scratch);
    return 0;
  };
  CHECK(m.workspace_total(3) == 3100);
  ThreadPool pool(3);
  Workspace workspace;
  const Array out = zeros(u64, {1});
  call(m, std::vector<Array>{out}, pool, workspace);
  const uint64_t first = out.data<uint64_t>()[0];
  CHECK(first % 64 == 0);
  CHECK(workspace.bytes() == 3100);
  CHECK(workspace.reserve(50) == reinterpret_cast<void*>(first));
  CHECK(workspace.bytes() == 3100);
  CHECK(Workspace().reserve(0) == nullptr);
}
