#include <tenon/compile/compile.h>
#include <tenon/driver/version.h>
#include <tenon/records/record.h>

namespace tenon {

std::string version_text() {
  return fmt::format("tenon {} (commit {}), LLVM {}, log schema {}", TENON_VERSION, TENON_COMMIT,
                     code_generator_version(), kRecordSchema);
}

}  // namespace tenon
