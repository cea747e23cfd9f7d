#pragma once
#include <tenon/schedule/schedule.h>

#include "schedule/legality.h"

namespace tenon {

/// A step that breaks one rule, and what its message says. Each row of schedule/legality_rules.h
/// has at least one.
struct RuleRow {
  Rule rule;
  Schedule before;
  Primitive step;
  std::vector<std::string> telling;  // parts of the text
};

std::vector<RuleRow> loop_rows();
std::vector<RuleRow> compute_at_rows();
std::vector<RuleRow> reverse_compute_at_rows();
std::vector<RuleRow> buffer_rows();

// Programs that rows share.

Schedule matmul_schedule(int64_t m = 12, int64_t n = 20, int64_t depth = 6);
/// P[a] = 2 X[a] (34), C[i] = P[i] + P[i+2] (32), D[l] = C[l] + 1.
Schedule chain_schedule();
/// C = A B, D = max(C, 0).
Schedule relu_schedule(int64_t m = 8, int64_t n = 8, int64_t depth = 8);
/// R[y] = sum of rows of X, D[i,j] = X[i,j] - R[i].
Schedule rows_schedule();
/// P[a] = X[a] and Q[b] = P[b], 9 points.
Schedule copies_schedule();
/// The loop's extent is a variable n.
Schedule with_symbolic(const Schedule& s, const std::string& loop);
/// The loop of that name, with all inside, is run again 4 times by a loop "t" round it.
Schedule repeated(const Schedule& s, const std::string& loop);

}  // namespace tenon
