#pragma once
#include <cstddef>
#include <new>
#include <utility>

namespace tenon {

/// Memory of one IR node. Schedules are made of many small nodes that live briefly: blocks that a
/// thread gave back serve its next nodes of that size. A block may be given back by any thread.
void* take_node_block(size_t bytes);
void give_node_block(void* block, size_t bytes) noexcept;

/// For std::allocate_shared of nodes, which are aggregates.
template <class T>
struct NodeAllocator {
  using value_type = T;

  NodeAllocator() = default;
  template <class U>
  NodeAllocator(const NodeAllocator<U>&) noexcept {}

  T* allocate(size_t count) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return static_cast<T*>(take_node_block(count * sizeof(T)));
  }
  void deallocate(T* block, size_t count) noexcept { give_node_block(block, count * sizeof(T)); }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U{std::forward<Args>(args)...};
  }

  template <class U>
  bool operator==(const NodeAllocator<U>&) const noexcept {
    return true;
  }
};

}  // namespace tenon
