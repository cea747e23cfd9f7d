#include <tenon/ir/intrinsic.h>
#include <tenon/ir/program_json.h>
#include <tenon/support/error.h>
#include <tenon/support/foreign_text.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

std::string declaration(const Intrinsic& intrinsic) {
  Json ways = Json::array();
  for (const IntrinsicImplementation& code : intrinsic.implementations)
    ways.push_back({{"features", code.features},
                    {"lanes", code.lanes},
                    {"llvm", code.llvm},
                    {"operands", code.operands}});
  return Json{{"name", intrinsic.name},
              {"formula", Json::parse(to_json(intrinsic.formula))},
              {"implementations", std::move(ways)}}
      .dump();
}

Intrinsic read(const Json& json) {
  Intrinsic out;
  out.name = json.at("name").get<std::string>();
  out.formula = program_from_json(json.at("formula").dump());
  for (const Json& line : json.at("implementations"))
    out.implementations.push_back({line.at("features").get<std::vector<std::string>>(),
                                   line.at("lanes").get<int>(), line.at("llvm").get<std::string>(),
                                   line.at("operands").get<std::vector<std::string>>()});
  return out;
}

}  // namespace

std::string to_json(const Intrinsic& intrinsic) {
  std::string own = declaration(intrinsic);
  for (const auto& known : intrinsics())
    if (known->name == intrinsic.name && (known.get() == &intrinsic || declaration(*known) == own))
      return Json(known->name).dump();
  return own;
}

std::shared_ptr<const Intrinsic> intrinsic_from_json(std::string_view text) {
  if (json_depth(text) > kMaxJsonDepth)
    throw UserError(fmt::format("intrinsic: nested deeper than {}", kMaxJsonDepth));
  try {
    const Json json = Json::parse(text);
    if (json.is_string()) return find_intrinsic(json.get<std::string>());
    auto out = std::make_shared<const Intrinsic>(read(json));
    parts_of(*out);
    return out;
  } catch (const Json::exception& e) {
    throw UserError(fmt::format("intrinsic: this is no declaration in JSON: {}", e.what()));
  }
}

}  // namespace tenon
