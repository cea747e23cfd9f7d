#include "te/combiners.h"

#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <algorithm>

#include "te/checks.h"

namespace tenon {
namespace {

/// Numbers that a combiner is tried on, as its types hold them.
constexpr int64_t kSamples[] = {0, 1, 2, 3, -5, 11, 64, -100};

/// Tuples of samples; some agree in their first element and differ in others.
std::vector<std::vector<Expr>> samples(const Combiner& c) {
  constexpr size_t kCount = std::size(kSamples);
  std::vector<std::vector<Expr>> out;
  for (size_t first = 0; first < kCount; ++first)
    for (size_t apart : {3u, 5u}) {
      std::vector<Expr> tuple;
      for (size_t n = 0; n < c.identity.size(); ++n) {
        const DType t = c.identity[n].dtype();
        const int64_t value = kSamples[(first + apart * n) % kCount];
        tuple.push_back(is_float(t) ? float_imm(static_cast<double>(value), t)
                                    : int_imm(is_bool(t) ? value & 1 : wrap_int(value, t), t));
      }
      out.push_back(std::move(tuple));
    }
  return out;
}

/// Two folded tuples are known to differ.
bool differ(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t n = 0; n < a.size(); ++n) {
    if (as_int(a[n]) && as_int(b[n]) && *as_int(a[n]) != *as_int(b[n])) return true;
    if (as_float(a[n]) && as_float(b[n]) && *as_float(a[n]) != *as_float(b[n])) return true;
  }
  return false;
}

std::string tuple_text(const std::vector<Expr>& values) {
  std::vector<std::string> parts;
  for (const Expr& e : values) parts.push_back(print(e));
  return parts.size() == 1 ? parts[0] : fmt::format("({})", fmt::join(parts, ", "));
}

void check_identity(const std::string& name, const std::vector<Expr>& identity) {
  if (name.empty()) throw UserError("combiner: it needs a name");
  if (identity.empty()) throw UserError(fmt::format("combiner \"{}\": no identity is given", name));
  for (const Expr& e : identity)
    if (!e.defined() || !(e.as<IntImm>() || e.as<FloatImm>()))
      throw UserError(fmt::format("combiner \"{}\": an identity is a literal, {} is none", name,
                                  e.defined() ? print(e) : "an undefined value"));
}

/// What `join` gave, in the combiner's types and over its own variables.
std::vector<Expr> checked_result(const Combiner& c, std::vector<Expr> result) {
  if (result.size() != c.identity.size())
    throw UserError(fmt::format("combiner \"{}\": joining gives {} elements, the identity has {}",
                                c.name, result.size(), c.identity.size()));
  for (size_t n = 0; n < result.size(); ++n) {
    Expr& e = result[n];
    const DType t = c.identity[n].dtype();
    if (e.defined() && (e.as<IntImm>() || e.as<FloatImm>())) e = literal_as(e, t);
    if (!e.defined() || e.dtype() != t)
      throw UserError(fmt::format(
          "combiner \"{}\": element {} of the joined tuple is {}, its "
          "identity is {}",
          c.name, n, e.defined() ? tenon::name(e.dtype()) : "undefined", tenon::name(t)));
    check_constants(fmt::format("combiner \"{}\"", c.name), e);
    walk(e, [&](const Expr& part) {
      if (part.as<Load>() || part.as<Reduce>())
        throw UserError(fmt::format(
            "combiner \"{}\": it joins two partial results and reads no tensor\n  try: put what "
            "each point needs into the source",
            c.name));
      return true;
    });
    for (const Var& v : free_vars(e)) {
      const auto same = [&](const Var& own) { return own.same_as(v); };
      if (std::none_of(c.lhs.begin(), c.lhs.end(), same) &&
          std::none_of(c.rhs.begin(), c.rhs.end(), same))
        throw UserError(fmt::format("combiner \"{}\": it speaks of variable \"{}\" from outside",
                                    c.name, v.name()));
    }
  }
  return result;
}

/// Refuses an identity that changes what it is joined with.
void check_neutral(const Combiner& c, const std::vector<Expr>& x) {
  const std::vector<Expr> joined = combine(c, c.identity, x);
  if (differ(joined, x))
    throw UserError(fmt::format(
        "combiner \"{}\": the identity {} joined with {} gives {}; it should change nothing",
        c.name, tuple_text(c.identity), tuple_text(x), tuple_text(joined)));
}

void check_swapped(const Combiner& c, const std::vector<Expr>& x, const std::vector<Expr>& y) {
  const std::vector<Expr> a = combine(c, x, y), b = combine(c, y, x);
  if (differ(a, b))
    throw UserError(
        fmt::format("combiner \"{}\": {} joined with {} gives {}, and {} the other way round\n  "
                    "try: declare it "
                    "Commutes::no",
                    c.name, tuple_text(x), tuple_text(y), tuple_text(a), tuple_text(b)));
}

void check_grouped(const Combiner& c, const std::vector<Expr>& x, const std::vector<Expr>& y,
                   const std::vector<Expr>& z) {
  const std::vector<Expr> a = combine(c, combine(c, x, y), z), b = combine(c, x, combine(c, y, z));
  if (differ(a, b))
    throw UserError(fmt::format(
        "combiner \"{}\": {}, {} and {} joined from the left give {}, and {} from the "
        "right\n  try: declare it Commutes::no",
        c.name, tuple_text(x), tuple_text(y), tuple_text(z), tuple_text(a), tuple_text(b)));
}

/// Refuses what some samples show to be false of a combiner that is said to commute. Floats round,
/// so nothing is said about how they are grouped.
void check_promises(const Combiner& c) {
  const std::vector<std::vector<Expr>> all = samples(c);
  const bool exact = std::none_of(c.identity.begin(), c.identity.end(),
                                  [](const Expr& e) { return is_float(e.dtype()); });
  for (size_t n = 0; n < all.size(); ++n) {
    check_neutral(c, all[n]);
    for (size_t m = 0; m < n; ++m) check_swapped(c, all[m], all[n]);
  }
  for (size_t n = 0; exact && n < all.size(); n += 3)
    for (size_t m = 0; m < all.size(); m += 3)
      for (size_t k = 0; k < all.size(); k += 5) check_grouped(c, all[n], all[m], all[k]);
}

}  // namespace

Expr literal_as(const Expr& literal, DType t) {
  if (literal.dtype() == t) return literal;
  const std::optional<int64_t> whole = as_int(literal);
  const bool fits =
      whole ? is_float(t) || (is_int(t) && !is_bool(literal.dtype()) &&
                              wrap_int(*whole, t) == *whole && (t != DType::u64 || *whole >= 0))
            : is_float(t);
  if (!fits) throw UserError(fmt::format("the literal {} is no {}", print(literal), name(t)));
  return whole ? (is_float(t) ? float_imm(static_cast<double>(*whole), t) : int_imm(*whole, t))
               : float_imm(*as_float(literal), t);
}

bool changes_by_identity(const Combiner& c) {
  const std::vector<std::vector<Expr>> all = samples(c);
  return std::any_of(all.begin(), all.end(), [&](const std::vector<Expr>& x) {
    return differ(combine(c, x, c.identity), x);
  });
}

std::shared_ptr<const Combiner> tuple_combiner(std::string name, std::vector<Expr> identity,
                                               const JoinTupleFn& join, Commutes commutes) {
  check_identity(name, identity);
  auto c = std::make_shared<Combiner>();
  c->name = std::move(name);
  c->commutative = commutes == Commutes::yes;
  std::vector<Expr> lhs, rhs;
  for (size_t n = 0; n < identity.size(); ++n) {
    const std::string number = identity.size() == 1 ? "" : std::to_string(n);
    c->lhs.emplace_back("lhs" + number, identity[n].type());
    c->rhs.emplace_back("rhs" + number, identity[n].type());
    lhs.emplace_back(c->lhs.back());
    rhs.emplace_back(c->rhs.back());
  }
  c->identity = std::move(identity);
  c->result = checked_result(*c, join(lhs, rhs));
  if (c->commutative) check_promises(*c);
  return c;
}

std::shared_ptr<const Combiner> combiner(std::string name, Expr identity, const JoinFn& join,
                                         Commutes commutes) {
  return tuple_combiner(
      std::move(name), {std::move(identity)},
      [&](const std::vector<Expr>& lhs, const std::vector<Expr>& rhs) {
        return std::vector<Expr>{join(lhs[0], rhs[0])};
      },
      commutes);
}

}  // namespace tenon
