#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tenon {

/// Called first in a child process: it ends with the process that started it, and Ctrl-C at the
/// terminal is left to that one.
void leave_with_parent(pid_t parent);

/// Address space: what the process has now and `more_bytes`. Nothing under a sanitizer, whose
/// shadow memory needs all of it.
void limit_memory(int64_t more_bytes);

/// Processor time: what was used so far and `more_s`; a last resort for a child whose parent no
/// longer watches it.
void limit_cpu(double more_s);

/// No core files, and no large files.
void limit_files();

/// Memory of this process alone that is resident: without the pages of files, which the system
/// takes away and brings back as it likes.
int64_t own_bytes();

/// Ends every process that this one has left, also those that others left to it (a subreaper).
void end_descendants();

/// Waits for the child and says how it ended: "crashed (SIGSEGV, ...)" or "exited with 3". One that
/// has not ended after `patience_s` is killed.
std::string reap(pid_t child, double patience_s = 5);

}  // namespace tenon
