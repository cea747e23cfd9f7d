#pragma once
#include <vector>

namespace tenon {

/// The middle value (mean of the two middle ones of an even count); NaN for none.
double median(std::vector<double> values);

/// Median absolute deviation from the median: the noise of samples with outliers; NaN for none.
double median_deviation(const std::vector<double>& values);

}  // namespace tenon
