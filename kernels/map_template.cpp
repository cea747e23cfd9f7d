#include "kernels/templates.h"
#include "schedule/composites/map_nest.h"

namespace tenon {

void map_template(Schedule& s, Knobs& knobs) {
  const MapOptions standard = standard_maps(s.program(), s.target());
  MapOptions options;
  options.vectors = knobs.pick("vectors", {1, 2, 4, 8}, standard.vectors);
  options.block = knobs.pick("block", {8, 16, 32, 64}, standard.block);
  options.peeled = knobs.flag("peel", standard.peeled);
  options.streams = knobs.flag("stream", standard.streams);
  schedule_maps(s, options);
}

}  // namespace tenon
