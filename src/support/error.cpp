#include <tenon/support/error.h>

namespace tenon {

void fail_check(const char* condition, const char* file, int line, const std::string& message) {
  std::string path = file;
  for (const char* root : {"/src/", "/autotvm/", "/kernels/"}) {
    if (size_t at = path.rfind(root); at != std::string::npos) {
      path = path.substr(at + 1);
      break;
    }
  }
  throw InternalError(
      fmt::format("internal error at {}:{}: {} (check: {})", path, line, message, condition));
}

}  // namespace tenon
