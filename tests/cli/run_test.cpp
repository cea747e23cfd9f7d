#include <tenon/runtime/npy.h>

#include <catch2/catch.hpp>

#include "command.h"
#include "graph_testing.h"
#include "tests/differential/opencl_device.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

const std::string kMatmul = "run matmul m=6 n=5 k=7 ";

// A.npy and B.npy in a folder of their own.
struct Inputs {
  TemporaryFolder folder;
  Array a = random(f32, {6, 7}, 1), b = random(f32, {7, 5}, 2);

  Inputs() {
    save_npy((folder.path() / "A.npy").string(), a);
    save_npy((folder.path() / "B.npy").string(), b);
  }
  double product(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t k = 0; k < 7; ++k)
      sum += static_cast<double>(a.data<float>()[i * 7 + k]) * b.data<float>()[k * 5 + j];
    return sum;
  }
};

void check_product(const Inputs& in, const fs::path& file) {
  const Array c = load_npy(file.string());
  REQUIRE(c.shape() == Shape{6, 5});
  for (int64_t at = 0; at < 30; ++at)
    CHECK(c.data<float>()[at] == Approx(in.product(at / 5, at % 5)).margin(1e-5));
}

TEST_CASE("run OPERATOR takes .npy inputs, prints a summary and writes its outputs") {
  const Inputs in;
  const fs::path& folder = in.folder.path();
  // Options may stand between the arguments.
  const Finished done =
      expect(0, folder, "run matmul --input A=A.npy m=6 --input B=B.npy n=5 k=7 --output C=c.npy");
  CHECK(contains(done.out, "C: f32 6x5: min "));
  CHECK(contains(done.out, ", max "));
  CHECK(contains(done.out, ", mean "));
  CHECK(count_lines(done.out) == 1);
  CHECK(contains(done.err, "schedule of matmul: default"));
  CHECK_FALSE(contains(done.err, "random"));
  check_product(in, folder / "c.npy");

  expect(0, folder, kMatmul + "--input A=A.npy --input B=B.npy --output-dir out");
  const auto index = nlohmann::json::parse(read_text(folder / "out" / "index.json"));
  CHECK(index == nlohmann::json{{"C", "C.npy"}});
  CHECK(read_text(folder / "out" / "C.npy") == read_text(folder / "c.npy"));
}

TEST_CASE("run OPERATOR makes up the inputs that are not given, from a seed, and says so") {
  const Inputs in;
  const fs::path& folder = in.folder.path();
  const Finished first = expect(0, folder, kMatmul + "--output C=1.npy");
  CHECK(contains(first.err, "random inputs of seed 0: A, B (--input A=FILE.npy gives your own)"));
  expect(0, folder, kMatmul + "--output C=2.npy --seed 0");
  const Finished other = expect(0, folder, kMatmul + "--input A=A.npy --output C=3.npy --seed 9");
  CHECK(contains(other.err, "random inputs of seed 9: B (--input B="));
  CHECK(read_text(folder / "1.npy") == read_text(folder / "2.npy"));
  CHECK(read_text(folder / "1.npy") != read_text(folder / "3.npy"));
  const Finished quiet = expect(0, folder, kMatmul + "--quiet");
  CHECK(quiet.out + quiet.err == "");
}

TEST_CASE("run OPERATOR --json gives an object an output and one of the call") {
  const Inputs in;
  const auto lines = json_lines(
      expect(0, in.folder.path(), kMatmul + "--input B=B.npy --seed 3 --threads 1 --check --json")
          .out);
  REQUIRE(lines.size() == 2);
  CHECK(keys_of(lines[0]) ==
        std::vector<std::string>{"max", "mean", "min", "nan", "output", "shape", "type"});
  CHECK(lines[0]["output"] == "C");
  CHECK(lines[0]["shape"] == nlohmann::json{6, 5});
  CHECK(lines[0]["min"].get<double>() < lines[0]["mean"].get<double>());
  CHECK(lines[0]["mean"].get<double>() < lines[0]["max"].get<double>());
  CHECK(lines[1] == nlohmann::json{{"kernel", "matmul"},
                                   {"args", {{"m", 6}, {"n", 5}, {"k", 7}, {"type", "f32"}}},
                                   {"target", lines[1]["target"]},
                                   {"threads", 1},
                                   {"schedule", "default"},
                                   {"inputs", {{"A", "random"}, {"B", "B.npy"}}},
                                   {"seed", 3},
                                   {"check", "passed"}});

  // NaN is counted and left out of the numbers; an output without numbers has none.
  save_npy((in.folder.path() / "x.npy").string(), from_vector<float>({3}, {-1, 4, 9}));
  const std::string root = "run elementwise op=sqrt n=3 --input X=x.npy ";
  const auto some = json_lines(expect(0, in.folder.path(), root + "--json").out);
  CHECK(some[0]["nan"] == 1);
  CHECK(some[0]["min"] == 2.0);
  CHECK(some[0]["mean"] == 2.5);
  CHECK(some[1]["check"] == "not_run");
  CHECK(contains(expect(0, in.folder.path(), root).out, "f32 3: min 2, max 3, mean 2.5, 1 NaN\n"));
  CHECK(contains(expect(0, in.folder.path(), "run softmax rows=0 columns=4 --check").out,
                 "Y: f32 0x4\ncheck passed\n"));
}

TEST_CASE("run OPERATOR takes the best record of the log") {
  const Inputs in;
  const fs::path& folder = in.folder.path();
  const std::string where = "--threads 1 --log log.jsonl ";
  expect(0, folder, "tune matmul m=6 n=5 k=7 --trials 2 --quiet " + where);
  const Finished done = expect(
      0, folder, kMatmul + where + "--input A=A.npy --input B=B.npy --output C=c.npy --check");
  CHECK(contains(done.err, "schedule of matmul: log.jsonl:"));
  CHECK(contains(done.out, "check passed\n"));
  check_product(in, folder / "c.npy");
  const auto lines = json_lines(expect(0, folder, kMatmul + where + "--json").out);
  CHECK(lines.back()["schedule"].get<std::string>().rfind("log.jsonl:", 0) == 0);
}

TEST_CASE("shapes and names of run OPERATOR are those of the formula") {
  const Inputs in;
  const fs::path& folder = in.folder.path();
  // The kernel sees a pool of all its dimensions merged, and positions of another type.
  save_npy((folder / "x.npy").string(), from_vector<float>({3, 2}, {0, 1, 10, 11, 20, 21}));
  save_npy((folder / "i.npy").string(), from_vector<int32_t>({2, 1}, {2, -3}));
  const std::string gather = "run gather shape=3x2 indices=2x1 index=i32 --input X=x.npy ";
  CHECK(contains(expect(0, folder, gather + "--input I=i.npy --output Y=y.npy --check").out,
                 "Y: f32 2x1x2: min 0, max 21, mean 10.5\ncheck passed\n"));
  CHECK(load_npy((folder / "y.npy").string()).to_doubles() == std::vector<double>{20, 21, 0, 1});
  save_npy((folder / "i.npy").string(), from_vector<int32_t>({2, 1}, {2, 3}));
  CHECK(contains(expect(2, folder, gather + "--input I=i.npy").err,
                 "input I: element 1 is 3, no position of what it counts along\n"
                 "  positions: -3 to 2"));
}

TEST_CASE("what is wrong with an operator, its inputs or options exits with 2 in words") {
  const Inputs in;
  const fs::path& folder = in.folder.path();
  save_npy((folder / "type.npy").string(), zeros(i32, {6, 7}));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"run matmuk m=6", "unknown operator \"matmuk\"; did you mean matmul"},
      {"run matmuk m=6", "a network is a file NAME.onnx"},
      {"run matmul m=6 n=5", "matmul: missing k"},
      {kMatmul + "--input Z=A.npy", "there is no input \"Z\"\n  inputs: A f32 6x7, B f32 7x5"},
      {kMatmul + "--input A=B.npy", "input A is f32 6x7, not f32 7x5\n  try: another array"},
      {kMatmul + "--input A=type.npy", "input A is f32 6x7, not i32 6x7"},
      {kMatmul + "--input A=none.npy", "none.npy"},
      {kMatmul + "--input A.npy", "is not NAME=VALUE"},
      {kMatmul + "--input A=A.npy --input A=A.npy", "given twice"},
      {kMatmul + "--output D=d.npy", "there is no output \"D\"\n  outputs: C"},
      {kMatmul + "--output C=no/folder/c.npy", "no/folder/c.npy"},
      {kMatmul + "--output-dir A.npy", "A.npy"},
      {kMatmul + "--shape A=6x7", "--shape is for networks; \"matmul\" is no .onnx file"},
      {kMatmul + "--no-fuse", "try: an operator's sizes as arguments"},
      {kMatmul + "--seed many", "--seed"},
      {"bench matmul m=6 n=5 k=7 --skip-pass x", "--skip-pass is for networks"},
      {"bench matmul m=6 n=5 k=7 --allow-winograd", "--allow-winograd is for networks"},
      {"tune matmul m=6 n=5 k=7 --no-fuse", "--no-fuse is for networks"},
      {"show matmul m=6 n=5 k=7 --shape A=6x7", "--shape is for networks"},
      {kMatmul + "--target z80", "target \"z80\" is not known"},
      {"run none.onnx", "no such file"},
      {"run none.onnx --check", "try: tenon bench none.onnx"},
      {"run none.onnx --seed 3", "a network takes all of them by --input"}};
  for (const auto& [words, telling] : cases) {
    INFO("tenon " << words);
    const Finished done = expect(2, folder, words);
    INFO(done.err);
    CHECK(contains(done.err, telling));
  }
}

TEST_CASE("run OPERATOR on an OpenCL device equals the unscheduled formula on the processor") {
  if (!test::opencl_device()) return;
  const Inputs in;
  const fs::path& folder = in.folder.path();
  const std::string given = "--target opencl --input A=A.npy --input B=B.npy --check ";
  CHECK(contains(expect(0, folder, kMatmul + given + "--output C=c.npy").out, "check passed\n"));
  check_product(in, folder / "c.npy");
  const auto lines = json_lines(expect(0, folder, kMatmul + given + "--json").out);
  CHECK(lines.back()["target"] == "opencl");
  for (const std::string words :
       {"softmax rows=7 columns=33", "conv2d c_in=3 h=9 w=8 c_out=5 k=3 pad=1",
        "gather shape=10x4 indices=3", "layer_norm rows=5 columns=19"}) {
    INFO(words);
    CHECK(contains(expect(0, folder, "run " + words + " --target opencl --check").out,
                   "check passed\n"));
  }
}

}  // namespace
}  // namespace tenon
