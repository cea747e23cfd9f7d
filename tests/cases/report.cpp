#include "report.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

namespace tenon::cases {
namespace {

/// Tabs and ends of lines separate fields and reports.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
}

void write(std::string_view what, const std::string& target, const std::string& label,
           const std::string& message) {
  static const char* path = std::getenv("TENON_CASES_REPORT");
  if (!path) return;
  static std::ofstream file(path, std::ios::app);
  file << what << '\t' << one_line(target) << '\t' << one_line(label) << '\t' << one_line(message)
       << std::endl;
}

}  // namespace

std::string_view word(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::refused:
      return "refused";
    case Outcome::refused_wrongly:
      return "refused_wrongly";
    case Outcome::wrong:
      return "wrong";
  }
  return "wrong";
}

void starts(const std::string& target, const std::string& label, const std::string& steps) {
  write("starts", target, label, steps);
}

void record(Outcome outcome, const std::string& target, const std::string& label,
            const std::string& message) {
  write(word(outcome), target, label, message);
  INFO(target << ", " << label << ": " << word(outcome) << "\n" << message);
  CHECK((outcome == Outcome::passed || outcome == Outcome::refused));
}

void holds(bool holds, const std::string& target, const std::string& label,
           const std::string& message) {
  record(holds ? Outcome::passed : Outcome::wrong, target, label, holds ? std::string() : message);
}

}  // namespace tenon::cases
