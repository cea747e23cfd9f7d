#include <tenon/runtime/npy.h>

#include <catch2/catch.hpp>
#include <iostream>

#include "command.h"
#include "graph_testing.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::vector<float> weights(int64_t count) {
  std::vector<float> out;
  for (int64_t k = 0; k < count; ++k) out.push_back(static_cast<float>(k % 7 - 3) * 0.25f);
  return out;
}

// A small network with two outputs, one under a name that is no file name, and its input x.npy.
struct Small {
  TemporaryFolder folder;
  Array x = random(f32, {1, 2, 6, 6}, 3);

  Small() {
    ModelBuilder model;
    model.input("x", f32, {1, 2, 6, 6});
    model.floats("w", {8, 2, 3, 3}, weights(8 * 2 * 3 * 3));
    model.node("Conv", {"x", "w"}, {"c"}).set("pads", std::vector<int64_t>{1, 1, 1, 1});
    model.node("Relu", {"c"}, {"y"}).output("y");
    model.node("GlobalAveragePool", {"y"}, {"pool/out:0"}).output("pool/out:0");
    write_text(folder.path() / "small.onnx", model.bytes());
    save_npy((folder.path() / "x.npy").string(), x);
  }
};

double conv_relu(const Array& x, int64_t channel, int64_t row, int64_t column) {
  const std::vector<float> w = weights(8 * 2 * 3 * 3);
  double sum = 0;
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t y = row + i - 1, z = column + j - 1;
        if (y < 0 || y >= 6 || z < 0 || z >= 6) continue;
        sum += x.data<float>()[(c * 6 + y) * 6 + z] *
               static_cast<double>(w[static_cast<size_t>(((channel * 2 + c) * 3 + i) * 3 + j)]);
      }
  return std::max(sum, 0.0);
}

TEST_CASE("run writes outputs as .npy with an index, or one by name") {
  const Small small;
  const auto& folder = small.folder.path();
  const Finished done =
      expect(0, folder, "run small.onnx --input x=x.npy --output-dir out --output y=only_y.npy");
  CHECK(contains(done.out, "y: f32 "));
  const auto index = nlohmann::json::parse(read_text(folder / "out" / "index.json"));
  REQUIRE(keys_of(index) == std::vector<std::string>{"pool/out:0", "y"});
  const fs::path y_file = folder / "out" / index["y"].get<std::string>();
  CHECK(read_text(y_file) == read_text(folder / "only_y.npy"));
  const Array y = load_npy(y_file.string());
  REQUIRE(y.shape() == std::vector<int64_t>{1, 8, 6, 6});
  for (int64_t channel = 0; channel < 8; ++channel)
    for (int64_t at = 0; at < 36; ++at)
      CHECK(y.data<float>()[channel * 36 + at] ==
            Approx(conv_relu(small.x, channel, at / 6, at % 6)).margin(1e-5));
  const Array pool = load_npy((folder / "out" / index["pool/out:0"].get<std::string>()).string());
  CHECK(pool.shape() == std::vector<int64_t>{1, 8, 1, 1});

  const auto lines = json_lines(expect(0, folder, "run small.onnx --input x=x.npy --json").out);
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines)
    CHECK(keys_of(line) ==
          std::vector<std::string>{"max", "mean", "min", "nan", "output", "shape", "type"});
  CHECK(expect(0, folder, "run small.onnx --input x=x.npy --quiet").out == "");
}

TEST_CASE("inputs of the wrong name, rank, shape or type exit with 2 and say what was expected") {
  const Small small;
  const auto& folder = small.folder.path();
  save_npy((folder / "rank.npy").string(), zeros(f32, {2, 6, 6}));
  save_npy((folder / "shape.npy").string(), zeros(f32, {1, 2, 6, 7}));
  save_npy((folder / "type.npy").string(), zeros(i32, {1, 2, 6, 6}));
  write_text(folder / "text.npy", "no array");
  write_text(folder / "cut.npy", read_text(folder / "x.npy").substr(0, 200));
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"--input z=x.npy", {"\"z\"", "x"}},
      {"--input x=rank.npy", {"\"x\"", "rank 4", "2x6x6"}},
      {"--input x=shape.npy", {"\"x\"", "is 6 in the model, not 7"}},
      {"--input x=type.npy", {"\"x\"", "f32", "i32"}},
      {"--input x=none.npy", {"none.npy"}},
      {"--input x=text.npy", {"text.npy"}},
      {"--input x=cut.npy", {"cut.npy"}},
      {"--input x.npy", {"is not NAME=VALUE", "--input x=x.npy"}},
      {"--input x=x.npy --input x=x.npy", {"given twice"}},
      {"--input x=x.npy --shape x=1x2x6x7", {"x"}},
      {"--input x=x.npy --shape x=1x2xcat", {"\"cat\" is not an extent"}},
      {"", {"input \"x\"", "missing"}},
      {"--input x=x.npy --output nope=n.npy", {"no output \"nope\"", "outputs: y, pool/out:0"}},
      {"--input x=x.npy --output y=no/folder/y.npy", {"no/folder/y.npy"}},
      {"--input x=x.npy --output-dir x.npy", {"x.npy"}}};
  for (const auto& [words, telling] : cases) {
    const Finished done = expect(2, folder, "run small.onnx " + words);
    for (const std::string& part : telling) {
      INFO(words << "\n" << done.err);
      CHECK(contains(done.err, part));
    }
  }
}

TEST_CASE("show model.onnx lists kernels, and --dot draws the graph") {
  const Small small;
  const std::string list = expect(0, small.folder.path(), "show small.onnx").out;
  CHECK(contains(list, "conv.0: 1 x, default"));
  const std::string dot = expect(0, small.folder.path(), "show small.onnx --dot").out;
  CHECK(dot.rfind("digraph", 0) == 0);
  CHECK(contains(dot, "pool/out:0"));
  CHECK(contains(expect(0, small.folder.path(), "show small.onnx --loops").out, "stage "));
}

TEST_CASE("a network is tuned into tuning_logs/NAME.jsonl, benched and replayed") {
  const Small small;
  const auto& folder = small.folder.path();
  const Finished tuned = expect(0, folder, "tune small.onnx --trials 2 --threads 1 --quiet");
  CHECK(contains(tuned.out, "conv.0: default "));
  const fs::path log = folder / "tuning_logs" / "small.jsonl";
  const auto records = json_lines(read_text(log));
  CHECK(records.size() >= 4);

  const std::string words = "bench small.onnx --threads 1 --rounds 3 --json";
  const auto rows = json_lines(expect(0, folder, words).out);
  REQUIRE(rows.size() >= 5);
  bool saw_conv = false;
  for (size_t k = 0; k + 1 < rows.size(); ++k) {
    INFO(rows[k].dump());
    CHECK(rows[k]["check"] == "passed");
    CHECK(rows[k]["args"].is_object());
    const std::string schedule = rows[k]["schedule"];
    CHECK(
        (k % 2 == 0 ? schedule == "default" : schedule.rfind("tuning_logs/small.jsonl:", 0) == 0));
    saw_conv |= rows[k]["kernel"] == "conv.0";
  }
  CHECK(saw_conv);
  CHECK(keys_of(rows.back()) == std::vector<std::string>{"default_us", "median_us", "network"});
  CHECK(rows.back()["network"] == "small");
  CHECK(rows.back()["median_us"].get<double>() > 0);

  const Finished ran = expect(0, folder, "run small.onnx --input x=x.npy --threads 1");
  CHECK(contains(ran.err, "tuning_logs/small.jsonl"));
  CHECK(
      contains(expect(0, folder, "replay tuning_logs/small.jsonl:1 --model small.onnx --check").out,
               "check passed"));
  CHECK(contains(expect(2, folder, "replay tuning_logs/small.jsonl:1").err, "--model"));
}

TEST_CASE("the text-direction network is listed, run and refused without a shape") {
  const fs::path model = test_data() / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx";
  if (!fs::exists(model)) {
    std::cout << "SKIPPED: " << model << " is not there; scripts/fetch_test_data.sh fetches it\n";
    return;
  }
  const TemporaryFolder folder;
  CHECK(contains(expect(2, folder.path(), "run " + model.string()).err, "try: --shape x="));
  save_npy((folder.path() / "x.npy").string(), random(f32, {1, 3, 48, 192}, 1));
  const Finished done =
      expect(0, folder.path(), "run " + model.string() + " --input x=x.npy --output-dir out");
  const auto index = nlohmann::json::parse(read_text(folder.path() / "out" / "index.json"));
  REQUIRE(index.size() == 1);
  const Array out = load_npy((folder.path() / "out" / index.begin()->get<std::string>()).string());
  REQUIRE(out.shape() == std::vector<int64_t>{1, 2});
  CHECK(out.data<float>()[0] + out.data<float>()[1] == Approx(1).margin(1e-5));
}

}  // namespace
}  // namespace tenon
