#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <regex>

#include <tenon/support/text.h>

#include "tree_rules.h"

using namespace tenon;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// A small source tree, removed with the scope.
class Tree {
 public:
  Tree() { fs::create_directories(root_); }
  ~Tree() { fs::remove_all(root_); }
  Tree& put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return *this;
  }
  const fs::path& root() const { return root_; }
  std::string broken() const { return join(broken_rules(root_), "\n"); }

 private:
  fs::path root_ = fs::temp_directory_path() / ("tenon-tree-" + std::to_string(getpid()));
};

std::string lines(int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += "int x" + std::to_string(k) + ";\n";
  return text;
}

}  // namespace

TEST_CASE("this source tree keeps the rules") {
  REQUIRE(fs::exists(fs::path(TENON_SOURCE_DIR) / "include/tenon/support/error.h"));
  const std::string broken = join(broken_rules(TENON_SOURCE_DIR), "\n");
  INFO(broken);
  CHECK(broken.empty());
}

TEST_CASE("arrows are transitive, but lower and codegen belong to compile") {
  CHECK(may_include("te", "support"));
  CHECK(may_include("cli", "graph"));
  CHECK(may_include("kernels", "ir"));
  CHECK(may_include("graph", "interp"));
  CHECK(may_include("compile", "lower"));
  CHECK(may_include("compile", "codegen"));
  CHECK(!may_include("autotvm", "lower"));
  CHECK(!may_include("graph", "codegen"));
  CHECK(!may_include("ir", "arith"));
  CHECK(!may_include("lower", "schedule"));
  CHECK(!may_include("codegen", "schedule"));
  CHECK(!may_include("runtime", "ir"));
  CHECK(!may_include("kernels", "autotvm"));
  CHECK(!may_include("graph", "autotvm"));
  CHECK(!may_include("support", "target"));
}

TEST_CASE("a planted wrong include is reported with its line") {
  Tree tree;
  tree.put("src/runtime/cpu/array.cpp",
           "#include <tenon/runtime/array.h>\n  # include <tenon/ir/expr.h>\n");
  CHECK(tree.broken() ==
        "src/runtime/cpu/array.cpp:2: includes tenon/ir/expr.h - runtime may not include ir "
        "(design, section 2)");
}

TEST_CASE("includes are followed in every spelling") {
  Tree tree;
  tree.put("src/lower/lower.h", "");
  tree.put("autotvm/measure/a.cpp", "#include \"lower/lower.h\"\n");
  tree.put("autotvm/measure/b.cpp", "#include \"../../src/lower/lower.h\"\n");
  tree.put("autotvm/records/c.cpp", "#include <autotvm/search/pool.h>\n");
  tree.put("src/graph/exec/d.cpp",
           "#include <interp/interp.h>\n#include <autotvm/records/log.h>\n");
  tree.put("src/support/e.cpp", "#include <kernels/table.h>\n");
  CHECK_THAT(tree.broken(),
             Contains("a.cpp:1: includes lower/lower.h - autotvm may not include lower") &&
                 Contains("b.cpp:1: includes ../../src/lower/lower.h - autotvm may not") &&
                 Contains("c.cpp:1: includes autotvm/search/pool.h - records may not") &&
                 !Contains("d.cpp") && Contains("e.cpp:1: includes kernels/table.h - support may"));
}

TEST_CASE("rooms outside the table and libraries in wrong places are reported") {
  Tree tree;
  tree.put("src/utils/a.cpp", "");
  tree.put("src/ir/b.cpp", "#include <llvm/IR/Module.h>\n#include <CLI/CLI.hpp>\n");
  tree.put("src/ir/c.h", "#include <nlohmann/json.hpp>\n");
  tree.put("src/ir/d.h", "#include <nlohmann/json_fwd.hpp>\n");
  tree.put("src/codegen/llvm/e.cpp", "#include <llvm/IR/Module.h>\n");
  tree.put("include/tenon/compile/f.h", "#include <llvm/IR/Module.h>\n");
  CHECK_THAT(
      tree.broken(),
      Contains("a.cpp:1: room utils is not in the table") &&
          Contains("b.cpp:1: includes llvm/IR/Module.h - LLVM is seen by codegen/llvm alone") &&
          Contains("b.cpp:2: includes CLI/CLI.hpp - CLI11 is seen by cli alone") &&
          Contains("c.h:1: includes nlohmann/json.hpp - it does not belong in a header") &&
          !Contains("d.h") && !Contains("e.cpp") && Contains("f.h:1:"));
}

TEST_CASE("long files need a reason") {
  Tree tree;
  tree.put("src/ir/fits.cpp", lines(500)).put("src/ir/fits.h", lines(250));
  CHECK(tree.broken().empty());
  tree.put("src/ir/long.cpp", lines(501)).put("src/ir/long.h", lines(251));
  tree.put("src/ir/excused.cpp", "// Length: one table.\n" + lines(600));
  tree.put("src/ir/late.cpp", lines(15) + "// Length: too late to be seen.\n" + lines(600));
  CHECK_THAT(tree.broken(), Contains("long.cpp:1: 501 lines - at most 500") &&
                                Contains("long.h:1: 251 lines - at most 250") &&
                                Contains("late.cpp:1:") && !Contains("excused") &&
                                !Contains("fits"));
}

TEST_CASE("operator names stand in kernels and graph/onnx alone") {
  Tree tree;
  tree.put("kernels/conv.cpp", "Tensor conv2d();\n");
  tree.put("src/graph/onnx/nodes.cpp", "rule(\"MaxPool\");\n");
  tree.put("include/tenon/graph/onnx.h", "int matmul_count;\n");
  tree.put("tests/any.cpp", "conv2d();\n");
  tree.put("src/cli/tune.cpp", "\"for example matmul m=1024\";\n");
  tree.put("src/ir/comment.cpp",
           "// matmul and conv2d\nint prelude; /* softmax\n relu */ int convert = 1'000;\n");
  CHECK(tree.broken().empty());
  tree.put("src/graph/exec/run.cpp", "int a;\nif (node.kind == \"Conv\") run_conv2d();\n");
  tree.put("src/lower/b.cpp",
           "const char* url = \"http://x\"; bool is_relu;\nvoid GlobalMaxPool();\n");
  CHECK_THAT(tree.broken(), Contains("run.cpp:2: \"Conv\" - an operator's name") &&
                                Contains("run.cpp:2: \"run_conv2d\"") &&
                                Contains("b.cpp:1: \"is_relu\"") &&
                                Contains("b.cpp:2: \"GlobalMaxPool\"") && !Contains("url"));
}

namespace {

/// Names that CTest or Catch would read as something else: the case would never run and yet pass.
std::vector<std::string> unusable_test_names(const fs::path& tests) {
  std::vector<std::string> bad;
  const std::regex test_case("TEST_CASE\\(\\s*\"((?:[^\"\\\\]|\\\\.)*)\"");
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator it(text.begin(), text.end(), test_case), end; it != end; ++it) {
      const std::string name = (*it)[1];
      const bool option = name.empty() || name[0] == '-' || name[0] == '~' || name[0] == ' ';
      if (option || name.find_first_of(";[\\*") != std::string::npos) bad.push_back(name);
    }
  }
  return bad;
}

}  // namespace

TEST_CASE("names of test cases survive CTest and Catch") {
  CHECK(unusable_test_names(fs::path(TENON_SOURCE_DIR) / "tests") == std::vector<std::string>{});
  Tree tree;
  tree.put("a.cpp",
           "TEST_"
           "CASE(\"one; two\") {}\nTEST_"
           "CASE(\"--x\") {}\nTEST_"
           "CASE(\"fine, too\") {}\n");
  CHECK(unusable_test_names(tree.root()) == std::vector<std::string>{"one; two", "--x"});
}
