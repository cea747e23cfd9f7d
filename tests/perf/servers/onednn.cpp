// oneDNN through its C++ interface. Built once for each build of the library that is at hand: the
// SYCL one, whose every call waits for its queue, and an older one on OpenMP, which calls faster.
#include <oneapi/dnnl/dnnl.hpp>

#include <cmath>

#include "server.h"

namespace {

using namespace perf;
using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;
using Args = std::unordered_map<int, memory>;

const std::string kName = PERF_ONEDNN_NAME;

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}
dnnl::stream& queue() {
  static dnnl::stream stream(cpu());
  return stream;
}

Span span_of(const memory& m) { return {m.get_data_handle(), m.get_desc().get_size()}; }

/// The memory in another layout, filled.
memory in_layout(const memory& from, const memory::desc& layout) {
  if (from.get_desc() == layout) return from;
  memory to(layout, cpu());
  dnnl::reorder(from, to).execute(queue(), const_cast<memory&>(from), to);
  queue().wait();
  return to;
}

std::vector<Span> spans_of(const Args& args) {
  std::vector<Span> out;
  for (const auto& [index, m] : args) out.push_back(span_of(m));
  return out;
}

/// A primitive and its arguments as a variant. `plain` is how the output lies in the case.
Variant make_variant(const std::string& suffix, std::vector<std::string> classes,
                     const dnnl::primitive& primitive, const Args& args, const char* note,
                     const memory& plain) {
  Variant v;
  v.name = kName + suffix;
  v.classes = std::move(classes);
  v.call = [primitive, args] {
    primitive.execute(queue(), args);
    queue().wait();
  };
  v.memory = spans_of(args);
  const memory result = args.at(DNNL_ARG_DST);
  v.fetch = [result, plain] {
    if (result.get_data_handle() == plain.get_data_handle()) return;
    memory from = result, to = plain;
    dnnl::reorder(from, to).execute(queue(), from, to);
    queue().wait();
  };
  v.note = note;
  return v;
}

memory::dims matrix(const Case& c, int64_t rows, int64_t columns) {
  if (c.batch() > 1) return {c.batch(), rows, columns};
  return {rows, columns};
}

Type type_of(const std::string& name) {
  static const std::map<std::string, Type> types = {{"f32", Type::f32},
                                                    {"bf16", Type::bf16},
                                                    {"u8", Type::u8},
                                                    {"i8", Type::s8},
                                                    {"i32", Type::s32}};
  return types.at(name);
}

/// C = A B, and what the case's epilogue does to it: "bias_gelu" or "residual".
Variant product(const Case& c, bool packed) {
  const int64_t m = c.number("m"), n = c.number("n"), k = c.number("k");
  const Tag tag = c.batch() > 1 ? Tag::abc : Tag::ab;
  const auto type = [&](size_t i) { return type_of(c.text.at("inputs")[i].at("dtype")); };
  const memory::desc a(matrix(c, m, k), type(0), tag), b(matrix(c, k, n), type(1), tag),
      wanted(matrix(c, k, n), type(1), packed ? Tag::any : tag),
      out(matrix(c, m, n), type_of(c.text.at("output").at("dtype")), tag);
  const std::string epilogue = c.word("epilogue");
  dnnl::primitive_attr attr;
  dnnl::post_ops after;
  memory::desc third;
  if (epilogue == "bias_gelu") {
    after.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0, 0);
    third = memory::desc({1, n}, Type::f32, Tag::ab);
  } else if (epilogue == "residual") {
    third = memory::desc({m, n}, Type::f32, Tag::ab);
    after.append_binary(dnnl::algorithm::binary_add, third);
  }
  attr.set_post_ops(after);
  const bool bias = epilogue == "bias_gelu";
  const dnnl::matmul::primitive_desc pd =
      bias ? dnnl::matmul::primitive_desc(cpu(), a, wanted, third, out, attr)
           : dnnl::matmul::primitive_desc(cpu(), a, wanted, out, attr);
  const memory weights =
      in_layout(memory(b, cpu(), c.inputs[1].data()), packed ? pd.weights_desc() : b);
  const memory result(out, cpu(), c.output.data());
  Args args = {{DNNL_ARG_SRC, memory(a, cpu(), c.inputs[0].data())},
               {DNNL_ARG_WEIGHTS, weights},
               {DNNL_ARG_DST, result}};
  const int where = bias ? DNNL_ARG_BIAS : DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
  if (!epilogue.empty()) args.insert({where, memory(third, cpu(), c.inputs[2].data())});
  return make_variant(packed ? "-packed" : "", {packed ? "packed" : "plain"}, dnnl::matmul(pd),
                      args, pd.impl_info_str(), result);
}

std::vector<Variant> matmul(const Case& c) {
  std::vector<Variant> out = {product(c, false)};
  if (c.batch() == 1) out.push_back(product(c, true));
  return out;
}

/// One layout of source and destination; weights always lie as the library likes.
Variant convolution(const Case& c, const std::string& layout, std::vector<std::string> classes) {
  const int64_t ci = c.number("c_in"), co = c.number("c_out"), h = c.number("h"), w = c.number("w"),
                k = c.number("k"), s = c.number("stride"), p = c.number("pad"),
                g = c.number("groups"), oh = (h + 2 * p - k) / s + 1, ow = (w + 2 * p - k) / s + 1,
                n = c.number("n");
  const std::map<std::string, Tag> tags = {
      {"any", Tag::any}, {"nchw", Tag::nchw}, {"nhwc", Tag::nhwc}};
  const Tag tag = tags.at(layout);
  const Type x_type = type_of(c.text.at("inputs")[0].at("dtype")),
             w_type = type_of(c.text.at("inputs")[1].at("dtype")),
             y_type = type_of(c.text.at("output").at("dtype"));
  const memory::dims source = {n, ci, h, w}, result = {n, co, oh, ow},
                     weights =
                         g > 1 ? memory::dims{g, co / g, ci / g, k, k} : memory::dims{co, ci, k, k};
  // In plain NCHW a binary post-op runs reference code: there the residual is what the result is
  // added to, in place (every call adds again; the first one, with the right numbers, is checked).
  const bool fused = c.word("epilogue") == "add_relu", in_place = fused && layout == "nchw";
  dnnl::primitive_attr attr;
  dnnl::post_ops after;
  if (fused) {
    if (in_place)
      after.append_sum();
    else
      after.append_binary(dnnl::algorithm::binary_add, memory::desc(result, Type::f32, tag));
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
  }
  attr.set_post_ops(after);
  const dnnl::convolution_forward::primitive_desc pd(
      cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      memory::desc(source, x_type, tag), memory::desc(weights, w_type, Tag::any),
      memory::desc(result, y_type, tag), {s, s}, {p, p}, {p, p}, attr);
  const auto plain = [&](const memory::dims& dims, Type type, Tag order, const Storage& buffer) {
    return memory({dims, type, order}, cpu(), buffer.data());
  };
  Args args = {
      {DNNL_ARG_SRC, in_layout(plain(source, x_type, Tag::nchw, c.inputs[0]), pd.src_desc())},
      {DNNL_ARG_WEIGHTS,
       in_layout(plain(weights, w_type, g > 1 ? Tag::goihw : Tag::oihw, c.inputs[1]),
                 pd.weights_desc())}};
  const memory whole = plain(result, y_type, Tag::nchw, c.output);
  if (fused) {
    const memory residual = plain(result, Type::f32, Tag::nchw, c.inputs[2]);
    if (in_place)
      args.insert({DNNL_ARG_DST, residual});
    else
      args.insert(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, in_layout(residual, pd.dst_desc())});
  }
  if (!in_place)
    args.insert({DNNL_ARG_DST, layout == "nchw" ? whole : memory(pd.dst_desc(), cpu())});
  return make_variant("-" + layout, std::move(classes), dnnl::convolution_forward(pd), args,
                      pd.impl_info_str(), whole);
}

/// Convolutions of narrow numbers.
std::vector<Variant> narrow_conv(const Case& c) {
  return {convolution(c, "any", {"layout of choice"}),
          convolution(c, "nhwc", {"layout of choice"})};
}

std::vector<Variant> conv2d(const Case& c) {
  return {convolution(c, "any", {"layout of choice"}), convolution(c, "nhwc", {"layout of choice"}),
          convolution(c, "nchw", {"layout of choice", "nchw"})};
}

memory::desc rows_of(const Case& c) {
  return {{c.number("rows"), c.number("columns")}, Type::f32, Tag::ab};
}

std::vector<Variant> softmax(const Case& c) {
  const memory::desc d = rows_of(c);
  const dnnl::softmax_forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference,
                                                 dnnl::algorithm::softmax_accurate, d, d, 1);
  const memory out(d, cpu(), c.output.data());
  const Args args = {{DNNL_ARG_SRC, memory(d, cpu(), c.inputs[0].data())}, {DNNL_ARG_DST, out}};
  return {make_variant("", {"plain"}, dnnl::softmax_forward(pd), args, pd.impl_info_str(), out)};
}

std::vector<Variant> layer_norm(const Case& c) {
  const memory::desc d = rows_of(c), per_column({c.number("columns")}, Type::f32, Tag::a);
  using Flags = dnnl::normalization_flags;
  const dnnl::layer_normalization_forward::primitive_desc pd(
      cpu(), dnnl::prop_kind::forward_inference, d, d, static_cast<float>(c.text.at("epsilon")),
      Flags::use_scale | Flags::use_shift);
  const memory out(d, cpu(), c.output.data());
  const Args args = {{DNNL_ARG_SRC, memory(d, cpu(), c.inputs[0].data())},
                     {DNNL_ARG_SCALE, memory(per_column, cpu(), c.inputs[1].data())},
                     {DNNL_ARG_SHIFT, memory(per_column, cpu(), c.inputs[2].data())},
                     {DNNL_ARG_DST, out}};
  return {make_variant("", {"plain"}, dnnl::layer_normalization_forward(pd), args,
                       pd.impl_info_str(), out)};
}

/// Row-major, whatever the rank.
memory::desc row_major(const memory::dims& shape) {
  memory::dims strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * shape[d];
  return {shape, Type::f32, strides};
}

std::vector<Variant> reduce(const Case& c) {
  const memory::dims shape = c.text.at("extents").get<memory::dims>();
  memory::dims kept = shape;
  for (const int64_t axis : c.text.at("axes").get<memory::dims>())
    kept[static_cast<size_t>(axis)] = 1;
  const memory::desc from = row_major(shape), to = row_major(kept);
  const dnnl::reduction::primitive_desc pd(cpu(), dnnl::algorithm::reduction_sum, from, to, 0, 0);
  const memory out(to, cpu(), c.output.data());
  const Args args = {{DNNL_ARG_SRC, memory(from, cpu(), c.inputs[0].data())}, {DNNL_ARG_DST, out}};
  return {make_variant("", {"plain"}, dnnl::reduction(pd), args, pd.impl_info_str(), out)};
}

std::vector<Variant> transpose(const Case& c) {
  const int64_t b = c.batch(), r = c.number("rows"), k = c.number("columns");
  const memory::desc from({b, r, k}, Type::f32, Tag::abc), to({b, r, k}, Type::f32, Tag::acb);
  const memory x(from, cpu(), c.inputs[0].data()), y(to, cpu(), c.output.data());
  const dnnl::reorder::primitive_desc pd(cpu(), from, cpu(), to);
  const Args args = {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, y}};
  return {make_variant("", {"plain"}, dnnl::reorder(pd), args, pd.impl_info_str(), y)};
}

Variant binary_sum(const Case& c, bool relu) {
  const memory::desc d({c.number("n")}, Type::f32, Tag::a);
  dnnl::primitive_attr attr;
  dnnl::post_ops after;
  if (relu) after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
  attr.set_post_ops(after);
  const dnnl::binary::primitive_desc pd(cpu(), dnnl::algorithm::binary_add, d, d, d, attr);
  const memory out(d, cpu(), c.output.data());
  const Args args = {{DNNL_ARG_SRC_0, memory(d, cpu(), c.inputs[0].data())},
                     {DNNL_ARG_SRC_1, memory(d, cpu(), c.inputs[1].data())},
                     {DNNL_ARG_DST, out}};
  return make_variant("", {"plain"}, dnnl::binary(pd), args, pd.impl_info_str(), out);
}

std::vector<Variant> elementwise(const Case& c) {
  const std::string op = c.word("function");
  if (op == "add" || op == "add_relu") return {binary_sum(c, op == "add_relu")};
  const std::map<std::string, dnnl::algorithm> known = {{"gelu", dnnl::algorithm::eltwise_gelu_erf},
                                                        {"silu", dnnl::algorithm::eltwise_swish},
                                                        {"exp", dnnl::algorithm::eltwise_exp}};
  if (!known.count(op)) throw NotThere("oneDNN has no " + op);
  const memory::desc d({c.number("n")}, Type::f32, Tag::a);
  const dnnl::eltwise_forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference,
                                                 known.at(op), d, d, op == "silu" ? 1.f : 0.f, 0.f);
  const memory out(d, cpu(), c.output.data());
  const Args args = {{DNNL_ARG_SRC, memory(d, cpu(), c.inputs[0].data())}, {DNNL_ARG_DST, out}};
  return {make_variant("", {"plain"}, dnnl::eltwise_forward(pd), args, pd.impl_info_str(), out)};
}

std::vector<Variant> pool(const Case& c) {
  const int64_t ch = c.number("c"), h = c.number("h"), w = c.number("w"), k = c.number("k"),
                s = c.number("stride"), p = c.number("pad"), oh = (h + 2 * p - k) / s + 1,
                ow = (w + 2 * p - k) / s + 1;
  const auto algorithm = c.word("function") == "max" ? dnnl::algorithm::pooling_max
                                                     : dnnl::algorithm::pooling_avg_exclude_padding;
  std::vector<Variant> out;
  const std::map<std::string, Tag> layouts = {
      {"nchw", Tag::nchw}, {"nhwc", Tag::nhwc}, {"blocked", Tag::nChw16c}};
  for (const auto& [name, tag] : layouts) {
    const memory::desc from({1, ch, h, w}, Type::f32, tag), to({1, ch, oh, ow}, Type::f32, tag);
    const dnnl::pooling_forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference,
                                                   algorithm, from, to, {s, s}, {k, k}, {0, 0},
                                                   {p, p}, {p, p});
    const memory x({{1, ch, h, w}, Type::f32, Tag::nchw}, cpu(), c.inputs[0].data());
    const memory whole({{1, ch, oh, ow}, Type::f32, Tag::nchw}, cpu(), c.output.data());
    const Args args = {{DNNL_ARG_SRC, in_layout(x, from)},
                       {DNNL_ARG_DST, name == "nchw" ? whole : memory(to, cpu())}};
    std::vector<std::string> classes = {"layout of choice"};
    if (name == "nchw") classes.push_back("nchw");
    out.push_back(make_variant("-" + name, classes, dnnl::pooling_forward(pd), args,
                               pd.impl_info_str(), whole));
  }
  return out;
}

/// Three primitives in a row: products of queries and keys, softmax in place, products with values.
std::vector<Variant> attention(const Case& c) {
  const int64_t heads = c.number("heads"), q = c.number("q"), kv = c.number("kv"),
                d = c.number("d");
  const memory::desc queries({heads, q, d}, Type::f32, Tag::abc),
      keys({heads, d, kv}, Type::f32, Tag::acb), values({heads, kv, d}, Type::f32, Tag::abc),
      scores({heads, q, kv}, Type::f32, Tag::abc);
  dnnl::primitive_attr attr;
  dnnl::post_ops scale;
  scale.append_eltwise(dnnl::algorithm::eltwise_linear, 1 / std::sqrt(static_cast<float>(d)), 0);
  attr.set_post_ops(scale);
  const dnnl::matmul first(dnnl::matmul::primitive_desc(cpu(), queries, keys, scores, attr)),
      second(dnnl::matmul::primitive_desc(cpu(), scores, values, queries));
  const dnnl::softmax_forward soft(
      dnnl::softmax_forward::primitive_desc(cpu(), dnnl::prop_kind::forward_inference,
                                            dnnl::algorithm::softmax_accurate, scores, scores, 2));
  const memory between(scores, cpu()), out(queries, cpu(), c.output.data());
  const Args scored = {{DNNL_ARG_SRC, memory(queries, cpu(), c.inputs[0].data())},
                       {DNNL_ARG_WEIGHTS, memory(keys, cpu(), c.inputs[1].data())},
                       {DNNL_ARG_DST, between}};
  const Args softened = {{DNNL_ARG_SRC, between}, {DNNL_ARG_DST, between}};
  const Args last = {{DNNL_ARG_SRC, between},
                     {DNNL_ARG_WEIGHTS, memory(values, cpu(), c.inputs[2].data())},
                     {DNNL_ARG_DST, out}};
  Variant v = make_variant("", {"plain"}, second, last, "matmul, softmax, matmul", out);
  v.call = [=] {
    first.execute(queue(), scored);
    soft.execute(queue(), softened);
    second.execute(queue(), last);
    queue().wait();
  };
  for (const Span& s : spans_of(scored)) v.memory.push_back(s);
  return {v};
}

}  // namespace

int main() {
  return serve({{{"matmul", matmul},
                 {"int8_matmul", matmul},
                 {"bf16_matmul", matmul},
                 {"int8_conv", narrow_conv},
                 {"bf16_conv", narrow_conv},
                 {"conv2d", conv2d},
                 {"softmax", softmax},
                 {"layer_norm", layer_norm},
                 {"reduce", reduce},
                 {"transpose", transpose},
                 {"elementwise", elementwise},
                 {"pool", pool},
                 {"attention", attention}}});
}
