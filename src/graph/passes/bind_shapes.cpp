#include <tenon/graph/passes.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {

namespace {

std::string declared_text(const Value& value) {
  if (!value.dims) return "any shape";
  std::vector<std::string> parts;
  for (const Dim& dim : *value.dims)
    parts.push_back(dim.known() ? fmt::format("{}", dim.extent) : dim.symbol);
  return parts.empty() ? "scalar" : "[" + join(parts, ", ") + "]";
}

/// "1x3x48x192" with a ? for each extent that is open.
std::string shape_pattern(const Value& value) {
  if (!value.dims) return "1x3x48x192";
  std::vector<std::string> parts;
  for (const Dim& dim : *value.dims)
    parts.push_back(dim.known() ? fmt::format("{}", dim.extent) : "?");
  return join(parts, "x");
}

ValueId find_input(const Graph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (ValueId id : graph.inputs) {
    if (graph.value(id).name == name) return id;
    known.push_back(graph.value(id).name);
  }
  const std::vector<std::string> near = nearest_names(name, known);
  throw UserError(fmt::format("model \"{}\" has no input \"{}\"; its inputs: {}{}", graph.name,
                              name, join(known), near.empty() ? "" : "\n  try: " + near[0]));
}

/// Extents by dimension name.
using Symbols = std::map<std::string, int64_t>;

void bind_input(Value& value, const std::vector<int64_t>& shape, Symbols& symbols) {
  for (int64_t extent : shape)
    if (extent < 0)
      throw UserError(fmt::format("input \"{}\": extent {} is negative", value.name, extent));
  if (!value.dims) {
    value.dims = Dims(shape.begin(), shape.end());
    return;
  }
  const auto refuse = [&](const std::string& rule) {
    throw UserError(fmt::format("input \"{}\": {}\n  declared {}, given {}", value.name, rule,
                                declared_text(value), shape_text(shape)));
  };
  if (shape.size() != value.dims->size())
    refuse(fmt::format("it has rank {}, the shape given has {}", value.dims->size(), shape.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    const Dim& dim = (*value.dims)[d];
    if (dim.known() && dim.extent != shape[d])
      refuse(fmt::format("dimension {} is {} in the model, not {}", d, dim.extent, shape[d]));
    if (dim.known()) continue;
    const auto [bound, fresh] = symbols.emplace(dim.symbol, shape[d]);
    if (!fresh && bound->second != shape[d])
      refuse(fmt::format("dimension \"{}\" is {} already, not {}", dim.symbol, bound->second,
                         shape[d]));
  }
}

void apply_symbols(Value& value, const Symbols& symbols) {
  if (!value.dims) return;
  for (Dim& dim : *value.dims) {
    auto found = symbols.find(dim.symbol);
    if (!dim.known() && found != symbols.end()) dim = Dim(found->second);
  }
}

void check_all_bound(const Graph& graph) {
  std::vector<std::string> open, options;
  for (ValueId id : graph.inputs) {
    const Value& value = graph.value(id);
    const bool bound = value.dims && std::all_of(value.dims->begin(), value.dims->end(),
                                                 [](const Dim& dim) { return dim.known(); });
    if (bound) continue;
    open.push_back(fmt::format("{} ({})", value.name, declared_text(value)));
    options.push_back(fmt::format("--shape {}={}", value.name, shape_pattern(value)));
  }
  if (!open.empty())
    throw UserError(fmt::format(
        "model \"{}\": the shape of {} is open; every extent must be known before compiling\n"
        "  try: {} (a number for each ?)",
        graph.name, join(open), join(options, " ")));
}

}  // namespace

Graph bind_shapes(Graph graph, const InputBindings& bindings) {
  Symbols symbols;
  for (const auto& [name, shape] : bindings.shapes)
    bind_input(graph.value(find_input(graph, name)), shape, symbols);
  for (const auto& [name, array] : bindings.values) {
    const ValueId id = find_input(graph, name);
    Value& value = graph.value(id);
    if (value.type != array.dtype())
      throw UserError(fmt::format("input \"{}\" is {} in the model, the array given is {}", name,
                                  tenon::name(*value.type), tenon::name(array.dtype())));
    bind_input(value, array.shape(), symbols);
    value.dims = Dims(array.shape().begin(), array.shape().end());
    value.constant = array;
    graph.inputs.erase(std::find(graph.inputs.begin(), graph.inputs.end(), id));
  }
  for (ValueId id : graph.inputs) apply_symbols(graph.value(id), symbols);
  check_all_bound(graph);
  return graph;
}

}  // namespace tenon
