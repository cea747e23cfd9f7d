#include <tenon/runtime/npy.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <string_view>

#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMostDimensions = 64;  // numpy's own limit

struct TypeCode {
  const char* code;  // descr without its byte order
  DType dtype;
};
constexpr TypeCode kTypes[] = {{"b1", DType::boolean}, {"i1", DType::i8},   {"i2", DType::i16},
                               {"i4", DType::i32},     {"i8", DType::i64},  {"u1", DType::u8},
                               {"u2", DType::u16},     {"u4", DType::u32},  {"u8", DType::u64},
                               {"f2", DType::f16},     {"V2", DType::bf16}, {"f4", DType::f32},
                               {"f8", DType::f64}};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UserError(fmt::format("npy file {}: {}", path, why));
}

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// Reads the Python dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !header.descr)
        header.descr = element_type();
      else if (key == "fortran_order" && !header.fortran_order)
        header.fortran_order = truth();
      else if (key == "shape" && !header.shape)
        header.shape = tuple();
      else
        refuse(path_, fmt::format("the header has an unknown or second key '{}'", printable(key)));
      if (!accept(',') && peek() != '}') fail("',' or '}'");
    }
    if (peek() != '\0') fail("the end");
    if (!header.descr || !header.fortran_order || !header.shape) {
      refuse(path_, "the header lacks one of 'descr', 'fortran_order', 'shape'");
    }
    return header;
  }

  static std::string printable(std::string_view text) {
    std::string out(text.substr(0, 40));
    for (char& c : out) c = std::isprint(static_cast<unsigned char>(c)) ? c : '?';
    return out;
  }

 private:
  [[noreturn]] void fail(const char* wanted) {
    refuse(path_, fmt::format("the header is damaged at byte {}: expected {}, found \"{}\"", at_,
                              wanted, printable(text_.substr(std::min(at_, text_.size())))));
  }
  /// Next character that is not blank; 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    const char wanted[] = {'\'', c, '\'', '\0'};
    if (!accept(c)) fail(wanted);
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted word");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  std::string element_type() {
    if (peek() == '[') refuse(path_, "has a structured element type; only plain numbers are read");
    return quoted();
  }
  bool truth() {
    peek();
    for (bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("True or False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      peek();
      size_t end = at_;
      while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end]))) ++end;
      const auto extent = parse_int(text_.substr(at_, end - at_));
      if (!extent) fail("an extent");
      at_ = end;
      shape.push_back(*extent);
      if (shape.size() > kMostDimensions) refuse(path_, "has more than 64 dimensions");
      if (!accept(',') && peek() != ')') fail("',' or ')'");
    }
    return shape;
  }

  const std::string& path_;
  std::string_view text_;
  size_t at_ = 0;
};

/// Header text and where the data starts.
struct Layout {
  std::string_view header;
  size_t data_at;
};

Layout split_file(const std::string& path, std::string_view file) {
  if (file.substr(0, kMagic.size()) != kMagic)
    refuse(path, "is not a .npy file (its first bytes are not \\x93NUMPY)");
  if (file.size() < 10)
    refuse(path, fmt::format("ends after {} bytes, inside the header", file.size()));
  const int major = static_cast<unsigned char>(file[6]),
            minor = static_cast<unsigned char>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    refuse(path, fmt::format("has format version {}.{}; 1.0, 2.0 and 3.0 are known", major, minor));
  }
  const size_t length_bytes = major == 1 ? 2 : 4, start = 8 + length_bytes;
  if (file.size() < start)
    refuse(path, fmt::format("ends after {} bytes, inside the header", file.size()));
  size_t length = 0;
  for (size_t k = 0; k < length_bytes; ++k)
    length |= size_t{static_cast<unsigned char>(file[8 + k])} << (8 * k);
  if (length > file.size() - start) {
    refuse(path,
           fmt::format("ends after {} bytes, inside the header of {} bytes", file.size(), length));
  }
  return {file.substr(start, length), start + length};
}

struct ElementType {
  DType dtype;
  bool swapped;
};

ElementType element_type(const std::string& path, const std::string& descr) {
  const std::string_view orders = "<>|=";
  const char order = descr.empty() ? '?' : descr[0];
  for (const TypeCode& type : kTypes) {
    if (orders.find(order) != std::string_view::npos && descr.substr(1) == type.code)
      return {type.dtype, order == '>'};
  }
  std::vector<std::string> known;
  for (const TypeCode& type : kTypes) known.push_back(type.code);
  refuse(path, fmt::format("has element type '{}'; known are {} with < or > before",
                           HeaderParser::printable(descr), join(known)));
}

void swap_bytes(char* data, int64_t count, int element) {
  for (int64_t k = 0; k < count; ++k) std::reverse(data + k * element, data + (k + 1) * element);
}

/// Column-major `from` to row-major `to`.
void transpose_order(const char* from, char* to, const Shape& shape, size_t element) {
  const int64_t count = element_count(shape);
  std::vector<int64_t> stride(shape.size(), 1), index(shape.size(), 0);
  for (size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
  int64_t source = 0;
  for (int64_t k = 0; k < count; ++k) {
    std::memcpy(to + static_cast<size_t>(k) * element, from + static_cast<size_t>(source) * element,
                element);
    for (size_t d = shape.size(); d-- > 0;) {
      source += stride[d];
      if (++index[d] < shape[d]) break;
      source -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

int64_t count_elements(const std::string& path, const Shape& shape) {
  try {
    return element_count(shape);
  } catch (const UserError& error) {
    refuse(path, error.what());
  }
}

std::string_view type_code(DType dtype) {
  for (const TypeCode& type : kTypes) {
    if (type.dtype == dtype) return type.code;
  }
  TENON_CHECK(false, "no .npy code for {}", name(dtype));
  return "";
}

}  // namespace

Array load_npy(const std::string& path) {
  const Result<std::string> file = read_file(path);
  if (!file) refuse(path, "cannot be read - " + file.error());
  const Layout layout = split_file(path, *file);
  const Header header = HeaderParser(path, layout.header).parse();
  const ElementType type = element_type(path, *header.descr);
  const Shape& shape = *header.shape;
  const int64_t count = count_elements(path, shape);
  const size_t element = static_cast<size_t>(byte_size(type.dtype)),
               present = file->size() - layout.data_at;
  if (static_cast<size_t>(count) > present / element ||
      static_cast<size_t>(count) * element != present) {
    refuse(path, fmt::format("has {} bytes of data, but {} {} needs {} elements of {} bytes",
                             present, name(type.dtype), shape_text(shape), count, element));
  }
  Array array = Array::empty(type.dtype, shape);
  const char* data = file->data() + layout.data_at;
  char* out = static_cast<char*>(array.raw());
  if (*header.fortran_order && shape.size() > 1)
    transpose_order(data, out, shape, element);
  else
    std::memcpy(out, data, present);
  if (type.swapped) swap_bytes(out, count, static_cast<int>(element));
  if (is_bool(type.dtype)) std::transform(out, out + present, out, [](char c) { return c != 0; });
  return array;
}

void save_npy(const std::string& path, const Array& array) {
  if (!array) refuse(path, "cannot be written - there is no array at all");
  const char order = byte_size(array.dtype()) == 1 ? '|' : '<';
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   order, type_code(array.dtype()), fmt::join(array.shape(), ", "),
                                   array.rank() == 1 ? "," : "");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  if (header.size() > 0xffff)
    refuse(path, "cannot be written - the shape is too long for format 1.0");
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
           static_cast<char>(header.size() >> 8)};
  file += header;
  file.append(static_cast<const char*>(array.raw()), static_cast<size_t>(array.bytes()));
  if (auto failure = write_file(path, file))
    refuse(path, "cannot be written - " + failure->message);
}

}  // namespace tenon
