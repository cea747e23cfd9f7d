#pragma once
#include <tenon/ir/program.h>

#include <functional>

namespace tenon {

/// Checks the types of every distinct node of `e` and what `form` allows in an expression (not the
/// scope of its variables and buffers). `report` gets each broken rule in words.
void verify_expr(const Expr& e, Form form, const std::function<void(const std::string&)>& report);

}  // namespace tenon
