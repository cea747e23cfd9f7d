#include <tenon/compile/compile.h>

#include <catch2/catch.hpp>

#include "codegen/llvm/codegen.h"
#include "kernels/table.h"
#include "kernels/templates.h"
#include "lower/lower.h"
#include "template_cases.h"

// Arrays that no cache holds: the maps and rows over them ask for lines ahead and store past the
// caches.

using namespace tenon;

namespace {

/// The host with caches so small that the arrays of a test exceed them.
Target without_caches(const std::string& name = "host") {
  Target target = Target::parse(name);
  target.l2_bytes = 64;
  target.l3_bytes = 0;
  return target;
}

Program by_words(const Case& c) {
  const KernelEntry& entry = find_kernel(c.kernel);
  return merge_dimensions(make_program("p", entry.build(parse_kernel_args(entry, c.words))));
}

Schedule default_of(const Program& program, const Target& target) {
  return default_schedule(Task("test", program, templates_for(program, target), target));
}

bool notes(const Program& program, const Target& target, const std::string& note) {
  return print(default_of(program, target).program()).find(note) != std::string::npos;
}

std::string assembly_of(const Program& program, const Target& target) {
  return generate_assembly(lower(default_of(program, target).program(), target), target);
}

/// Maps and rows, of whole vectors and of others.
std::vector<Case> far_cases() {
  return {{"elementwise", {"op=add_relu", "n=1024"}},
          {"elementwise", {"op=gelu", "n=1001"}},
          {"transpose", {"shape=64x48"}},
          {"transpose", {"shape=37x70"}},
          {"softmax", {"rows=9", "columns=256"}},
          {"softmax", {"rows=9", "columns=37"}},
          {"layer_norm", {"rows=9", "columns=256"}},
          {"layer_norm", {"rows=7", "columns=301"}},
          {"reduce", {"shape=9x256", "axis=1"}},
          {"reduce", {"shape=37x200", "axis=0"}},
          {"reduce", {"shape=40000", "axis=all"}},
          {"gather", {"shape=50x64", "indices=33"}},
          {"concat", {"shape=3x5x7", "parts=4"}}};
}

}  // namespace

TEST_CASE("kernels whose arrays exceed the caches give what others give") {
  for (const char* level : {"host", "x86-64/avx2", "x86-64/sse2"})
    for (const int cores : {1, 2}) {
      Target target = without_caches(level);
      if (!target.runs_on(Target::host())) continue;
      target.cores = cores;
      for (const Case& c : far_cases())
        for (const int epilogue : {0, 2}) {
          INFO(text(c) << ", epilogue " << epilogue);
          const Program program = build_case(c, epilogue);
          const auto inputs = random_inputs(program, 7);
          const RefArray expected = run_interpreted(program, inputs);
          for (const NamedTemplate& t : templates_for(program, target))
            check_point(program, target, t, survey(t.fn, program, target).default_point(), inputs,
                        expected, 1e-4, false);
        }
    }
}

TEST_CASE(
    "an output is stored past the caches when all arrays exceed them, and not when they fit") {
  for (const Case& c : far_cases()) {
    if (c.kernel == "reduce") continue;
    INFO(text(c));
    const Program program = by_words(c);
    CHECK(notes(program, without_caches(), "stream=1"));
    Target roomy = without_caches();
    roomy.l3_bytes = 1 << 20;
    CHECK(!notes(program, roomy, "stream=1"));
  }
  for (const char* level : {"x86-64/avx512", "x86-64/avx2"})
    for (const Case& c : {far_cases()[0], far_cases()[2], far_cases()[6]}) {
      INFO(text(c) << " " << level);
      const Target target = without_caches(level);
      CHECK(assembly_of(by_words(c), target).find("vmovntps") != std::string::npos);
      CHECK(assembly_of(by_words(c), target).find("sfence") != std::string::npos);
      CHECK(assembly_of(by_words(c), Target::parse(level)).find("vmovnt") == std::string::npos);
    }
}

TEST_CASE(
    "the next row is asked for during the last pass over one, and a long row ahead of itself") {
  const Target far = without_caches(), near = Target::parse("x86-64/avx512");
  const Program rows = by_words({"layer_norm", {"rows=9", "columns=256"}}),
                sums = by_words({"reduce", {"shape=40000", "axis=all"}});
  Target row_fits = far;
  row_fits.l2_bytes = 8 << 10;
  CHECK(notes(rows, row_fits, "prefetch(X)=1"));
  CHECK(notes(rows, row_fits, "prefetch_part(X)=1"));
  CHECK(!notes(rows, far, "prefetch(X)"));  // a row is more than the cache: it would be gone again
  CHECK(notes(sums, far, "prefetch(X)=4"));
  CHECK(!notes(rows, near, "prefetch"));
  CHECK(!notes(sums, near, "prefetch"));
}
