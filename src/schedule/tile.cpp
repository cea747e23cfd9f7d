#include <tenon/schedule/loop_primitives.h>

namespace tenon {

/// for x: for y: S(x, y)   ->   for x.o: for y.o: for x.i in 0..f: for y.i in 0..g: S(x.o*f + x.i,
/// y.o*g + y.i)
Program Tile::apply(const Program& program, const Target& target) const {
  Program out = Split{stage, outer, outer_factor, Tail::guard}.apply(program, target);
  out = Split{stage, inner, inner_factor, Tail::guard}.apply(out, target);
  return Reorder{stage, {outer + ".o", inner + ".o", outer + ".i", inner + ".i"}}.apply(out,
                                                                                        target);
}

}  // namespace tenon
