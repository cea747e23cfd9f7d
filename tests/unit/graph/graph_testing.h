#pragma once
#include <tenon/graph/graph.h>
#include <tenon/graph/passes.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tenon_onnx.pb.h"

namespace tenon {

/// Computes canonical nodes of few elements with plain loops over indices: an oracle that shares
/// nothing with the formulas. Covers what shape chains and the tests here need; fails the test for
/// the rest.
Array evaluate_plainly(const Graph& graph, const Node& node);

/// Runs a canonical graph node by node with evaluate_plainly.
std::vector<Array> run_plainly(const Graph& graph, const std::vector<Array>& inputs);

/// The text of the UserError that `f` throws; fails the test when it throws none or another one.
std::string user_error(const std::function<void()>& f);

/// Models written in a line or two.
class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 13);
  ModelBuilder& input(const std::string& name, DType type, const std::vector<int64_t>& shape);
  ModelBuilder& symbolic(const std::string& name, const std::vector<std::string>& dims);  // f32
  ModelBuilder& integers(const std::string& name,
                         const std::vector<int64_t>& values);  // initialiser, rank 1
  ModelBuilder& floats(const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<float>& values);
  /// A node of which the last call of `set` changes an attribute.
  ModelBuilder& node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs);
  ModelBuilder& set(const std::string& name, int64_t value);
  ModelBuilder& set(const std::string& name, const char* value);
  ModelBuilder& set_real(const std::string& name, float value);
  ModelBuilder& set(const std::string& name, const std::vector<int64_t>& values);
  ModelBuilder& output(const std::string& name);
  tenon_onnx::ModelProto& proto() { return model_; }
  std::string bytes() const { return model_.SerializeAsString(); }
  Graph load() const;
  /// load, bind `bindings`, resolve with evaluate_plainly, verify.
  Graph resolve(const InputBindings& bindings = {}) const;

 private:
  tenon_onnx::AttributeProto* attribute(const std::string& name);
  tenon_onnx::ModelProto model_;
};

/// An empty folder for one test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Where scripts/fetch_test_data.sh put its files.
std::filesystem::path test_data();

}  // namespace tenon
