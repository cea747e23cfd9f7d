#include <tenon/ir/node_pool.h>

#include <array>

namespace tenon {

#if defined(__SANITIZE_ADDRESS__)  // it watches memory that was given back

void* take_node_block(size_t bytes) { return ::operator new(bytes); }
void give_node_block(void* block, size_t) noexcept { ::operator delete(block); }

#else

namespace {

constexpr size_t kMostKept = 1024;  // blocks of a size: the nodes of some ten loop trees
constexpr size_t kStep = 16, kLargest = 512;

size_t place_of(size_t bytes) { return (bytes + kStep - 1) / kStep; }
/// What is taken for so many bytes: a block serves all sizes of its place.
size_t rounded(size_t bytes) { return place_of(bytes) * kStep; }

struct FreeBlock {
  FreeBlock* next;
};

/// Blocks of one thread, by size.
class NodePool {
 public:
  ~NodePool();

  void* take(size_t bytes) {
    List& list = lists_[place_of(bytes)];
    FreeBlock* block = list.first;
    if (!block) return ::operator new(rounded(bytes));
    list.first = block->next;
    --list.count;
    return block;
  }
  void give(void* block, size_t bytes) noexcept {
    List& list = lists_[place_of(bytes)];
    if (list.count >= kMostKept) return ::operator delete(block);
    list.first = ::new (block) FreeBlock{list.first};
    ++list.count;
  }

 private:
  struct List {
    FreeBlock* first = nullptr;
    size_t count = 0;
  };
  std::array<List, kLargest / kStep + 1> lists_{};
};

thread_local bool pool_is_gone = false;  // nodes of static lifetime outlive their thread's pool
thread_local NodePool pool;

NodePool::~NodePool() {
  pool_is_gone = true;
  for (List& list : lists_)
    while (FreeBlock* block = list.first) {
      list.first = block->next;
      ::operator delete(block);
    }
}

}  // namespace

void* take_node_block(size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  return pool_is_gone ? ::operator new(rounded(bytes)) : pool.take(bytes);
}

void give_node_block(void* block, size_t bytes) noexcept {
  if (bytes > kLargest || pool_is_gone) return ::operator delete(block);
  pool.give(block, bytes);
}

#endif

}  // namespace tenon
