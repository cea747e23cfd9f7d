#include "ir/loads.h"

#include <tenon/ir/visit.h>

namespace tenon {

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& part) {
    found = found || part.as<Load>();
    return !found;
  });
  return found;
}

}  // namespace tenon
