// Lesson 4: importing and running a network.
//
//   lesson_04_network small.onnx x=1x2x6x6
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tenon;

int main(int argc, char** argv) {
  if (argc != 3 || std::string(argv[2]).find('=') == std::string::npos) {
    std::printf("usage: %s MODEL.onnx INPUT=1x3x48x192\n", argv[0]);
    return 2;
  }
  try {
    const std::string shape_text = argv[2], name = shape_text.substr(0, shape_text.find('='));
    std::vector<int64_t> shape;
    for (size_t at = name.size() + 1; at < shape_text.size();) {
      size_t used = 0;
      shape.push_back(std::stoll(shape_text.substr(at), &used));
      at += used + 1;
    }
    NetworkOptions options;
    options.bindings.shapes[name] = shape;
    Network net = load(argv[1], options);
    tune(net, {.time_s = 5, .log = "tuning_logs/lesson_04.jsonl"});
    auto out = net.run({{name, random(f32, shape)}});
    for (const auto& [output, array] : out) {
      std::printf("%s: %lld elements, the first is %f\n", output.c_str(),
                  static_cast<long long>(array.size()), array.to_doubles().at(0));
    }
    return 0;
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
