#include "graph/onnx/survey.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cstdlib>
#include <set>

#include "graph/onnx/onnx_operators.h"
#include "graph/onnx/read_tensor.h"
#include "tenon_onnx.pb.h"

namespace tenon {

namespace {

using tenon_onnx::AttributeProto;
using tenon_onnx::NodeProto;

constexpr size_t kMostListed = 50;

bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

char attribute_kind(const AttributeProto& attribute) {
  switch (attribute.type()) {
    case AttributeProto::FLOAT:
      return 'f';
    case AttributeProto::INT:
      return 'i';
    case AttributeProto::STRING:
      return 's';
    case AttributeProto::TENSOR:
      return 't';
    case AttributeProto::FLOATS:
      return 'F';
    case AttributeProto::INTS:
      return 'I';
    case AttributeProto::STRINGS:
      return 'S';
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
      return 'g';
    case AttributeProto::UNDEFINED:
      break;
    default:
      return '?';
  }
  // Files of IR version 1 leave the type out.
  if (attribute.has_f()) return 'f';
  if (attribute.has_i()) return 'i';
  if (attribute.has_s()) return 's';
  if (attribute.has_t()) return 't';
  if (attribute.floats_size() > 0) return 'F';
  if (attribute.ints_size() > 0) return 'I';
  if (attribute.strings_size() > 0) return 'S';
  if (attribute.has_g() || attribute.graphs_size() > 0) return 'g';
  return '?';
}

Attribute default_attribute(const AttributeSpec& spec) {
  if (spec.kind == 'f') return std::strtod(spec.default_text.c_str(), nullptr);
  if (spec.kind == 'i') return *parse_int(spec.default_text);
  TENON_CHECK(spec.kind == 's', "attribute {} has a default of kind {}", spec.name, spec.kind);
  return spec.default_text;
}

class Surveyor {
 public:
  Surveyor(const tenon_onnx::ModelProto& model, const std::string& name,
           const std::filesystem::path& folder)
      : model_(model), name_(name), folder_(folder) {}

  Survey run() {
    find_opset();
    for (const auto& function : model_.functions())
      functions_.insert(function.domain() + ":" + function.name());
    if (model_.graph().sparse_initializer_size() > 0)
      problem("the graph",
              fmt::format("{} sparse initialisers", model_.graph().sparse_initializer_size()));
    for (const auto& initializer : model_.graph().initializer())
      check_type(fmt::format("initialiser \"{}\"", initializer.name()), initializer.data_type());
    for (const auto& input : model_.graph().input()) check_value(input);
    for (const NodeProto& node : model_.graph().node()) survey_node(node);
    if (!problems_.empty()) fail();
    return std::move(survey_);
  }

 private:
  void problem(const std::string& where, const std::string& what) {
    problems_.push_back(where + ": " + what);
  }

  [[noreturn]] void fail() const {
    std::string list;
    for (size_t i = 0; i < problems_.size() && i < kMostListed; ++i) list += "\n  " + problems_[i];
    if (problems_.size() > kMostListed)
      list += fmt::format("\n  and {} more", problems_.size() - kMostListed);
    throw UserError(
        fmt::format("model \"{}\" uses {} thing{} that Tenon does not support:{}\n"
                    "  supported: {} operators of ai.onnx, operator sets {} to {}",
                    name_, problems_.size(), problems_.size() == 1 ? "" : "s", list,
                    onnx_operators().size(), kOldestOpset, kNewestOpset));
  }

  void find_opset() {
    for (const auto& import : model_.opset_import())
      if (is_default_domain(import.domain())) survey_.opset = import.version();
    if (model_.opset_import_size() == 0)
      survey_.opset = 1;  // what IR versions 1 and 2 mean by saying nothing
    if (survey_.opset == 0 && model_.graph().node_size() > 0 && !only_other_domains())
      problem("the model", "it imports no operator set of ai.onnx");
    if (survey_.opset != 0 && (survey_.opset < kOldestOpset || survey_.opset > kNewestOpset))
      problem("the model", fmt::format("operator set {} of ai.onnx", survey_.opset));
  }

  bool only_other_domains() const {
    for (const NodeProto& node : model_.graph().node())
      if (is_default_domain(node.domain())) return false;
    return true;
  }

  void check_type(const std::string& where, int onnx_type) {
    if (!dtype_from_onnx(onnx_type)) problem(where, "element type " + onnx_type_name(onnx_type));
  }

  void check_value(const tenon_onnx::ValueInfoProto& value) {
    const std::string where = fmt::format("input \"{}\"", value.name());
    using tenon_onnx::TypeProto;
    switch (value.type().value_case()) {
      case TypeProto::kTensorType:
        return check_type(where, value.type().tensor_type().elem_type());
      case TypeProto::kSequenceType:
        return problem(where, "a sequence instead of a tensor");
      case TypeProto::kOptionalType:
        return problem(where, "an optional instead of a tensor");
      case TypeProto::kMapType:
        return problem(where, "a map instead of a tensor");
      case TypeProto::kSparseTensorType:
        return problem(where, "a sparse tensor");
      default:
        return problem(where, "it has no tensor type");
    }
  }

  void survey_node(const NodeProto& proto) {
    Node node;
    node.op = proto.op_type();
    node.name = proto.name();
    if (node.name.empty() && proto.output_size() > 0) node.name = proto.output(0);
    const std::string where = fmt::format("node \"{}\" ({})", node.name, qualified(proto));
    if (const OnnxOperator* row = find_row(proto, where)) {
      const size_t before = problems_.size();
      check_counts(*row, proto, where);
      fill_attributes(*row, proto, where, node);
      if (problems_.size() == before && row->refuse) refuse(*row, proto, where, node);
    }
    survey_.nodes.push_back(std::move(node));
  }

  static std::string qualified(const NodeProto& proto) {
    return is_default_domain(proto.domain()) ? proto.op_type()
                                             : proto.domain() + "." + proto.op_type();
  }

  const OnnxOperator* find_row(const NodeProto& proto, const std::string& where) {
    if (functions_.count(proto.domain() + ":" + proto.op_type())) {
      problem(where, "a function that the model defines");
      return nullptr;
    }
    if (!is_default_domain(proto.domain())) {
      problem(where, fmt::format("an operator of domain {}", proto.domain()));
      return nullptr;
    }
    const OnnxOperator* row = find_onnx_operator(proto.op_type());
    if (!row) {
      problem(where, has_subgraph(proto) ? "the operator, which runs a subgraph" : "the operator");
      return nullptr;
    }
    const int64_t oldest = parse_int(split_text(row->versions, ' ')[0]).value();
    if (survey_.opset != 0 && survey_.opset < oldest) {
      problem(where, fmt::format("the operator as of operator set {} (supported from {} on)",
                                 survey_.opset, oldest));
      return nullptr;
    }
    return row;
  }

  static bool has_subgraph(const NodeProto& proto) {
    for (const AttributeProto& attribute : proto.attribute())
      if (attribute_kind(attribute) == 'g') return true;
    return false;
  }

  void check_counts(const OnnxOperator& row, const NodeProto& proto, const std::string& where) {
    const auto check = [&](int count, int least, int most, const char* what) {
      if (count < least || (most != kAnyNumber && count > most))
        problem(where, fmt::format("{} {} (supported: {}{})", count, what, least,
                                   most == least        ? ""
                                   : most == kAnyNumber ? " or more"
                                                        : fmt::format(" to {}", most)));
    };
    check(proto.input_size(), row.min_inputs, row.max_inputs, "inputs");
    check(proto.output_size(), 1, row.max_outputs, "outputs");
    for (int i = 0; i < row.min_inputs && i < proto.input_size(); ++i)
      if (proto.input(i).empty()) problem(where, fmt::format("input {} left out", i));
  }

  void fill_attributes(const OnnxOperator& row, const NodeProto& proto, const std::string& where,
                       Node& node) {
    const std::vector<AttributeSpec> specs = attribute_specs(row);
    for (const AttributeSpec& spec : specs)
      if (!spec.default_text.empty()) node.attributes[spec.name] = default_attribute(spec);
    for (const AttributeProto& attribute : proto.attribute()) {
      const AttributeSpec* spec = nullptr;
      for (const AttributeSpec& known : specs)
        if (known.name == attribute.name()) spec = &known;
      if (!spec) {
        problem(where, fmt::format("attribute {}", attribute.name()));
      } else if (attribute.has_ref_attr_name() || attribute_kind(attribute) != spec->kind) {
        if (!is_empty_list(attribute, *spec))
          problem(where, fmt::format("attribute {} of another type than the standard's",
                                     attribute.name()));
      } else {
        set_attribute(attribute, spec->kind, where, node);
      }
    }
    for (const AttributeSpec& spec : specs)
      if (spec.required && !node.attributes.count(spec.name))
        problem(where, fmt::format("attribute {} left out", spec.name));
  }

  /// A list without entries and without a type is a list that says nothing.
  static bool is_empty_list(const AttributeProto& attribute, const AttributeSpec& spec) {
    return attribute.type() == AttributeProto::UNDEFINED && attribute_kind(attribute) == '?' &&
           (spec.kind == 'I' || spec.kind == 'F');
  }

  void set_attribute(const AttributeProto& from, char kind, const std::string& where, Node& node) {
    Attribute& to = node.attributes[from.name()];
    switch (kind) {
      case 'i':
        to = int64_t{from.i()};
        break;
      case 'f':
        to = static_cast<double>(from.f());
        break;
      case 's':
        to = from.s();
        break;
      case 'I':
        to = std::vector<int64_t>(from.ints().begin(), from.ints().end());
        break;
      case 'F':
        to = std::vector<double>(from.floats().begin(), from.floats().end());
        break;
      case 't':
        if (!dtype_from_onnx(from.t().data_type()))
          check_type(where + ", attribute " + from.name(), from.t().data_type());
        else
          to = array_from_tensor(from.t(), where + ", attribute " + from.name(), folder_);
        break;
      default:
        TENON_CHECK(false, "attribute kind {}", kind);
    }
  }

  void refuse(const OnnxOperator& row, const NodeProto& proto, const std::string& where,
              Node& node) {
    Node seen = node;  // refuse() looks at which outputs are wanted
    for (const std::string& output : proto.output())
      seen.outputs.push_back(output.empty() ? kAbsent : 0);
    const std::string reason = row.refuse(seen, survey_.opset);
    if (!reason.empty()) problem(where, reason);
  }

  const tenon_onnx::ModelProto& model_;
  const std::string& name_;
  const std::filesystem::path& folder_;
  std::set<std::string> functions_;
  std::vector<std::string> problems_;
  Survey survey_;
};

}  // namespace

Survey survey_model(const tenon_onnx::ModelProto& model, const std::string& name,
                    const std::filesystem::path& folder) {
  return Surveyor(model, name, folder).run();
}

}  // namespace tenon
