#include <tenon/support/stats.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double median_deviation(const std::vector<double>& values) {
  const double center = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (double v : values) distances.push_back(std::abs(v - center));
  return median(std::move(distances));
}

}  // namespace tenon
