#include <tenon/support/files.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

using namespace tenon;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("files are written whole, or not at all") {
  const fs::path folder = fs::temp_directory_path() / ("tenon-files-" + std::to_string(getpid()));
  fs::create_directory(folder);
  const std::string path = (folder / "a").string(), content("one\0two\n", 8);
  CHECK(!write_file(path, content));
  CHECK(*read_file(path) == content);
  CHECK(!write_file(path, ""));
  CHECK(read_file(path)->empty());
  const auto failure = write_file((folder / "no" / "b").string(), content);
  REQUIRE(failure);
  CHECK_THAT(failure->message, Contains("No such file"));
  CHECK(write_file(folder.string(), content));
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 1);
  CHECK_THAT(read_file((folder / "no").string()).error(), Contains("No such file"));
  CHECK(read_file(folder.string()).error() == "is a directory");
  CHECK(read_file("/dev/null").error() == "is not a regular file");
  fs::remove_all(folder);
}
