#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace perf {

using Json = nlohmann::json;

/// What a row's function throws when the library has no such operator: the reason, in words.
struct NotThere : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Memory that a call reads or writes; a cold call finds none of it in a cache.
struct Span {
  const void* data = nullptr;
  size_t bytes = 0;
};

/// Memory that begins with a page, and from 4 MB on in large pages, as every library here gets it
/// (numpy asks for them, whose arrays torch works on here): where two arrays lie to each other within a
/// page decides whether loads wait for stores of other addresses, and small pages cost a sweep
/// through memory the time to translate them.
class Storage {
 public:
  explicit Storage(size_t bytes);
  void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  operator Span() const { return {data_.get(), bytes_}; }

 private:
  std::shared_ptr<void> data_;
  size_t bytes_ = 0;
};

/// One case of the shape list: its text, its inputs in the order of the text, and threads.
struct Case {
  Json text;
  int threads = 1;
  std::vector<Storage> inputs;
  Storage output{0};

  int64_t number(const char* name) const { return text.at(name).get<int64_t>(); }
  std::string word(const char* name) const { return text.value(name, ""); }
  int64_t batch() const { return text.value("batch", int64_t{1}); }
};

/// One way to compute the case, ready to be called again and again.
struct Variant {
  std::string name;
  /// Comparisons it takes part in: "plain" operands, "packed" ahead of time, a layout, ...
  std::vector<std::string> classes;
  std::function<void()> call;
  std::vector<Span> memory;
  /// Puts the result into the case's output in row-major order; empty: it is there already.
  std::function<void()> fetch = {};
  std::string note = {};  ///< implementation or schedule, for the report
  int64_t repeats = 1;    ///< how often one call() does the work
};

/// Makes the variants of a case. Throws NotThere.
using Row = std::function<std::vector<Variant>(const Case&)>;

struct Server {
  std::map<std::string, Row> rows;
  /// What is held while calls are timed (a pool kept awake); may be empty.
  std::function<std::shared_ptr<void>()> busy = {};
};

/// Answers requests on standard input, one JSON object a line, until it ends:
///   {"do":"prepare", "case":{..}}                    makes the variants, each with its output file
///   {"do":"run", "variant":k, "us":budget, ...}      times warm, then cold calls
///   {"do":"drop"}                                    forgets the case
/// What the library itself prints goes to standard error.
int serve(const Server& server);

/// Opens a library of its own name space; std::runtime_error with the loader's words.
void* open_library(const std::string& path);
void* find_symbol(void* library, const std::string& name);

}  // namespace perf
