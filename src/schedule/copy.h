#pragma once
#include "schedule/tree.h"

namespace tenon {

// What the stages share that copy a buffer: cache_read and pack.

/// Refuses a layout whose parts do not store each dimension exactly once. Each dimension's parts
/// must tile its index: divide 1 modulo a, divide a modulo b, ..., the last one without modulo.
void check_layout(const std::vector<LayoutDim>& layout, size_t rank, const std::string& buffer);

/// The producer's axis names, else those of the reader's axes that index the dimensions, else d0,
/// d1, ...; each once.
std::vector<std::string> dim_names(const Program& program, const Stage& reader,
                                   const Buffer& buffer);

}  // namespace tenon
