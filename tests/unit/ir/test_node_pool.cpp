#include <tenon/ir/node_pool.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using namespace tenon;

TEST_CASE("A block that was given back serves the next node of its size") {
  void* a = take_node_block(96);
  void* b = take_node_block(96);
  CHECK(a != b);
  give_node_block(a, 96);
  void* other = take_node_block(240);
  CHECK(other != a);
  void* c = take_node_block(96);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(c == a);
#endif
  give_node_block(other, 240);
  give_node_block(c, 96);
  give_node_block(b, 96);
  give_node_block(take_node_block(100'000), 100'000);
}

TEST_CASE("Nodes that one thread made may end in another, many at once") {
  std::vector<Expr> made;
  std::thread([&] {
    for (int n = 0; n < 5000; ++n) made.push_back(Expr(n) + Expr(Var("x")));
  }).join();
  CHECK(print(made[4999]) == "4999 + x");
  std::thread([&] { made.clear(); }).join();
  made.push_back(Expr(Var("y")) * 2);
  CHECK(print(made[0]) == "y * 2");
}
