#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <set>
#include <unordered_map>

#include "graph/onnx/read_model.h"
#include "graph/onnx/read_tensor.h"
#include "graph/onnx/survey.h"
#include "tenon_onnx.pb.h"

namespace tenon {

namespace {

/// Names in exporters' files that stand for "some extent" and not for one shared by several
/// dimensions.
bool is_anonymous(const std::string& name) { return name.empty() || name == "?" || name == "None"; }

class Importer {
 public:
  Importer(const tenon_onnx::ModelProto& model, const std::string& name,
           const std::filesystem::path& folder)
      : model_(model), name_(name), folder_(folder) {}

  Graph run(Survey survey) {
    graph_.name = model_.graph().name();
    graph_.opset = survey.opset;
    for (const auto& tensor : model_.graph().initializer()) add_initialiser(tensor);
    for (const auto& input : model_.graph().input())
      if (!initialisers_.count(input.name())) add_input(input);
    for (int i = 0; i < model_.graph().node_size(); ++i)
      add_node(model_.graph().node(i), std::move(survey.nodes[static_cast<size_t>(i)]));
    for (const auto& output : model_.graph().output())
      graph_.outputs.push_back(find(output.name(), "the graph's outputs"));
    if (graph_.outputs.empty()) fail("the graph has no outputs");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    throw UserError(fmt::format("model error in \"{}\": {}", name_, rule));
  }

  ValueId define(const std::string& name, Value value, const std::string& origin) {
    if (name.empty()) fail(origin + " has no name");
    value.name = name;
    const ValueId id = graph_.add_value(std::move(value));
    if (!ids_.emplace(name, id).second)
      fail(fmt::format("{} defines \"{}\", which exists already", origin, name));
    return id;
  }

  ValueId find(const std::string& name, const std::string& user) const {
    auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    std::vector<std::string> known;
    for (const Value& value : graph_.values) known.push_back(value.name);
    const std::vector<std::string> near = nearest_names(name, known);
    fail(fmt::format("{} reads \"{}\", which nothing ahead of it defines{}", user, name,
                     near.empty() ? "" : "; nearest: " + join(near)));
  }

  void add_initialiser(const tenon_onnx::TensorProto& tensor) {
    const std::string where = fmt::format("initialiser \"{}\" of \"{}\"", tensor.name(), name_);
    Array array = array_from_tensor(tensor, where, folder_);
    const Dims dims(array.shape().begin(), array.shape().end());
    define(tensor.name(), {"", array.dtype(), dims, array}, "an initialiser");
    initialisers_.insert(tensor.name());
  }

  void add_input(const tenon_onnx::ValueInfoProto& input) {
    const auto& type = input.type().tensor_type();
    Value value{"", dtype_from_onnx(type.elem_type()), {}, {}};
    if (type.has_shape()) value.dims = dims_of(type.shape(), input.name());
    graph_.inputs.push_back(define(input.name(), std::move(value), "an input"));
  }

  static Dims dims_of(const tenon_onnx::TensorShapeProto& shape, const std::string& input) {
    Dims dims;
    for (const auto& dim : shape.dim()) {
      if (dim.has_dim_value() && dim.dim_value() >= 0)
        dims.push_back(Dim(dim.dim_value()));
      else if (dim.has_dim_param() && !is_anonymous(dim.dim_param()))
        dims.push_back(Dim(dim.dim_param()));
      else
        dims.push_back(Dim(fmt::format("{}.{}", input, dims.size())));
    }
    return dims;
  }

  void add_node(const tenon_onnx::NodeProto& proto, Node node) {
    const std::string where = fmt::format("node \"{}\" ({})", node.name, node.op);
    for (const std::string& name : proto.input())
      node.inputs.push_back(name.empty() ? kAbsent : find(name, where));
    for (const std::string& name : proto.output())
      node.outputs.push_back(name.empty() ? kAbsent : define(name, {}, where));
    graph_.nodes.push_back(std::move(node));
  }

  const tenon_onnx::ModelProto& model_;
  const std::string& name_;
  const std::filesystem::path& folder_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  std::set<std::string> initialisers_;
};

}  // namespace

Graph parse_onnx(const std::string& bytes, const std::string& name,
                 const std::filesystem::path& folder) {
  tenon_onnx::ModelProto model;
  decode_model(bytes, name, model);
  return Importer(model, name, folder).run(survey_model(model, name, folder));
}

Graph load_onnx(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return parse_onnx(read_file_bytes(path, "model"), path.string(), folder);
}

}  // namespace tenon
