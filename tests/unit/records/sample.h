#pragma once
#include <tenon/records/lookup.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon {

inline Record sample_record(double us = 100, int64_t trial = 0) {
  Record r;
  r.task = "matmul";
  r.args = R"({"m":64,"n":64,"k":64,"type":"f32"})";
  r.program = "00112233445566aa";
  r.family = "ffeeddccbbaa0099";
  r.target = Target::parse("x86-64/avx2");
  r.threads = 1;
  r.template_name = "tiled";
  r.knobs = R"({"tile_i":8,"order":"ikj"})";
  r.trace = fmt::format(R"([{{"split":{{"loop":"i","factor":{}}}}}])", trial + 1);
  r.status = TrialStatus::ok;
  r.samples_us = {us, us * 1.001, us * 0.999};
  r.check = CheckResult::passed;
  r.check_error = 0.25;
  r.compile_us = 9000;
  r.seed = 7;
  r.trial = trial;
  r.tenon = "0.1.0";
  r.llvm = "19.1.7";
  r.time = "2026-01-31T12:00:00Z";
  return r;
}

inline RecordQuery sample_query() {
  const Record r = sample_record();
  return {r.program, r.family, r.args, r.target, r.threads, r.tenon, r.llvm};
}

/// A folder of its own, gone with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void put_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace tenon
