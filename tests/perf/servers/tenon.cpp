// Tenon: one function a row makes the kernels of a case. "perf_tenon [RECORDS.jsonl]": with a log
// of records there is a tuned variant beside the default schedule wherever the log has an answer.
#include <fmt/format.h>
#include <tenon/driver/driver.h>
#include <tenon/support/error.h>

#include <cstring>

#include "kernels/conv.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/templates.h"
#include "kernels/winograd.h"
#include "server.h"

namespace {

using namespace perf;
using namespace tenon;

/// Products of fewer multiplications are called through the raw entry, without checks: what is
/// compared with them is a bare function pointer.
constexpr int64_t kRawBelow = int64_t{64} * 64 * 64;

std::unique_ptr<ThreadPool> pool;  // of this process's threads, made with the first case
RecordStore records;

Target target_of(const Case& c) {
  Target target = Target::host();
  target.cores = c.threads;
  return target;
}

/// Arrays by the names of the parameters; the output's is "".
using Arrays = std::map<std::string, Storage>;

Arrays arrays_of(const Case& c) {
  Arrays out = {{"", c.output}};
  const Json& inputs = c.text.at("inputs");
  for (size_t k = 0; k < inputs.size(); ++k) out.insert({inputs[k].at("name"), c.inputs[k]});
  return out;
}

Array argument(const Arrays& arrays, const Parameter& parameter) {
  Shape shape;
  for (const Extent& e : parameter.shape) shape.push_back(e.at({}));
  const auto found = arrays.find(parameter.is_output ? "" : parameter.name);
  if (found == arrays.end())
    throw std::runtime_error("the case has no input called " + parameter.name);
  const Array array = Array::wrap(found->second.data(), parameter.dtype, shape,
                                  std::make_shared<Storage>(found->second));
  if (array.bytes() != static_cast<int64_t>(found->second.bytes()))
    throw std::runtime_error("the case's array for " + parameter.name + " has another size");
  return array;
}

/// Those packed ahead are replaced by what the kernel takes.
std::vector<Array> arguments_of(const Arrays& arrays, const Kernel& kernel) {
  std::vector<Array> out;
  const Module& module = kernel.module();
  for (size_t k = 0; k < module.parameters.size(); ++k) {
    Parameter plain = module.parameters[k];
    if (!plain.packer) {
      out.push_back(argument(arrays, plain));
      continue;
    }
    plain.shape = plain.packer->parameters[0].shape;
    out.push_back(prepack(module, k, argument(arrays, plain), *pool));
  }
  return out;
}

Variant make_variant(const std::string& name, std::vector<std::string> classes,
                     const Arrays& arrays, const Kernel& kernel, bool raw) {
  Variant v;
  v.name = name;
  v.classes = std::move(classes);
  const std::vector<Array> arguments = arguments_of(arrays, kernel);
  for (const Array& a : arguments) v.memory.push_back({a.raw(), static_cast<size_t>(a.bytes())});
  v.note = raw ? "raw entry" : "";
  if (!raw) {
    v.call = [kernel, arguments] { kernel.run(arguments, *pool); };
    return v;
  }
  std::vector<void*> pointers;
  for (const Array& a : arguments) pointers.push_back(a.raw());
  const auto workspace = std::make_shared<Workspace>();
  const tenon_kernel entry = kernel.module().entry;
  void* scratch = workspace->reserve(kernel.module().workspace_total(pool->workers()));
  // The kernel holds the code, the arrays and the workspace what the pointers point to.
  v.call = [kernel, arguments, pointers, workspace, entry, scratch] {
    entry(pointers.data(), nullptr, scratch, ThreadPool::parallel_for_entry, pool.get());
  };
  return v;
}

bool packs_ahead(const Kernel& kernel) {
  for (const Parameter& p : kernel.module().parameters)
    if (p.packer) return true;
  return false;
}

/// The task under its default schedule and, where the records say one, the tuned.
std::vector<Variant> variants_of(const Case& c, const Task& task, const Arrays& arrays,
                                 const std::string& suffix, const std::vector<std::string>& classes,
                                 bool raw = false) {
  if (!pool) pool = std::make_unique<ThreadPool>(c.threads);
  std::vector<Variant> out;
  for (const NamedTrace& schedule : default_and_best(task, records, c.threads)) {
    const Kernel kernel = compile(task, schedule.trace);
    if (suffix == "-packed" && !packs_ahead(kernel)) continue;
    const std::string tuned = schedule.schedule == "default" ? "" : "-tuned";
    out.push_back(make_variant("tenon" + tuned + suffix, classes, arrays, kernel, raw));
    out.back().note += (out.back().note.empty() ? "" : ", ") + schedule.schedule;
  }
  return out;
}

std::vector<Variant> variants_of(const Case& c, const Task& task, const std::string& suffix,
                                 const std::vector<std::string>& classes, bool raw = false) {
  return variants_of(c, task, arrays_of(c), suffix, classes, raw);
}

Task task_of(const Case& c, const Tensor& output) {
  const Target target = target_of(c);
  const Program program = merge_dimensions(make_program(c.word("op"), {output}));
  return Task(c.word("op"), program, templates_for(program, target), target);
}

void append(std::vector<Variant>& to, std::vector<Variant> more) {
  for (Variant& v : more) to.push_back(std::move(v));
}

Tensor operand(bool known, const std::string& name, DType type, const Shape& shape) {
  return known ? constant(name, type, shape) : input(name, type, shape);
}

/// The product and the maps after it, B known ahead of time or not.
Task fused_product(const Case& c, bool packed) {
  const int64_t m = c.number("m"), n = c.number("n"), k = c.number("k");
  const Tensor product = matmul(input("A", f32, {m, k}), operand(packed, "B", f32, {k, n}));
  if (c.word("epilogue") == "residual")
    return task_of(c, binary("add", product, input("R", f32, {m, n})));
  return task_of(c, unary("gelu", binary("add", product, input("bias", f32, {n}))));
}

Task product(const Case& c, bool packed) {
  if (!c.word("epilogue").empty()) return fused_product(c, packed);
  std::vector<std::string> words = {c.batch() > 1 ? "batch_matmul" : "matmul"};
  for (const char* name : {"batch", "m", "n", "k"})
    if (c.text.contains(name)) words.push_back(fmt::format("{}={}", name, c.number(name)));
  if (packed) words.push_back("constant=B");
  return operator_task(words, target_of(c));
}

std::vector<Variant> matmul_row(const Case& c) {
  const bool raw = c.batch() * c.number("m") * c.number("n") * c.number("k") < kRawBelow;
  std::vector<Variant> out = variants_of(c, product(c, false), "", {"plain"}, raw);
  if (raw) append(out, variants_of(c, product(c, false), "-checked", {"plain"}));
  if (c.batch() == 1) append(out, variants_of(c, product(c, true), "-packed", {"packed"}, raw));
  return out;
}

/// Products of narrow numbers with wide sums.
std::vector<Variant> narrow_matmul_row(const Case& c, const char* type, const char* other) {
  std::vector<std::string> words = {"matmul_wide", fmt::format("type={}", type),
                                    fmt::format("other={}", other)};
  for (const char* name : {"m", "n", "k"})
    words.push_back(fmt::format("{}={}", name, c.number(name)));
  std::vector<Variant> out = variants_of(c, operator_task(words, target_of(c)), "", {"plain"});
  words.push_back("constant=B");
  append(out, variants_of(c, operator_task(words, target_of(c)), "-packed", {"packed"}));
  return out;
}

std::vector<Variant> int8_matmul_row(const Case& c) { return narrow_matmul_row(c, "u8", "i8"); }
std::vector<Variant> bf16_matmul_row(const Case& c) { return narrow_matmul_row(c, "bf16", "bf16"); }

ConvOptions conv_options(const Case& c) {
  ConvOptions options;
  options.strides = {c.number("stride"), c.number("stride")};
  options.pads_begin = options.pads_end = {c.number("pad"), c.number("pad")};
  options.groups = c.number("groups");
  return options;
}

/// Weights are known ahead of time.
Tensor conv_weights(const Case& c) {
  const int64_t k = c.number("k");
  return constant("W", f32, {c.number("c_out"), c.number("c_in") / c.number("groups"), k, k});
}

/// What the case has after a convolution.
Tensor conv_epilogue(const Case& c, const Tensor& y) {
  if (c.word("epilogue") != "add_relu") return y;
  return unary("relu", binary("add", y, input("R", f32, y.extents())));
}

/// From [n, channels, pixels] to [n, channels/block, pixels, block], or back, numbers of `size`
/// bytes; lanes past the channels are 0.
void block_channels(const Storage& plain, const Storage& blocked, int64_t channels, int64_t block,
                    size_t size, bool back) {
  const int64_t pixels = static_cast<int64_t>(plain.bytes() / size) / channels;
  const auto at = [&](const Storage& s, int64_t n) {
    return s.as<char>() + static_cast<size_t>(n) * size;
  };
  for (int64_t ch = 0; ch < channels; ++ch) {
    for (int64_t p = 0; p < pixels; ++p) {
      char* one = at(plain, ch * pixels + p);
      char* other = at(blocked, (ch / block * pixels + p) * block + ch % block);
      std::memcpy(back ? one : other, back ? other : one, size);
    }
  }
}

Storage blocked(const Storage& plain, int64_t channels, int64_t block, size_t size = 4) {
  const int64_t pixels = static_cast<int64_t>(plain.bytes() / size) / channels;
  const Storage out(static_cast<size_t>((channels + block - 1) / block * block * pixels) * size);
  block_channels(plain, out, channels, block, size, false);
  return out;
}

/// The task on blocks of channels, its result of `channels` ones made plain when it is fetched;
/// `suffix` names the algorithm. `block`: of the result, whose numbers have four bytes.
std::vector<Variant> blocked_variants(const Case& c, const Task& task, Arrays arrays,
                                      int64_t channels, int64_t block,
                                      const std::string& suffix = "-blocked") {
  const Storage whole = c.output, result = blocked(whole, channels, block);
  arrays.at("") = result;
  std::vector<Variant> out = variants_of(c, task, arrays, suffix, {"layout of choice"});
  for (Variant& v : out) v.fetch = [=] { block_channels(whole, result, channels, block, 4, true); };
  return out;
}

/// The case's weights transformed for tiles of m x m pixels, as it is done ahead of time.
Storage transformed_weights(const Case& c, int64_t m, int64_t block) {
  const int64_t ci = c.number("c_in"), co = c.number("c_out"), t = m + 2;
  const Task task =
      operator_task({"winograd_weights", fmt::format("c_in={}", ci), fmt::format("c_out={}", co),
                     fmt::format("tile={}", m), fmt::format("block={}", block)},
                    target_of(c));
  const Storage out(static_cast<size_t>(t * t * ((co + block - 1) / block) * ci * block) *
                    sizeof(float));
  const auto wrap = [](const Storage& s, const Shape& shape) {
    return Array::wrap(s.data(), f32, shape, std::make_shared<Storage>(s));
  };
  const Kernel kernel = compile(task, default_and_best(task, records, c.threads).front().trace);
  const std::vector<Array> arrays = {wrap(c.inputs[1], {co, ci, 3, 3}),
                                     wrap(out, {t, t, (co + block - 1) / block, ci, block})};
  kernel.run(arrays, *pool);
  return out;
}

/// Activations in blocks of channels; a first layer of few channels reads them plain. With the
/// algorithm "winograd": by that.
std::vector<Variant> blocked_conv(const Case& c) {
  const int64_t block = target_of(c).lanes(f32), ci = c.number("c_in"), co = c.number("c_out"),
                h = c.number("h"), w = c.number("w"), n = c.number("n");
  if (n != 1) throw std::runtime_error("batches of blocked convolutions are not measured here");
  const bool plain = ci < block;
  Arrays arrays = arrays_of(c);
  if (!plain) arrays.at("X") = blocked(c.inputs[0], ci, block);
  if (arrays.count("R")) arrays.at("R") = blocked(c.inputs[2], co, block);
  const Shape shape = plain ? Shape{n, ci, h, w} : Shape{n, (ci + block - 1) / block, h, w, block};
  const bool transformed = c.word("algorithm") == "winograd";
  Tensor y;
  if (transformed) {
    if (!pool) pool = std::make_unique<ThreadPool>(c.threads);
    const int64_t m = std::max<int64_t>(2, winograd_tile(ci, co, h, w)), t = m + 2;
    arrays.insert({"U", transformed_weights(c, m, block)});
    const Tensor u = constant("U", f32, {t, t, (co + block - 1) / block, ci, block});
    y = conv2d_winograd(input("X", f32, shape), u, Tensor(), conv_options(c), co);
  } else {
    y = conv2d_blocked(input("X", f32, shape), conv_weights(c), Tensor(), conv_options(c), block);
  }
  return blocked_variants(c, task_of(c, conv_epilogue(c, y)), arrays, co, block,
                          transformed ? "-winograd" : "-blocked");
}

std::vector<Variant> conv2d_row(const Case& c) {
  if (c.word("algorithm") == "winograd") return blocked_conv(c);
  const Shape shape = {c.number("n"), c.number("c_in"), c.number("h"), c.number("w")};
  const Tensor y = conv(input("X", f32, shape), conv_weights(c), Tensor(), conv_options(c));
  std::vector<Variant> out = variants_of(c, task_of(c, conv_epilogue(c, y)), "", {"nchw"});
  append(out, blocked_conv(c));
  return out;
}

/// A convolution of narrow numbers on blocks of 64 channels, weights known ahead of time.
std::vector<Variant> narrow_conv_row(const Case& c, const char* type, const char* other,
                                     size_t bytes) {
  constexpr int64_t kBlock = 64;
  std::vector<std::string> words = {"conv2d_wide", fmt::format("type={}", type),
                                    fmt::format("other={}", other), "constant=W",
                                    fmt::format("block={}", kBlock)};
  for (const char* name : {"n", "c_in", "h", "w", "c_out", "k", "stride", "pad"})
    words.push_back(fmt::format("{}={}", name, c.number(name)));
  if (c.number("n") != 1)
    throw std::runtime_error("batches of blocked convolutions are not measured here");
  Arrays arrays = arrays_of(c);
  arrays.at("X") = blocked(c.inputs[0], c.number("c_in"), kBlock, bytes);
  return blocked_variants(c, operator_task(words, target_of(c)), arrays, c.number("c_out"), kBlock);
}

std::vector<Variant> int8_conv_row(const Case& c) { return narrow_conv_row(c, "u8", "i8", 1); }
std::vector<Variant> bf16_conv_row(const Case& c) { return narrow_conv_row(c, "bf16", "bf16", 2); }

/// An operator of the table by its words.
std::vector<Variant> by_words(const Case& c, const std::vector<std::string>& words,
                              const std::vector<std::string>& classes = {"plain"}) {
  return variants_of(c, operator_task(words, target_of(c)), "", classes);
}

std::string number_word(const Case& c, const char* name) {
  return fmt::format("{}={}", name, c.number(name));
}

std::vector<Variant> softmax_row(const Case& c) {
  return by_words(c, {"softmax", number_word(c, "rows"), number_word(c, "columns")});
}
std::vector<Variant> layer_norm_row(const Case& c) {
  return by_words(c, {"layer_norm", number_word(c, "rows"), number_word(c, "columns")});
}
std::vector<Variant> reduce_row(const Case& c) {
  return by_words(c, {"reduce", "shape=" + c.word("shape_word"), "axis=" + c.word("axis_word")});
}
std::vector<Variant> transpose_row(const Case& c) {
  return by_words(c, {"transpose", "shape=" + c.word("shape_word")});
}

std::vector<Variant> embedding_row(const Case& c) {
  return by_words(c, {"gather", fmt::format("shape={}x{}", c.number("rows"), c.number("columns")),
                      fmt::format("indices={}", c.number("picks"))});
}

std::vector<Variant> elementwise_row(const Case& c) {
  const int64_t n = c.number("n");
  const std::string op = c.word("function");
  const Tensor x = input("X", f32, {n});
  if (op == "add_relu")
    return variants_of(c, task_of(c, unary("relu", binary("add", x, input("Y", f32, {n})))), "",
                       {"plain"});
  if (op == "silu") {
    const Axis i("i", n);
    const Tensor y = compute("silu", {i}, x(i) / (Expr(1.0f) + tenon::exp(-x(i))));
    return variants_of(c, task_of(c, y), "", {"plain"});
  }
  return by_words(c, {"elementwise", "op=" + op, number_word(c, "n")});
}

std::vector<Variant> pool_row(const Case& c) {
  std::vector<std::string> words = {"pool", "op=" + c.word("function")};
  for (const char* name : {"c", "h", "w", "k", "stride", "pad"})
    words.push_back(number_word(c, name));
  std::vector<Variant> out = by_words(c, words, {"nchw"});
  const int64_t block = target_of(c).lanes(f32), channels = c.number("c");
  words.push_back(fmt::format("block={}", block));
  Arrays arrays = arrays_of(c);
  arrays.at("X") = blocked(c.inputs[0], channels, block);
  append(out, blocked_variants(c, operator_task(words, target_of(c)), arrays, channels, block));
  return out;
}

std::vector<Variant> attention_row(const Case& c) {
  std::vector<std::string> words = {"attention"};
  for (const char* name : {"heads", "q", "kv", "d"}) words.push_back(number_word(c, name));
  return by_words(c, words);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) {
      RecordPlaces places;
      places.log = argv[1];
      records = RecordStore(places);
    }
    Server server;
    server.rows = {{"matmul", matmul_row},           {"int8_matmul", int8_matmul_row},
                   {"bf16_matmul", bf16_matmul_row}, {"conv2d", conv2d_row},
                   {"softmax", softmax_row},         {"layer_norm", layer_norm_row},
                   {"reduce", reduce_row},           {"transpose", transpose_row},
                   {"elementwise", elementwise_row}, {"pool", pool_row},
                   {"attention", attention_row},     {"embedding", embedding_row},
                   {"int8_conv", int8_conv_row},     {"bf16_conv", bf16_conv_row}};
    server.busy = [] { return std::make_shared<ThreadPool::Busy>(*pool); };
    return serve(server);
  } catch (const Error& error) {
    std::fprintf(stderr, "perf_tenon: %s\n", error.what());
    return 1;
  }
}
