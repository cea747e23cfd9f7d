#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>

namespace tenon {

/// One way to run an intrinsic's formula on `lanes` lanes with a single LLVM intrinsic.
struct IntrinsicImplementation {
  std::vector<std::string> features;  // all needed of the target, in LLVM's spelling
  int lanes = 0;
  std::string llvm;  // "llvm.x86.avx512.vpdpbusd.512"
  /// Names of the formula's tensors in the order of LLVM's arguments: each input once. A reduction
  /// that leaves its output out is combined with the old value after the call.
  std::vector<std::string> operands;

  bool operator==(const IntrinsicImplementation&) const = default;
};

/// An operation that machines have, as the formula of what it computes and the ways to call it.
/// The formula is a program of one stage over one spatial axis (the lanes; how many is each
/// implementation's business) and at most one reduction axis of constant extent (what a lane
/// combines); each input is indexed by all axes in that order:
///
///     C[i] += i32(A[i, r]) * i32(B[i, r])      i in lanes, r in 0..4
///
/// or a product of tiles: over rows, lanes, steps and what a lane combines in each step,
///
///     C[i, j] += i32(A[i, k, r]) * i32(B[j, k, r])      i in 16 rows, j in 16 lanes, k in 16 steps
///
/// which runs on whole numbers of tiles, all sums kept until the last step.
///
/// A target that has no implementation runs the formula itself.
struct Intrinsic {
  std::string name;
  Program formula;
  std::vector<IntrinsicImplementation> implementations;
};

/// The formula taken apart. Pointers live as long as the intrinsic.
struct IntrinsicParts {
  const Stage* stage = nullptr;
  std::vector<Buffer> inputs;  // in the order of the formula's parameters
  Buffer output;
  int64_t group = 1;  // elements of an input that one lane combines
  int64_t rows = 0, lanes = 0, steps = 0;  // of a tile; 0: no product of tiles

  bool is_tile() const { return rows > 0; }
};
/// UserError where the formula or an implementation is not of the form above.
IntrinsicParts parts_of(const Intrinsic& intrinsic);

/// Whether elements of value 0 change nothing in the formula's reduction: then a group may be
/// padded.
bool zeros_are_neutral(const Intrinsic& intrinsic);

/// The call on vectors: `args` are the old value (of a reduction) and the inputs.
Expr intrinsic_call(std::shared_ptr<const Intrinsic> intrinsic, int implementation,
                    std::vector<Expr> args);
/// The formula on those vectors as shuffles and arithmetic.
Expr expand_intrinsic(const IntrinsicCall& call);
Expr expand_intrinsic(const Intrinsic& intrinsic, const std::vector<Expr>& args);

/// The intrinsics that Tenon brings along.
const std::vector<std::shared_ptr<const Intrinsic>>& intrinsics();
/// The one of that name; UserError with the nearest names.
std::shared_ptr<const Intrinsic> find_intrinsic(std::string_view name);

/// JSON: the name as a string for one of intrinsics(), else an object with the whole declaration.
std::string to_json(const Intrinsic& intrinsic);
/// The inverse; UserError in words.
std::shared_ptr<const Intrinsic> intrinsic_from_json(std::string_view text);

/// An intrinsic as an argument: a declaration, or the name of one of intrinsics(). Compared by
/// content.
class IntrinsicRef {
 public:
  IntrinsicRef() = default;
  IntrinsicRef(std::shared_ptr<const Intrinsic> intrinsic) : intrinsic_(std::move(intrinsic)) {}
  IntrinsicRef(Intrinsic intrinsic);
  IntrinsicRef(const char* name) : intrinsic_(find_intrinsic(name)) {}
  IntrinsicRef(const std::string& name) : intrinsic_(find_intrinsic(name)) {}

  bool defined() const { return intrinsic_ != nullptr; }
  const std::shared_ptr<const Intrinsic>& get() const { return intrinsic_; }
  const Intrinsic* operator->() const { return intrinsic_.get(); }
  const Intrinsic& operator*() const { return *intrinsic_; }
  bool operator==(const IntrinsicRef& other) const;

 private:
  std::shared_ptr<const Intrinsic> intrinsic_;
};

}  // namespace tenon
