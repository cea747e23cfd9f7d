#include "kernels/templates.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/row_chain.h"

namespace tenon {

void row_template(Schedule& s, Knobs& knobs) {
  const bool lanes = knobs.flag("lanes", true);
  const bool streams = knobs.flag("stream", exceeds_caches(s.program(), s.target()));
  schedule_rows(s, {.lanes = lanes, .streams = streams});
}

}  // namespace tenon
