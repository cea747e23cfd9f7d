#pragma once
#include <tenon/ir/visit.h>
#include <tenon/schedule/schedule.h>

#include "choices.h"

namespace tenon {

/// What a step is drawn from: a schedule, and one of its stages.
struct StepDraw {
  const Schedule& schedule;
  Choices& choices;
  std::vector<StagePath> stages;
  const StagePath& path;  // one of `stages`
  bool often = false;     // the primitive is a favourite: rare forms of it are drawn too

  const std::string& stage() const { return path.stage->name; }
  /// Name of a loop round the stage.
  std::string loop() const { return loop_of(path); }
  std::string loop_of(const StagePath& of) const;
};

/// How steps of one primitive are drawn: on stages and loops that exist, legal or not.
struct StepKind {
  const char* primitive;
  int weight;       // among all steps
  bool structural;  // it changes the tree; the others are marks, drawn more at the end
  Primitive (*make)(StepDraw&);
};
/// One line adds a primitive.
const std::vector<StepKind>& step_kinds();

/// What is drawn more often in one program; may be empty.
struct Favourites {
  std::vector<const StepKind*> steps;
  std::string stage;
};

/// Any step; in the marks' turn one that only marks.
Primitive random_step(const Schedule& s, Choices& choices, bool marks = false,
                      const Favourites& favourites = {});

/// The same without memory of what was drawn.
Primitive random_step(const Schedule& s, Rng& rng);

bool is_structural(const Primitive& primitive);

}  // namespace tenon
