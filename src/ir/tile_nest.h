#pragma once
#include <tenon/ir/intrinsic.h>

namespace tenon {

/// A product of tiles in flat code, taken apart:
///
///     for rows  tensorize                     whole numbers of tiles, of steps
///       for lanes
///         C[..] = 0                           `init`, null where the sums go on
///         for steps
///           for elements of a lane
///             C[..] = C[..] + wide(a) * wide(b)
struct TileNest {
  const For *rows = nullptr, *lanes = nullptr, *steps = nullptr, *group = nullptr;
  const Store *init = nullptr, *update = nullptr;
  const Load *a = nullptr, *b = nullptr;
};

/// Nothing where the loop marked tensorize holds anything else. Pointers live as long as `loop`.
std::optional<TileNest> find_tile_nest(const For& loop);

}  // namespace tenon
