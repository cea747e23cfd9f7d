#include <tenon/ir/intrinsic.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

/// C[i] += c_type(A[i, r]) * c_type(B[i, r]) over groups of `group` elements.
Program dot_formula(const std::string& name, DType a_type, DType b_type, DType c_type,
                    int64_t lanes, int64_t group) {
  const Buffer a("A", a_type, {lanes, group}), b("B", b_type, {lanes, group}),
      c("C", c_type, {lanes});
  const Var i("i"), r("r"), loop_i("i"), loop_r("r");
  Stage stage;
  stage.name = "C";
  stage.axes = {{Axis(i, lanes), AxisKind::spatial, loop_i},
                {Axis(r, group), AxisKind::reduce, loop_r}};
  stage.outputs = {c};
  stage.indices = {i};
  stage.values = {cast(c_type, load(a, {i, r})) * cast(c_type, load(b, {i, r}))};
  stage.combiner = sum_combiner(c_type);
  stage.init = stage.combiner->identity;
  For inner{loop_r, 0, group, AxisKind::reduce, LoopMark::serial, {}, make_stmt(std::move(stage)),
            nullptr};
  For outer{loop_i, 0, lanes, AxisKind::spatial, LoopMark::serial, {}, make_stmt(std::move(inner)),
            nullptr};
  return {name,
          {{a, ParamRole::input}, {b, ParamRole::input}, {c, ParamRole::output}},
          make_stmt(std::move(outer))};
}

/// C[i, j] += c_type(A[i, k, r]) * c_type(B[j, k, r]) on 16 rows, 16 lanes and 16 steps.
Program tile_formula(const std::string& name, DType a_type, DType b_type, DType c_type,
                     int64_t group) {
  constexpr int64_t kSide = 16;
  const Buffer a("A", a_type, {kSide, kSide, group}), b("B", b_type, {kSide, kSide, group}),
      c("C", c_type, {kSide, kSide});
  const std::vector<std::pair<Var, int64_t>> vars = {
      {Var("i"), kSide}, {Var("j"), kSide}, {Var("k"), kSide}, {Var("r"), group}};
  const auto loop = [&](size_t n) { return vars[n].first; };
  Stage stage;
  stage.name = "C";
  for (size_t n = 0; n < vars.size(); ++n)
    stage.axes.push_back({Axis(vars[n].first, vars[n].second),
                          n < 2 ? AxisKind::spatial : AxisKind::reduce, loop(n)});
  stage.outputs = {c};
  stage.indices = {loop(0), loop(1)};
  stage.values = {cast(c_type, load(a, {loop(0), loop(2), loop(3)})) *
                  cast(c_type, load(b, {loop(1), loop(2), loop(3)}))};
  stage.combiner = sum_combiner(c_type);
  stage.init = stage.combiner->identity;
  Stmt body = make_stmt(std::move(stage));
  for (size_t n = vars.size(); n-- > 0;)
    body = make_stmt(For{loop(n),
                         0,
                         vars[n].second,
                         n < 2 ? AxisKind::spatial : AxisKind::reduce,
                         LoopMark::serial,
                         {},
                         body,
                         nullptr});
  return {name,
          {{a, ParamRole::input}, {b, ParamRole::input}, {c, ParamRole::output}},
          std::move(body)};
}

/// AMX: TDPBUSD and its kin add exactly, modulo 2^32; TDPBF16PS rounds each sum to nearest even,
/// the first and the second elements of the pairs apart, and takes numbers below 2^-126 for 0
/// (Intel SDM vol. 2D).
std::shared_ptr<const Intrinsic> tile(const std::string& name, DType a, DType b, DType c,
                                      const std::string& feature, const std::string& code) {
  return std::make_shared<const Intrinsic>(
      Intrinsic{name,
                tile_formula(name, a, b, c, 4 / byte_size(a)),
                {{{feature, "amx-tile"}, 16, "llvm.x86." + code, {"C", "A", "B"}}}});
}

/// VPDPBUSD: four products of an unsigned and a signed byte added to an i32, exactly (Intel SDM
/// vol. 2C; the form that saturates is VPDPBUSDS).
Intrinsic dot4_u8i8_i32() {
  const std::vector<std::string> wide = {"avx512vnni"}, narrow = {"avx512vl", "avx512vnni"},
                                 plain = {"avxvnni"}, order = {"C", "A", "B"};
  return {"dot4_u8i8_i32",
          dot_formula("dot4_u8i8_i32", u8, i8, i32, 16, 4),
          {{wide, 16, "llvm.x86.avx512.vpdpbusd.512", order},
           {narrow, 8, "llvm.x86.avx512.vpdpbusd.256", order},
           {plain, 8, "llvm.x86.avx512.vpdpbusd.256", order},
           {narrow, 4, "llvm.x86.avx512.vpdpbusd.128", order},
           {plain, 4, "llvm.x86.avx512.vpdpbusd.128", order}}};
}

/// VDPBF16PS: pairs of products added to an f32, each sum rounded to nearest even, the second of a
/// pair first; numbers below 2^-126 count as 0 on the way in and out (Intel SDM vol. 2C).
Intrinsic dot2_bf16_f32() {
  const std::vector<std::string> wide = {"avx512bf16"}, narrow = {"avx512bf16", "avx512vl"},
                                 order = {"C", "A", "B"};
  return {"dot2_bf16_f32",
          dot_formula("dot2_bf16_f32", bf16, bf16, f32, 16, 2),
          {{wide, 16, "llvm.x86.avx512bf16.dpbf16ps.512", order},
           {narrow, 8, "llvm.x86.avx512bf16.dpbf16ps.256", order},
           {narrow, 4, "llvm.x86.avx512bf16.dpbf16ps.128", order}}};
}

}  // namespace

const std::vector<std::shared_ptr<const Intrinsic>>& intrinsics() {
  static const std::vector<std::shared_ptr<const Intrinsic>> table = {
      std::make_shared<const Intrinsic>(dot4_u8i8_i32()),
      std::make_shared<const Intrinsic>(dot2_bf16_f32()),
      tile("tile_u8i8_i32", u8, i8, i32, "amx-int8", "tdpbusd"),
      tile("tile_i8u8_i32", i8, u8, i32, "amx-int8", "tdpbsud"),
      tile("tile_i8i8_i32", i8, i8, i32, "amx-int8", "tdpbssd"),
      tile("tile_u8u8_i32", u8, u8, i32, "amx-int8", "tdpbuud"),
      tile("tile_bf16_f32", bf16, bf16, f32, "amx-bf16", "tdpbf16ps")};
  return table;
}

std::shared_ptr<const Intrinsic> find_intrinsic(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& intrinsic : intrinsics()) {
    if (intrinsic->name == name) return intrinsic;
    known.push_back(intrinsic->name);
  }
  const std::vector<std::string> near = nearest_names(name, known, 1);
  throw UserError(fmt::format("there is no intrinsic \"{}\"\n  known: {}\n  try: {}", name,
                              join(known), near.empty() ? "a declaration of your own" : near[0]));
}

}  // namespace tenon
