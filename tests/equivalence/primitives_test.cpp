#include <catch2/catch.hpp>

#include <tenon/support/files.h>

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/random_step.h"

using namespace tenon;
namespace fs = std::filesystem;

// Each primitive has its golden tree, refusals by text, JSON and printed-C++ round trips, and is
// drawn by the random tests.

namespace {

std::string all_text(const std::string& folder) {
  std::string out;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(TENON_SOURCE_DIR) / folder))
    if (entry.is_regular_file()) out += read_file(entry.path().string()).value();
  return out;
}

/// "reverse_compute_at" -> "reversecomputeat{": how a struct of that name begins, in small letters.
std::string as_struct(std::string name) {
  std::erase(name, '_');
  return name + "{";
}

std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every primitive is tested in every way") {
  const std::string
      golden = all_text("tests/golden/schedule"),
      refusals = all_text("tests/refusals"), round = all_text("tests/roundtrip"),
      gpu =
          small(read_file((fs::path(TENON_SOURCE_DIR) / "tests/fuzz/random_gpu_step.cpp").string())
                    .value());
  for (const std::string& name : primitive_names()) {
    const std::string call = "." + name + "(";
    INFO(name);
    CHECK(has(golden, call));                                               // golden tree
    CHECK((has(refusals, call) || has(small(refusals), as_struct(name))));  // refusals by text
    CHECK(has(small(round), as_struct(name)));                              // JSON
    CHECK((has(round, "SAME_AS_PRINTED") && has(round, call)));             // printed C++
    const bool drawn = std::any_of(step_kinds().begin(), step_kinds().end(),
                                   [&](const StepKind& k) { return k.primitive == name; });
    CHECK((drawn || has(gpu, as_struct(name))));  // random programs
  }
}
