#include <catch2/catch.hpp>

#include "command.h"
#include "graph_testing.h"
#include "tests/differential/opencl_device.h"

namespace tenon {
namespace {

const std::string kSmall = "matmul m=24 n=20 k=16 --target opencl ";

TEST_CASE("tune, bench and targets on an OpenCL device") {
  const auto device = test::opencl_device();
  if (!device) return;
  const TemporaryFolder folder;
  const Finished targets = expect(0, folder.path(), "targets --target opencl");
  CHECK(contains(targets.out, "threads per block"));
  CHECK(contains(targets.out, device->cpu));

  const Finished tuned =
      expect(0, folder.path(), "tune " + kSmall + "--trials 2 --quiet --log here.jsonl");
  CHECK(contains(tuned.out, "matmul: default "));
  int passed = 0;
  for (const auto& line : json_lines(read_text(folder.path() / "here.jsonl"))) {
    CHECK(line["target"]["name"] == "opencl");
    CHECK(line["status"] != "wrong_answer");
    passed += line["check"] == "passed";
  }
  CHECK(passed >= 1);

  const Finished bench =
      expect(0, folder.path(), "bench " + kSmall + "--log here.jsonl --json --quiet");
  for (const auto& line : json_lines(bench.out)) {
    CHECK(line["target"] == "opencl");
    CHECK(line["check"] == "passed");
  }
}

TEST_CASE("a second device that is not there is refused politely") {
  const TemporaryFolder folder;
  const Finished done = expect(3, folder.path(), "targets --target opencl:99");
  CHECK((contains(done.err, "OpenCL device 99 does not exist") || contains(done.err, "no OpenCL")));
}

}  // namespace
}  // namespace tenon
