#include "server.h"

#include <dlfcn.h>
#include <emmintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

namespace perf {
namespace {

constexpr double kShortestSample_us = 10;  // a clock reading costs some 25 ns
constexpr double kWarmUp_us = 700;
constexpr int kWarmUpCalls = 2;
constexpr double kNoWarmUp_us = 20'000;  // calls that outlast all caches need none

constexpr size_t kPage = 4096;
constexpr size_t kLarge = size_t{4} << 20;  // from here on numpy, and so torch here, asks for more

double now_us() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

double timed(const Variant& v, int64_t times) {
  const double start = now_us();
  for (int64_t k = 0; k < times; ++k) v.call();
  return (now_us() - start) / static_cast<double>(times * v.repeats);
}

size_t bytes_of(const Json& operand) {
  static const std::map<std::string, size_t> sizes = {{"f32", 4}, {"i32", 4}, {"bf16", 2},
                                                      {"u8", 1},  {"i8", 1},  {"i64", 8}};
  size_t bytes = sizes.at(operand.at("dtype"));
  for (const Json& extent : operand.at("shape")) bytes *= extent.get<size_t>();
  return bytes;
}

Storage read_operand(const Json& operand) {
  Storage buffer(bytes_of(operand));
  std::ifstream file(operand.at("file").get<std::string>(), std::ios::binary);
  if (!file.read(buffer.as<char>(), static_cast<std::streamsize>(buffer.bytes())))
    throw std::runtime_error("cannot read " + operand.at("file").get<std::string>());
  return buffer;
}

void write_output(const Case& c, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(c.output.as<char>(), static_cast<std::streamsize>(c.output.bytes())))
    throw std::runtime_error("cannot write " + path);
}

/// clflush is in every x86-64 processor; what it puts out is out of all caches of all cores.
void flush(const std::vector<Span>& memory) {
  for (const Span& span : memory) {
    const char* p = static_cast<const char*>(span.data);
    for (size_t at = 0; at < span.bytes; at += 64) _mm_clflush(p + at);
  }
  _mm_mfence();
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// The case at hand.
struct Prepared {
  Case c;
  std::vector<Variant> variants;
  std::vector<double> call_us;  // estimates
};

/// The least of a few calls: other work on the machine makes single ones long. One that outlasts
/// all caches by far need not be made again for that.
double estimate_us(const Variant& variant, double first_us) {
  if (first_us > 5 * kNoWarmUp_us) return first_us;
  double us = timed(variant, 1);
  for (int k = 0; k < 3 && us < kNoWarmUp_us; ++k) us = std::min(us, timed(variant, 1));
  for (int64_t n = 4; us * static_cast<double>(n) < 200; n *= 4) us = timed(variant, n);
  return us;
}

Json prepare(const Json& text, const Server& server, std::unique_ptr<Prepared>& prepared) {
  prepared = std::make_unique<Prepared>();
  Case& c = prepared->c;
  c.text = text;
  c.threads = text.at("threads");
  const auto row = server.rows.find(text.at("op"));
  if (row == server.rows.end()) throw NotThere("no " + text.at("op").get<std::string>());
  for (const Json& operand : text.at("inputs")) c.inputs.push_back(read_operand(operand));
  c.output = Storage(bytes_of(text.at("output")));
  prepared->variants = row->second(c);
  Json reply = {{"variants", Json::array()}};
  const std::string folder = text.at("folder"), prefix = text.at("prefix");
  for (const Variant& v : prepared->variants) {
    std::memset(c.output.data(), 0xff, c.output.bytes());  // NaN, so that what is left out shows
    const double first_us = timed(v, 1);
    if (v.fetch) v.fetch();
    const std::string path = folder + "/" + prefix + "-" + v.name + ".bin";
    write_output(c, path);
    prepared->call_us.push_back(estimate_us(v, first_us));
    reply["variants"].push_back({{"name", v.name},
                                 {"classes", v.classes},
                                 {"note", v.note},
                                 {"output", path},
                                 {"us", prepared->call_us.back()}});
  }
  return reply;
}

Json run(const Json& request, const Server& server, Prepared& prepared) {
  const size_t k = request.at("variant");
  const Variant& v = prepared.variants.at(k);
  const double budget = request.at("us"), call_us = prepared.call_us[k];
  const std::shared_ptr<void> busy = server.busy ? server.busy() : nullptr;
  if (call_us < kNoWarmUp_us) {
    int calls = 0;
    for (const double start = now_us(); now_us() - start < kWarmUp_us || calls < kWarmUpCalls;
         ++calls)
      v.call();
  }
  const int64_t batch =
      std::max<int64_t>(1, static_cast<int64_t>(kShortestSample_us / std::max(call_us, 1e-3)));
  std::vector<double> samples;
  int64_t calls = 0;
  for (const double start = now_us(); samples.empty() || now_us() - start < budget;) {
    samples.push_back(timed(v, batch));
    calls += batch;
  }
  std::vector<double> cold;
  for (int n = request.at("cold"); n > 0; --n) {
    flush(v.memory);
    cold.push_back(timed(v, 1));
  }
  return {{"us", median_of(samples)},
          {"min", *std::min_element(samples.begin(), samples.end())},
          {"calls", calls},
          {"cold", cold}};
}

Json answer(const Json& request, const Server& server, std::unique_ptr<Prepared>& prepared) {
  try {
    const std::string what = request.at("do");
    if (what == "prepare") return prepare(request.at("case"), server, prepared);
    if (what == "run" && prepared) return run(request, server, *prepared);
    prepared.reset();
    return Json::object();
  } catch (const NotThere& reason) {
    return {{"not_there", reason.what()}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

Storage::Storage(size_t bytes) : bytes_(bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, rounded);
  if (!memory) throw std::bad_alloc();
  if (bytes >= kLarge) madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, rounded);
  data_ = std::shared_ptr<void>(memory, std::free);
}

void* open_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

void* find_symbol(void* library, const std::string& name) {
  void* symbol = dlsym(library, name.c_str());
  if (!symbol) throw std::runtime_error(dlerror());
  return symbol;
}

int serve(const Server& server) {
  const int replies = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  FILE* out = fdopen(replies, "w");
  std::unique_ptr<Prepared> prepared;
  for (std::string line; std::getline(std::cin, line);) {
    const Json reply = answer(Json::parse(line), server, prepared);
    std::fprintf(out, "%s\n", reply.dump().c_str());
    std::fflush(out);
  }
  return 0;
}

}  // namespace perf
