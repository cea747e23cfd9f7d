#pragma once
#include <tenon/ir/intrinsic.h>

#include <vector>

namespace tenon {

/// A product of tiles in flat code, taken apart:
///
///     for several tiles of rows               missing, or one loop, marked instead of `rows`
///       for rows  tensorize                   cut into tiles; of a loop of tiles one tile
///         for lanes                           whole numbers of tiles
///           C[..] = 0                         `init`, null where the sums go on
///           for more of the sum               any number of loops
///             for steps                       whole numbers of tiles
///               for elements of a lane
///                 C[..] = C[..] + wide(a) * wide(b)
struct TileNest {
  const For *tiles = nullptr, *rows = nullptr, *lanes = nullptr;
  std::vector<const For*> sums;
  const For *steps = nullptr, *group = nullptr;
  const Store *init = nullptr, *update = nullptr;
  const Load *a = nullptr, *b = nullptr;
};

/// How `rows` rows are cut into tiles of at most `most`: as few and as even as can be, the last one
/// beginning early where they do not come out even, so that it repeats what the one before has.
struct RowTiles {
  int64_t count = 1, each = 1;
};
RowTiles cut_into_tiles(int64_t rows, int64_t most);

/// Whether the eight tiles hold the sums of row_tiles x lane_tiles and what they are made of: two
/// are for the lanes' operand, six for the sums and the rows' operand. Of the operand with fewer
/// tiles all stay during a step.
bool tiles_fit(int64_t row_tiles, int64_t lane_tiles);

/// Nothing where the loop marked tensorize holds anything else. Pointers live as long as `loop`.
std::optional<TileNest> find_tile_nest(const For& loop);

}  // namespace tenon
