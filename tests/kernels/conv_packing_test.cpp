#include <tenon/compile/compile.h>

#include <catch2/catch.hpp>

#include "kernels/table.h"
#include "kernels/templates.h"

using namespace tenon;

namespace {

Task conv_task(const std::vector<std::string>& words, const Target& target) {
  const KernelEntry& entry = find_kernel("conv2d");
  const Program program = make_program("conv2d", entry.build(parse_kernel_args(entry, words)));
  return Task("conv2d", program, templates_for(program, target), target);
}

Target two_cores() {
  Target t = Target::parse("x86-64/avx512");
  t.cores = 2;
  t.l1d_bytes = 48 << 10;
  t.vector_fmas = 2;
  t.far_bytes = 7;
  t.l2_bytes = 2 << 20;
  return t;
}

std::string default_loops(const std::vector<std::string>& words) {
  return default_schedule(conv_task(words, two_cores())).print();
}

std::vector<float> result(const Program& program, const Target& target) {
  std::vector<Array> args;
  for (const Param& p : program.params) {
    Shape shape;
    for (const Expr& extent : p.buffer->shape) shape.push_back(*as_int(extent));
    args.push_back(p.role == ParamRole::output ? zeros(f32, shape)
                                               : random(f32, shape, 7 + args.size()));
  }
  compile(program, target).run(args, serial_pool());
  const auto out = args.back().elements<float>();
  return {out.begin(), out.end()};
}

}  // namespace

TEST_CASE("weights of a call are packed block by block, transposed, before all images use them") {
  const std::string deep =
      default_loops({"n=2", "c_in=256", "h=14", "w=14", "c_out=256", "k=3", "pad=1"});
  INFO(deep);
  const size_t block = deep.find("for oc.o in 0..8"), copy = deep.find("stage W.cache["),
               image = deep.find("for n in 0..2", copy);
  CHECK(block < copy);
  CHECK(copy < image);
  CHECK(image < deep.find("stage Y: "));
  // Four times nine taps: whole pieces of a row, and steps that move alike in the copy.
  CHECK(deep.find("for ic_kh_kw.i in 0..36  unroll\n", copy) < image);
  CHECK(deep.find("for oc.i in 0..16  vectorize\n", copy) < image);
  // W that stays in the second cache is packed at once, and the image passes by once.
  const std::string large = default_loops({"c_in=64", "h=56", "w=56", "c_out=64", "k=3", "pad=1"});
  INFO(large);
  CHECK(large.find("stage W.packed[") < large.find("for oh.o in "));
  CHECK(large.find("stage W.cache[") == std::string::npos);
  // One core in two would be idle.
  CHECK(default_loops({"c_in=256", "h=14", "w=14", "c_out=32", "k=3", "pad=1"})
            .find("stage W.cache[") == std::string::npos);
}

TEST_CASE("weights are packed right in blocks and at once, whole pieces of a row and rests") {
  const Target host = Target::host();
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"n=2", "c_in=7", "h=9", "w=11", "c_out=40", "k=3", "pad=1"},
           {"c_in=3", "h=12", "w=13", "c_out=33", "k=7", "pad=3", "stride=2"},
           {"n=3", "c_in=20", "h=5", "w=6", "c_out=17", "k=5", "pad=2"},
           {"c_in=50", "h=6", "w=6", "c_out=48", "k=1", "stride=2"}}) {
    const Task task = conv_task(words, host);
    const std::vector<float> expected = result(task.program, host);
    const KnobSpace space = survey(plain_conv_template, task.program, host);
    for (const int64_t blocks : {0, 1}) {
      INFO(words[1] << " " << words[4] << " blocks " << blocks);
      Point point = space.default_point();
      point.values["pack_blocks"] = blocks;
      REQUIRE_FALSE(space.why_not(point));
      Task forced = task;
      forced.templates = {{"plain_conv", plain_conv_template}};
      const Schedule s = apply_template(forced, "plain_conv", point);
      CHECK((s.print().find("W.cache") != std::string::npos) == (blocks == 1));
      const std::vector<float> got = result(s.program(), host);
      REQUIRE(got.size() == expected.size());
      for (size_t e = 0; e < got.size(); ++e)
        REQUIRE(std::abs(got[e] - expected[e]) <= 1e-3f);
    }
  }
}
