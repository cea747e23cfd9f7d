// A CBLAS, opened at run time: "perf_blas mkl LIBRARY" or "perf_blas openblas LIBRARY". Of MKL also
// packed operands, kernels made for one small product, batches, products of 8 bit and bf16 numbers,
// vector mathematics and transposes.
#include <cstdio>
#include <cstdlib>

#include "server.h"

namespace {

using namespace perf;

constexpr int kRowMajor = 101, kPlain = 111, kPacked = 151, kMatrixB = 162, kFixedOffset = 173;
constexpr int64_t kJitMost = 128;

void* library = nullptr;

template <class F>
F* symbol(const char* name) {
  return reinterpret_cast<F*>(find_symbol(library, name));
}

using Sgemm32 = void(int, int, int, int, int, int, float, const float*, int, const float*, int,
                     float, float*, int);
using Sgemm64 = void(int, int, int, int64_t, int64_t, int64_t, float, const float*, int64_t,
                     const float*, int64_t, float, float*, int64_t);

/// Sizes of a product and its operands in memory.
struct Product {
  int m, n, k;
  int64_t batch;
  const float *a, *b;
  float* c;
  std::vector<Span> memory;

  explicit Product(const Case& text)
      : m(static_cast<int>(text.number("m"))),
        n(static_cast<int>(text.number("n"))),
        k(static_cast<int>(text.number("k"))),
        batch(text.batch()),
        a(text.inputs[0].as<float>()),
        b(text.inputs[1].as<float>()),
        c(text.output.as<float>()),
        memory{text.inputs[0], text.inputs[1], text.output} {}
  const float* a_of(int64_t i) const { return a + i * m * k; }
  const float* b_of(int64_t i) const { return b + i * k * n; }
  float* c_of(int64_t i) const { return c + i * m * n; }
};

void refuse_epilogue(const Case& c) {
  if (!c.word("epilogue").empty()) throw NotThere("a BLAS has no such epilogue");
}

std::vector<Variant> openblas_matmul(const Case& c) {
  refuse_epilogue(c);
  const Product p(c);
  auto* sgemm = symbol<Sgemm64>("scipy_cblas_sgemm64_");
  const auto call = [=] {
    for (int64_t i = 0; i < p.batch; ++i)
      sgemm(kRowMajor, kPlain, kPlain, p.m, p.n, p.k, 1, p.a_of(i), p.k, p.b_of(i), p.n, 0,
            p.c_of(i), p.n);
  };
  return {{"openblas", {"plain"}, call, p.memory}};
}

Variant mkl_plain(const Product& p) {
  if (p.batch > 1) {
    using Strided = void(int, int, int, int, int, int, float, const float*, int, int, const float*,
                         int, int, float, float*, int, int, int);
    auto* f = symbol<Strided>("cblas_sgemm_batch_strided");
    const auto call = [=] {
      f(kRowMajor, kPlain, kPlain, p.m, p.n, p.k, 1, p.a, p.k, p.m * p.k, p.b, p.n, p.k * p.n, 0,
        p.c, p.n, p.m * p.n, static_cast<int>(p.batch));
    };
    return {"mkl", {"plain"}, call, p.memory, {}, "sgemm_batch_strided"};
  }
  auto* f = symbol<Sgemm32>("cblas_sgemm");
  const auto call = [=] {
    f(kRowMajor, kPlain, kPlain, p.m, p.n, p.k, 1, p.a, p.k, p.b, p.n, 0, p.c, p.n);
  };
  return {"mkl", {"plain"}, call, p.memory};
}

Variant mkl_packed(const Product& p) {
  auto* size = symbol<size_t(int, int, int, int)>("cblas_sgemm_pack_get_size");
  auto* pack = symbol<void(int, int, int, int, int, int, float, const float*, int, float*)>(
      "cblas_sgemm_pack");
  using Compute =
      void(int, int, int, int, int, int, const float*, int, const float*, int, float, float*, int);
  auto* compute = symbol<Compute>("cblas_sgemm_compute");
  const Storage packed(size(kMatrixB, p.m, p.n, p.k));
  pack(kRowMajor, kMatrixB, kPlain, p.m, p.n, p.k, 1, p.b, p.n, packed.as<float>());
  const auto call = [=] {
    compute(kRowMajor, kPlain, kPacked, p.m, p.n, p.k, p.a, p.k, packed.as<float>(), p.n, 0, p.c,
            p.n);
  };
  return {"mkl-packed", {"packed"}, call, {p.memory[0], packed, p.memory[2]}, {}, "sgemm_compute"};
}

Variant mkl_made_for_shape(const Product& p) {
  using Create = int(void**, int, int, int, int, int, int, float, int, int, float, int);
  using Kernel = void(void*, float*, float*, float*);
  auto* create = symbol<Create>("mkl_cblas_jit_create_sgemm");
  void* made = nullptr;
  create(&made, kRowMajor, kPlain, kPlain, p.m, p.n, p.k, 1, p.k, p.n, 0, p.n);
  auto* kernel = symbol<Kernel*(const void*)>("mkl_jit_get_sgemm_ptr")(made);
  const auto call = [=] {
    for (int64_t i = 0; i < p.batch; ++i)
      kernel(made, const_cast<float*>(p.a_of(i)), const_cast<float*>(p.b_of(i)), p.c_of(i));
  };
  return {"mkl-jit", {"plain"}, call, p.memory, {}, "jit_sgemm"};
}

std::vector<Variant> mkl_matmul(const Case& c) {
  refuse_epilogue(c);
  const Product p(c);
  std::vector<Variant> out = {mkl_plain(p)};
  if (p.batch == 1) out.push_back(mkl_packed(p));
  if (p.m <= kJitMost && p.n <= kJitMost && p.k <= kJitMost) out.push_back(mkl_made_for_shape(p));
  return out;
}

/// u8 by i8 in row-major order is i8 by u8 (the order that MKL has) of the transposed matrices.
std::vector<Variant> mkl_int8_matmul(const Case& c) {
  using Gemm = void(int, int, int, int, int, int, int, float, const void*, int, int8_t, const void*,
                    int, int8_t, float, int32_t*, int, const int32_t*);
  constexpr int kColumnMajor = 102;
  auto* gemm = symbol<Gemm>("cblas_gemm_s8u8s32");
  const int m = static_cast<int>(c.number("m")), n = static_cast<int>(c.number("n")),
            k = static_cast<int>(c.number("k"));
  const void *a = c.inputs[0].data(), *b = c.inputs[1].data();
  int32_t* out = c.output.as<int32_t>();
  const auto call = [=] {
    const int32_t zero = 0;
    gemm(kColumnMajor, kPlain, kPlain, kFixedOffset, n, m, k, 1, b, n, 0, a, k, 0, 0, out, n,
         &zero);
  };
  return {{"mkl", {"plain"}, call, {c.inputs[0], c.inputs[1], c.output}, {}, "gemm_s8u8s32"}};
}

std::vector<Variant> mkl_bf16_matmul(const Case& c) {
  using Bits = const uint16_t*;
  auto* gemm =
      symbol<void(int, int, int, int, int, int, float, Bits, int, Bits, int, float, float*, int)>(
          "cblas_gemm_bf16bf16f32");
  const int m = static_cast<int>(c.number("m")), n = static_cast<int>(c.number("n")),
            k = static_cast<int>(c.number("k"));
  const Bits a = c.inputs[0].as<uint16_t>(), b = c.inputs[1].as<uint16_t>();
  float* out = c.output.as<float>();
  const auto call = [=] { gemm(kRowMajor, kPlain, kPlain, m, n, k, 1, a, k, b, n, 0, out, n); };
  return {{"mkl", {"plain"}, call, {c.inputs[0], c.inputs[1], c.output}, {}, "gemm_bf16bf16f32"}};
}

std::vector<Variant> mkl_elementwise(const Case& c) {
  const std::string op = c.word("function");
  const int n = static_cast<int>(c.number("n"));
  const float* x = c.inputs[0].as<float>();
  float* y = c.output.as<float>();
  if (op == "exp") {
    auto* f = symbol<void(int, const float*, float*)>("vsExp");
    return {{"mkl", {"plain"}, [=] { f(n, x, y); }, {c.inputs[0], c.output}, {}, "vsExp"}};
  }
  if (op == "add") {
    auto* f = symbol<void(int, const float*, const float*, float*)>("vsAdd");
    const float* x2 = c.inputs[1].as<float>();
    const std::vector<Span> memory = {c.inputs[0], c.inputs[1], c.output};
    return {{"mkl", {"plain"}, [=] { f(n, x, x2, y); }, memory, {}, "vsAdd"}};
  }
  throw NotThere("MKL's vector mathematics has no " + op);
}

std::vector<Variant> mkl_transpose(const Case& c) {
  using Copy = void(char, char, size_t, size_t, float, const float*, size_t, size_t, float*, size_t,
                    size_t, size_t);
  auto* f = symbol<Copy>("MKL_Somatcopy_batch_strided");
  const size_t batch = static_cast<size_t>(c.batch()), rows = static_cast<size_t>(c.number("rows")),
               columns = static_cast<size_t>(c.number("columns"));
  const float* x = c.inputs[0].as<float>();
  float* y = c.output.as<float>();
  const auto call = [=] {
    f('R', 'T', rows, columns, 1, x, columns, rows * columns, y, rows, rows * columns, batch);
  };
  return {{"mkl", {"plain"}, call, {c.inputs[0], c.output}, {}, "omatcopy"}};
}

Server mkl() {
  return {{{"matmul", mkl_matmul},
           {"int8_matmul", mkl_int8_matmul},
           {"bf16_matmul", mkl_bf16_matmul},
           {"elementwise", mkl_elementwise},
           {"transpose", mkl_transpose}}};
}

Server openblas() { return {{{"matmul", openblas_matmul}}}; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: perf_blas mkl|openblas LIBRARY\n");
    return 2;
  }
  try {
    library = open_library(argv[2]);
    return serve(std::string(argv[1]) == "mkl" ? mkl() : openblas());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perf_blas: %s\n", error.what());
    return 1;
  }
}
