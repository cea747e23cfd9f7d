#include <tenon/autotvm/search.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

namespace tenon {

std::unique_ptr<Search> make_search(const std::string& name, std::vector<KnobSpace> spaces,
                                    uint64_t seed, Forecaster forecast,
                                    std::shared_ptr<ForecastModel> model) {
  if (name == "guided")
    return guided_search(std::move(spaces), seed, std::move(forecast), std::move(model));
  if (name == "random") return random_search(std::move(spaces), seed);
  if (name == "grid") return grid_search(std::move(spaces));
  if (name == "evolutionary") return evolutionary_search(std::move(spaces), seed);
  const std::vector<std::string> known = {"guided", "random", "grid", "evolutionary"};
  const std::vector<std::string> near = nearest_names(name, known);
  throw UserError(fmt::format("there is no search \"{}\"\n  searches: {}{}", name, join(known),
                              near.empty() ? "" : "\n  try: " + near.front()));
}

}  // namespace tenon
