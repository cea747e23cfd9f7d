#pragma once
#include <tenon/support/dtype.h>

#include <string>

namespace tenon {

/// What sets one C-like kernel language apart from the next.
struct Dialect {
  std::string prelude;           // lines before everything else
  std::string kernel;            // "__kernel void"
  std::string function;          // before a helper function: "static inline "
  std::string global, shared;    // before a type: "__global ", "__local "
  std::string barrier;           // statement that all threads of a block wait at
  std::string (*type)(DType);    // of a value in memory: "uchar" for bool
  std::string (*block_id)(int);  // along axis 0, 1, 2
  std::string (*thread_id)(int);
  std::string (*bits_as)(DType);  // function that reads bits as this type: "as_float"
};

}  // namespace tenon
