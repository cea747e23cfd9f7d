#include <catch2/catch.hpp>

#include "golden.h"
#include "lower/lower.h"
#include "tests/unit/lower/trees.h"

using namespace tenon;

namespace {

// The loop tree and what it becomes, in one file: the diff shows both.
std::string before_and_after(const Program& tree) {
  return print(tree) + "\n" + print(lower(tree, Target::parse("x86-64/avx512")));
}

}  // namespace

TEST_CASE("golden: a 6x64 register tile with tails in all three axes") {
  check_golden("lower/matmul_6x64.txt", before_and_after(matmul_tree({100, 1000, 77, 6, 64, 8})));
}

TEST_CASE("golden: padding taken apart over unrolled and vectorised tiles") {
  check_golden("lower/conv_unrolled.txt",
               before_and_after(padded_conv_tree(56, 14, LoopMark::unroll, true)));
  check_golden("lower/conv_vectorised.txt",
               before_and_after(padded_conv_tree(50, 16, LoopMark::vectorize, true)));
}
