#include "te/check_constants.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

bool divides(BinaryOp op) { return op >= BinaryOp::floor_div && op <= BinaryOp::trunc_mod; }
bool shifts(BinaryOp op) { return op == BinaryOp::shl || op == BinaryOp::shr; }

void check_node(const std::string& where, const Binary& n) {
  const std::optional<int64_t> b = as_int(n.b);
  if (!b) return;
  if (divides(n.op) && *b == 0)
    throw UserError(
        fmt::format("{}: {} of {} by the constant 0 has no value\n  try: another divisor, or "
                    "select(condition, the division, another value) with a divisor that is not 0",
                    where, name(n.op), print(n.a)));
  const int width = 8 * byte_size(n.a.dtype());
  if (shifts(n.op) && (*b < 0 || *b >= width))
    throw UserError(
        fmt::format("{}: {} of {} by the constant {}: {} has {} bits, so it is shifted by 0 to {}",
                    where, name(n.op), print(n.a), *b, name(n.a.dtype()), width, width - 1));
}

}  // namespace

void check_constants(const std::string& where, const Expr& value) {
  walk(value, [&](const Expr& e) {
    if (const Binary* n = e.as<Binary>()) check_node(where, *n);
    return true;
  });
}

}  // namespace tenon
