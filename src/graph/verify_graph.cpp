#include <tenon/graph/graph.h>
#include <tenon/support/error.h>

namespace tenon {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), origin_(graph.values.size()) {}

  void run() {
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.values[i].constant) check_constant(static_cast<ValueId>(i));
    for (ValueId id : graph_.inputs) set_origin(id, "graph input");
    for (const Node& node : graph_.nodes) {
      for (ValueId id : node.inputs)
        if (id != kAbsent) check_use(id, "node \"" + node.name + "\"");
      for (ValueId id : node.outputs)
        if (id != kAbsent) set_origin(id, "node \"" + node.name + "\"");
    }
    for (ValueId id : graph_.outputs) check_use(id, "the graph's outputs");
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InternalError("graph is not well formed: " + message + "\n" + text(graph_));
  }

  void check_range(ValueId id, const std::string& user) const {
    if (id < 0 || static_cast<size_t>(id) >= graph_.values.size())
      fail(fmt::format("{} names value {} of {}", user, id, graph_.values.size()));
  }

  std::string& origin(ValueId id) { return origin_[static_cast<size_t>(id)]; }

  void set_origin(ValueId id, const std::string& from) {
    check_range(id, from);
    if (!origin(id).empty())
      fail(fmt::format("value \"{}\" comes from {} and {}", graph_.value(id).name, origin(id),
                       from));
    origin(id) = from;
    check_known(id);
  }

  void check_constant(ValueId id) {
    set_origin(id, "a constant");
    const Value& value = graph_.value(id);
    if (value.type != value.constant->dtype() || !value.dims ||
        value.shape() != value.constant->shape())
      fail(fmt::format("constant \"{}\" has another type or shape than its array", value.name));
  }

  void check_use(ValueId id, const std::string& user) {
    check_range(id, user);
    if (origin(id).empty())
      fail(fmt::format("{} reads \"{}\" before anything gives it", user, graph_.value(id).name));
  }

  void check_known(ValueId id) const {
    if (graph_.opset != 0) return;
    const Value& value = graph_.value(id);
    bool known = value.type.has_value() && value.dims.has_value();
    if (known)
      for (const Dim& dim : *value.dims) known = known && dim.known() && dim.extent >= 0;
    if (!known) fail(fmt::format("type or shape of \"{}\" is not known", value.name));
  }

  const Graph& graph_;
  std::vector<std::string> origin_;
};

}  // namespace

void verify_graph(const Graph& graph) { Verifier(graph).run(); }

}  // namespace tenon
