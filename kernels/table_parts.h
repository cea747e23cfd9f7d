#pragma once
#include <string>
#include <vector>

#include "kernels/table.h"

namespace tenon {

// What the files of the table share.

/// Arguments; with an empty `standard` they must be given.
KernelArg number_arg(std::string name, std::string help, std::string standard = "",
                     int64_t low = 0);
KernelArg shape_arg(std::string name, std::string help);
/// Any text when `words` is empty.
KernelArg word_arg(std::string name, std::string help, std::string standard,
                   std::vector<std::string> words = {});

/// Whole numbers joined by commas, as the word argument `name` of `kernel` has them. UserError
/// shows `example` when one is none.
std::vector<int64_t> number_list(const KernelArgs& args, const std::string& kernel,
                                 const std::string& name, const std::string& example);

/// The product of these number arguments.
double times(const KernelArgs& args, const std::vector<std::string>& names);

/// The entries that only move elements: table_movers.cpp.
std::vector<KernelEntry> mover_entries();

/// Convolutions over one dimension, and transposed ones: table_convs.cpp.
std::vector<KernelEntry> conv_entries();

/// Products of narrow numbers with wide sums: table_wide.cpp.
std::vector<KernelEntry> wide_entries();

/// Winograd's convolution and its weights.
std::vector<KernelEntry> winograd_entries();

}  // namespace tenon
