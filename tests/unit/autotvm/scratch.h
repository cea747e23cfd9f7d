#pragma once
#include <tenon/autotvm/tune.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tenon {

/// A folder for a log, gone with the object, and options that write there.
struct Scratch {
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    options.log = folder + "/log.jsonl";
    options.quiet = true;
    options.threads = 1;
    options.space = SpaceKind::templates;
    options.seed = 7;
  }
  ~Scratch() { std::filesystem::remove_all(folder); }
  std::string folder;
  TuneOptions options;
};

}  // namespace tenon
