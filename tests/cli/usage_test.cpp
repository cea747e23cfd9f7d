#include <catch2/catch.hpp>

#include "command.h"
#include "graph_testing.h"

namespace tenon {
namespace {

const std::vector<std::string> kVerbs = {"targets", "kernels", "tune",  "run",
                                         "bench",   "show",    "replay"};

TEST_CASE("every verb has --help, on stdout") {
  const TemporaryFolder folder;
  const Finished all = expect(0, folder.path(), "--help");
  for (const std::string& verb : kVerbs) {
    CHECK(contains(all.out, verb));
    const Finished help = expect(0, folder.path(), verb + " --help");
    CHECK(help.err == "");
    for (const char* option : {"--target", "--threads", "--json", "--quiet"}) {
      INFO(verb << " " << option);
      CHECK(contains(help.out, option));
    }
  }
}

TEST_CASE("the options of tune and show are those of the design") {
  const TemporaryFolder folder;
  const std::string tune = expect(0, folder.path(), "tune --help").out;
  for (const char* option : {"--shape", "--time", "--trials", "--log", "--seed"})
    CHECK(contains(tune, option));
  const std::string show = expect(0, folder.path(), "show --help").out;
  for (const char* option : {"--steps", "--loops", "--cpp", "--ir", "--source", "--asm", "--dot"})
    CHECK(contains(show, option));
}

TEST_CASE("the options of run say what is for operators and what for networks") {
  const TemporaryFolder folder;
  const std::string run = expect(0, folder.path(), "run --help").out;
  for (const char* part : {"an operator and its arguments: matmul m=64 n=33 k=17", "--input",
                           "other inputs are random", "--output-dir", "--check", "--seed", "--log"})
    CHECK(contains(run, part));
}

TEST_CASE("option --version prints version, commit, LLVM and log schema") {
  const TemporaryFolder folder;
  const Finished version = expect(0, folder.path(), "--version");
  CHECK(contains(version.out, "tenon 0.1.0 (commit "));
  CHECK(contains(version.out, "LLVM 19.1."));
  CHECK(contains(version.out, "log schema 1"));
  CHECK(count_lines(version.out) == 1);
}

TEST_CASE("usage errors exit with 2, say what is wrong on stderr and print nothing else") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "subcommand is required"},
      {"tume matmul", "there is no verb \"tume\"\n  verbs: targets"},
      {"tume matmul", "try: tenon tune --help"},
      {"tune", "subject"},
      {"tune --no-such-option matmul", "--no-such-option"},
      {"tune matmul m=8 n=8 k=8 --trials many", "--trials"},
      {"tune matmul m=8 n=8 k=8 --time soon", "--time soon: not a duration"},
      {"tune matmul m=8 n=8 k=8 --threads -3", "--threads -3"},
      {"tune matmul m=8 n=8 k=8 --search magic", "magic"},
      {"tune matmuk m=8", "matmul"},
      {"tune matmul m=8 n=8 kk=8", "unknown argument \"kk\""},
      {"tune matmul m=8 n=8", "missing k"},
      {"tune matmul m=8 n=8 k=eight", "eight"},
      {"tune matmul m=8 n=8 k=-8", "-8"},
      {"bench matmul m=8 n=8 k=8 --target z80", "target \"z80\" is not known\n  known targets: "},
      {"bench matmul m=8 n=8 k=8 --log none.jsonl", "none.jsonl"},
      {"bench none.onnx", "cannot read model \"none.onnx\": no such file"},
      {"show none.onnx", "no such file"},
      {"show matmul.jsonl:3", "cannot read the log matmul.jsonl"},
      {"show matmul.jsonl", "try: LOG:LINE"},
      {"replay matmul.jsonl", "matmul.jsonl"},
      {"replay matmul.jsonl:0", "is no place in a log"},
      {"run matmul", "matmul: missing m"},
      {"kernels convv", "conv2d"},
  };
  for (const auto& [words, telling] : cases) {
    INFO("tenon " << words);
    const Finished done = expect(2, folder.path(), words);
    INFO(done.err);
    CHECK(contains(done.err, telling));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a model that is no model exits with 2") {
  const TemporaryFolder folder;
  write_text(folder.path() / "text.onnx", "this is not a network");
  CHECK(contains(expect(2, folder.path(), "bench text.onnx").err, "is not an ONNX model"));
  write_text(folder.path() / "empty.onnx", "");
  CHECK(contains(expect(2, folder.path(), "run empty.onnx").err, "is not an ONNX model"));
  std::filesystem::create_directory(folder.path() / "folder.onnx");
  CHECK(contains(expect(2, folder.path(), "show folder.onnx").err, "not a regular file"));
}

TEST_CASE("a target this machine cannot run is compiled for and not measured") {
  const TemporaryFolder folder;
  const Finished narrow =
      expect(0, folder.path(), "show matmul m=16 n=16 k=16 --target x86-64/sse2 --asm");
  CHECK(contains(narrow.out, "tenon_entry"));
  CHECK_FALSE(contains(narrow.out, "zmm"));
}

TEST_CASE("kernels and targets print tables, and JSON lines") {
  const TemporaryFolder folder;
  const Finished table = expect(0, folder.path(), "kernels");
  for (const char* kernel : {"matmul", "conv2d", "softmax", "pool"})
    CHECK(contains(table.out, kernel));
  const auto lines = json_lines(expect(0, folder.path(), "kernels --json").out);
  CHECK(lines.size() >= 12);
  for (const auto& line : lines)
    CHECK(keys_of(line) == std::vector<std::string>{"args", "inputs", "kernel", "summary"});
  const auto one = json_lines(expect(0, folder.path(), "kernels matmul --json").out);
  REQUIRE(one.size() == 1);
  CHECK(one[0]["kernel"] == "matmul");

  const std::string words = "kernels matmul m=64 n=64 k=64";
  CHECK(contains(expect(0, folder.path(), words).out, "template tile"));
  const auto templates = json_lines(expect(0, folder.path(), words + " --json").out);
  REQUIRE(templates.size() >= 2);
  CHECK(keys_of(templates[0]) == std::vector<std::string>{"knobs", "points", "template"});
  CHECK(templates[0]["points"].get<int64_t>() > 10);

  CHECK(contains(expect(0, folder.path(), "targets").out, "f32 fma peak"));
  const auto target = json_lines(expect(0, folder.path(), "targets --json").out);
  REQUIRE(target.size() == 1);
  CHECK(keys_of(target[0]) == std::vector<std::string>{"peaks", "target"});
  CHECK(target[0]["target"]["vector_bits"].is_number_integer());
}

}  // namespace
}  // namespace tenon
