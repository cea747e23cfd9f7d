#include "autotvm/forecast.h"

#include <tenon/support/text.h>

#include "autotvm/model/draft.h"
#include "autotvm/on_cores.h"

namespace tenon {
namespace {

/// "schedule error in matmul, step 3: vectorize(..)" without the numbers of this point.
std::string refusal_class(const std::string& message) {
  const std::vector<std::string> lines = split_text(message, '\n');
  const std::string& first = lines.front();
  const size_t colon = first.rfind(": "), paren = first.find('(', colon);
  return "refused: " +
         (colon == std::string::npos ? first : first.substr(colon + 2, paren - colon - 2));
}

}  // namespace

DraftForecaster::DraftForecaster(const TaskSpace& space, const Task& task, int threads)
    : space_(&space),
      target_(task.target),
      sizes_(task.sample_sizes),
      threads_(threads),
      dropped_(std::make_shared<std::map<std::string, int64_t>>()) {}

std::vector<Forecast> DraftForecaster::operator()(const std::vector<SpacePoint>& points) {
  std::vector<Forecast> out(points.size());
  on_cores(target_.cores, points.size(), [&](size_t n) {
    Result<Candidate> candidate = space_->candidate(points[n]);
    if (!candidate) {
      out[n].hopeless = refusal_class(candidate.error());
      return;
    }
    const Draft d = draft(candidate.value().program, target_, threads_, sizes_);
    out[n].us = d.cycles;
    if (d.hopeless) {
      out[n].hopeless = *d.hopeless;
      return;
    }
    out[n].program = program_hash(candidate.value().program);
    space_->keep(points[n], d.cycles, std::move(candidate).value());
  });
  for (const Forecast& f : out)
    if (!f.hopeless.empty()) ++(*dropped_)[f.hopeless];
  return out;
}

}  // namespace tenon
