#include <tenon/runtime/npy.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/rng.h>

using namespace tenon;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// A folder of its own, removed with the scope.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("tenon-npy-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& file) const { return (path / file).string(); }
};

bool same(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

/// A .npy file put together by hand.
std::string npy_text(const std::string& header, const std::string& data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += {major, '\0'};
  for (int k = 0; k < (major == 1 ? 2 : 4); ++k)
    file += static_cast<char>(header.size() >> (8 * k));
  return file + header + data;
}

Array load_text(const Folder& folder, const std::string& text) {
  REQUIRE(!write_file(folder / "x.npy", text));
  return load_npy(folder / "x.npy");
}

const std::string kFloats("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40\0\0\xc0\x40",
                          24);  // 1..6

}  // namespace

TEST_CASE("every element type and rank survives a file") {
  const Folder folder;
  for (DType t : {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64}) {
    for (const Shape& shape :
         std::vector<Shape>{{}, {1}, {7}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4, 5}}) {
      CAPTURE(name(t), shape);
      const Array a = random(t, shape, 11);
      save_npy(folder / "a.npy", a);
      CHECK(same(load_npy(folder / "a.npy"), a));
    }
  }
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);  // nothing partial is left
}

TEST_CASE("the header is what numpy writes") {
  const Folder folder;
  save_npy(folder / "a.npy", zeros(f32, {3}));
  const std::string text = *read_file(folder / "a.npy");
  CHECK(text.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK(text.size() == 128 + 12);
  CHECK_THAT(text, Contains("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  CHECK(text[127] == '\n');
}

TEST_CASE("versions, byte orders and Fortran order") {
  const Folder folder;
  const std::vector<double> rows = {1, 2, 3, 4, 5, 6};
  const std::string c_order = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  for (char major : {1, 2, 3}) {
    CHECK(load_text(folder, npy_text(c_order, kFloats, major)).to_doubles() == rows);
  }
  const Array columns = load_text(
      folder, npy_text("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", kFloats));
  CHECK(columns.shape() == Shape{2, 3});
  CHECK(columns.to_doubles() == std::vector<double>{1, 3, 5, 2, 4, 6});
  const Array cube = load_text(
      folder, npy_text("{'shape': (1, 3, 2), 'fortran_order': True, 'descr': '<f4'}", kFloats));
  CHECK(cube.to_doubles() == std::vector<double>{1, 4, 2, 5, 3, 6});
  const Array big =
      load_text(folder, npy_text("{\"descr\":\">i2\",\"fortran_order\":False,\"shape\":(2,)}",
                                 {"\x01\x02\xff\xfe", 4}));
  CHECK(big.to_doubles() == std::vector<double>{258, -2});
  const Array truth = load_text(
      folder,
      npy_text("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", {"\0\x01\x07", 3}));
  CHECK(std::string(static_cast<char*>(truth.raw()), 3) == std::string("\0\1\1", 3));
}

TEST_CASE("malformed files are refused with path and reason") {
  const Folder folder;
  auto reason = [&](const std::string& text) -> std::string {
    try {
      load_text(folder, text);
    } catch (const UserError& error) {
      CHECK_THAT(error.what(), Contains("npy file " + (folder / "x.npy")));
      return error.what();
    }
    return "";
  };
  auto with_header = [&](const std::string& header) { return reason(npy_text(header, kFloats)); };
  CHECK_THAT(reason(""), Contains("not a .npy file"));
  CHECK_THAT(reason("PK\x03\x04 a zip"), Contains("not a .npy file"));
  CHECK_THAT(reason("\x93NUMPY"), Contains("ends after 6 bytes"));
  CHECK_THAT(reason(npy_text("", "", 9)), Contains("version 9.0"));
  CHECK_THAT(reason(std::string("\x93NUMPY\x01\x00\xff\xff{", 11)),
             Contains("inside the header of 65535 bytes"));
  CHECK_THAT(reason(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13)),
             Contains("inside the header"));
  CHECK_THAT(with_header("{'descr': '<f4', 'shape': (2, 3)}"), Contains("lacks one of"));
  CHECK_THAT(with_header("{'descr': '<f4', 'descr': '<f4'}"),
             Contains("unknown or second key 'descr'"));
  CHECK_THAT(with_header("{'extra': 1}"), Contains("unknown or second key 'extra'"));
  CHECK_THAT(with_header("not a dict"), Contains("damaged at byte 0"));
  CHECK_THAT(with_header("{'descr': [('a', '<f4')]}"), Contains("structured element type"));
  CHECK_THAT(with_header("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}"),
             Contains("element type '<c8'") && Contains("known are b1"));
  CHECK_THAT(with_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}"),
             Contains("'|O'"));
  CHECK_THAT(with_header("{'descr': '', 'fortran_order': False, 'shape': (3,)}"),
             Contains("element type ''"));
  CHECK_THAT(with_header("{'descr': '<f4', 'fortran_order': Maybe}"),
             Contains("expected True or False"));
  CHECK_THAT(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}"),
             Contains("expected an extent"));
  CHECK_THAT(
      with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
      Contains("expected an extent"));
  CHECK_THAT(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, "
                         "4611686018427387904)}"),
             Contains("more than 2^62 elements"));
  CHECK_THAT(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}"),
             Contains("has 24 bytes of data, but f32 2x4 needs 8 elements of 4 bytes"));
  CHECK_THAT(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}"),
             Contains("has 24 bytes of data"));
  CHECK_THAT(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x"),
             Contains("expected the end"));
  CHECK_THROWS_WITH(load_npy(folder / "missing.npy"),
                    Contains("missing.npy") && Contains("No such file"));
  CHECK_THROWS_WITH(load_npy(folder.path.string()), Contains("is a directory"));
  CHECK_THROWS_WITH(save_npy(folder / "no/such/folder.npy", zeros(f32, {1})),
                    Contains("cannot be written"));
  CHECK_THROWS_WITH(save_npy(folder / "x.npy", Array()), Contains("no array at all"));
}

TEST_CASE("a failed save leaves the old file") {
  const Folder folder;
  save_npy(folder / "a.npy", full(f32, {2}, 3));
  fs::create_directory(folder / "b.npy");
  CHECK_THROWS_AS(save_npy(folder / "b.npy", zeros(f32, {2})), UserError);
  CHECK(load_npy(folder / "a.npy").to_doubles()[0] == 3);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2);
}

TEST_CASE("mutated files end in an array or a UserError") {
  const Folder folder;
  const uint64_t seed = 20;
  Rng rng(seed);
  int loaded = 0, refused = 0;
  save_npy(folder / "a.npy", random(f32, {3, 4}, 1));
  const std::string original = *read_file(folder / "a.npy");
  for (int round = 0; round < 300; ++round) {
    std::string text = original;
    if (rng.chance(0.3))
      text.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()))));
    for (int64_t flips = rng.between(0, 4); flips > 0 && !text.empty(); --flips) {
      const int64_t within = rng.chance(0.8) ? 80 : static_cast<int64_t>(text.size());
      const auto at = static_cast<size_t>(
          rng.below(std::min<int64_t>(within, static_cast<int64_t>(text.size()))));
      text[at] = static_cast<char>(text[at] ^ 1 << rng.below(8));
    }
    CAPTURE(seed, round);
    try {
      const Array a = load_text(folder, text);
      CHECK(a.bytes() <= static_cast<int64_t>(text.size()));
      ++loaded;
    } catch (const UserError& error) {
      CHECK_THAT(error.what(), Contains("x.npy"));
      ++refused;
    }
  }
  CHECK(loaded > 10);
  CHECK(refused > 100);
}

TEST_CASE("numpy reads what we write and we read what it writes") {
  const char* chosen = std::getenv("TENON_PYTHON");
  const std::string python = chosen ? chosen : "python3";
  if (std::system((python + " -c 'import numpy' 2>/dev/null").c_str()) != 0) {
    WARN("SKIPPED: " + python + " has no numpy (TENON_PYTHON names another python)");
    return;
  }
  const Folder folder;
  const std::string script = R"(
import sys, numpy as np
for code in ['?', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8']:
  a = np.load(code.replace('?', 'b') + '.npy')
  assert a.dtype == np.dtype(code) and a.shape == (2, 3, 4), (a.dtype, a.shape)
  np.save(code.replace('?', 'b') + '-fortran.npy', np.asfortranarray(a))
  np.save(code.replace('?', 'b') + '-big.npy', a.astype(np.dtype(code).newbyteorder('>')))
)";
  const std::pair<const char*, DType> codes[] = {
      {"b", boolean}, {"i1", i8},  {"i2", i16}, {"i4", i32}, {"i8", i64}, {"u1", u8},
      {"u2", u16},    {"u4", u32}, {"u8", u64}, {"f2", f16}, {"f4", f32}, {"f8", f64}};
  for (const auto& code : codes) {
    save_npy(folder / (std::string(code.first) + ".npy"), random(code.second, {2, 3, 4}, 5));
  }
  REQUIRE(!write_file(folder / "check.py", script));
  REQUIRE(std::system(("cd " + folder.path.string() + " && " + python + " check.py").c_str()) == 0);
  for (const auto& code : codes) {
    CAPTURE(code.first);
    const Array expected = random(code.second, {2, 3, 4}, 5);
    CHECK(same(load_npy(folder / (std::string(code.first) + "-fortran.npy")), expected));
    CHECK(same(load_npy(folder / (std::string(code.first) + "-big.npy")), expected));
  }
}
