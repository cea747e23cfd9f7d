#pragma once
#include <string>
#include <string_view>

namespace tenon::cases {

/// What became of one run of a case. `refused` is good only where the case allows it:
/// `refused_wrongly` is the other kind. crashed and hung are seen by score_cases, from outside.
enum class Outcome { passed, refused, refused_wrongly, wrong };

std::string_view word(Outcome outcome);

/// Writes one line to the report of the running case (the file named by TENON_CASES_REPORT, if any)
/// and fails the running test where the outcome is not good. `target`: "interp", "avx512", ...;
/// "schedule" for what no target runs. `label` says which variant of the case and which schedule.
void record(Outcome outcome, const std::string& target, const std::string& label,
            const std::string& message = {});

/// Notes that a run starts, so that a crash or a hang can be put down to it; `steps`: its schedule,
/// where that is known.
void starts(const std::string& target, const std::string& label, const std::string& steps = {});

/// passed when `holds`, else wrong.
void holds(bool holds, const std::string& target, const std::string& label,
           const std::string& message);

}  // namespace tenon::cases
