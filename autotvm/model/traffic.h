#pragma once
#include <tenon/target/target.h>

#include <array>

#include "autotvm/model/nests.h"

namespace tenon {

/// What a parallel loop does to the stages inside it: the busiest core runs this share of its
/// iterations.
struct Sharing {
  size_t loop = 0;    ///< position in the stage's path
  double share = 1;   ///< 1: nothing is shared
  double pieces = 0;  ///< iterations of the loop; 0: there is none
};
/// Of the outermost parallel loop on the path.
Sharing sharing_of(const NestTree& tree, const NestStage& stage, int threads);

/// How a box of a buffer lies in memory: `pieces` runs of `run` bytes, `pitch` bytes apart.
struct MemoryBox {
  double pieces = 1, run = 0, pitch = 0;
};

/// A memory that keeps what was used last: a cache in lines, or the translations of a TLB in pages.
struct Keeper {
  double bytes = 0;
  double line = 64;
  /// Bytes after which addresses fall into the same set again; 0: any line may lie anywhere.
  double way = 0;

  double bytes_of(const MemoryBox& box) const;  ///< in whole lines
  /// The same, as many times as their sets are crowded: the part of the memory that keeps them.
  double room_for(const MemoryBox& box) const;
};
constexpr size_t kKeepers = 4;
enum KeeperName : size_t { first_cache, translations, second_cache, third_cache };
std::array<Keeper, kKeepers> keepers_of(const Target& target);

/// Bytes that an access brings in from beyond a keeper, and how they lie in what it brings at a
/// time.
struct Moved {
  double bytes = 0;
  MemoryBox box;
};

/// Which part of memory is in use while a loop, or one iteration of it, runs; and with it what each
/// access brings in. Calls of the program follow one another: what fits as a whole is there.
class Traffic {
 public:
  Traffic(const NestTree& tree, const Target& target, int threads);

  /// Room in use while the loop's iterations run, and while one of them does; loop 0: the program.
  double whole_room(int loop, size_t keeper) const { return node(loop).whole[keeper]; }
  double body_room(int loop, size_t keeper) const { return node(loop).body[keeper]; }

  /// What the stage's access moves from beyond a keeper on the busiest core. To be asked in program
  /// order: of several accesses to the same place while it stays there the first one pays.
  ///   The outermost loop whose iteration fits keeps its buffers: they come once while it runs, and
  ///   again for each iteration of the loops outside.
  /// A keeper holds half of what it could for sure and less and less up to all of it.
  Moved beyond(const NestStage& stage, const NestAccess& access, size_t keeper);
  /// Bytes of the places that the access reaches on the busiest core.
  double reached(const NestStage& stage, const NestAccess& access) const;

 private:
  using Rooms = std::array<double, kKeepers>;
  struct Use {
    int buffer = 0;
    Rooms whole{}, body{};
  };
  struct InUse {
    Rooms whole{}, body{};
    std::vector<Use> uses;
  };
  struct Paid {
    int loop = 0, buffer = 0;
    size_t keeper = 0;
    bool body = false, loaded = false, stored = false;
  };

  const InUse& node(int loop) const { return in_use_[static_cast<size_t>(loop)]; }
  MemoryBox box(const NestAccess& access, const Sharing& sharing, double loop_extent,
                size_t level) const;
  Rooms rooms(const MemoryBox& box) const;
  void add(int loop, int buffer, const Rooms& whole, const Rooms& body);
  double ways(int loop, bool body, const NestAccess& access, size_t keeper);
  double kept(double room, size_t keeper) const;

  const NestTree& tree_;
  int threads_;
  std::array<Keeper, kKeepers> keepers_;
  std::vector<InUse> in_use_;
  std::vector<Paid> paid_;
};

}  // namespace tenon
