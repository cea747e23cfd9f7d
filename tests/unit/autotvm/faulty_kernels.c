/* C[i] = sum over k of A[i,k], for 37 x 130 floats: once right, then in the ways a kernel can fail.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tenon/runtime/kernel_abi.h>
#include <unistd.h>

enum { ROWS = 37, COLUMNS = 130 };

#define KERNEL(name)                                                    \
  int32_t name(void* const* args, const int64_t* dims, void* workspace, \
               tenon_parallel_for parallel_for, void* pool)
#define IGNORE_THE_REST (void)dims, (void)workspace, (void)parallel_for, (void)pool

static void sum_rows(const float* a, float* c, int rows) {
  for (int i = 0; i < rows; ++i) {
    c[i] = 0;
    for (int k = 0; k < COLUMNS; ++k) c[i] += a[i * COLUMNS + k];
  }
}

KERNEL(right) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  return 0;
}

/* The same, 200 times over. */
KERNEL(slow) {
  IGNORE_THE_REST;
  for (int k = 0; k < 200; ++k) {
    sum_rows(args[0], args[1], ROWS);
    __asm__ volatile("" ::: "memory");
  }
  return 0;
}

KERNEL(wrong) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  ((float*)args[1])[ROWS - 1] += 0.5f;
  return 0;
}

/* Never writes its last element. */
KERNEL(lazy) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS - 1);
  return 0;
}

KERNEL(null_pointer) {
  IGNORE_THE_REST;
  (void)args;
  *(volatile int*)0 = 1;
  return 0;
}

KERNEL(hang) {
  IGNORE_THE_REST;
  (void)args;
  for (;;) __asm__ volatile("" ::: "memory");
}

/* One element too many: invisible on ordinary memory. */
KERNEL(overrun) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  ((volatile float*)args[1])[ROWS] = 0;
  return 0;
}

KERNEL(underrun) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  float before = ((volatile float*)args[0])[-1];
  if (before == 12345.0f) ((float*)args[1])[0] = before;
  return 0;
}

KERNEL(writes_input) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  ((volatile float*)args[0])[5] = 0;
  return 0;
}

KERNEL(aborts) {
  IGNORE_THE_REST;
  (void)args;
  abort();
}

KERNEL(returns_status) {
  IGNORE_THE_REST;
  (void)args;
  return 3;
}

/* Takes memory until there is none. */
KERNEL(hungry) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  for (;;) {
    void* more = malloc(64 << 20);
    if (!more) return 12;
    memset(more, 1, 64 << 20);
  }
}

/* Right, and leaves a process behind that keeps a core busy. */
KERNEL(forks) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  if (fork() == 0)
    for (;;) __asm__ volatile("" ::: "memory");
  return 0;
}

/* The same, from a grandchild in a session of its own, which nobody waits for. */
KERNEL(daemonizes) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  if (fork() == 0) {
    setsid();
    if (fork() == 0)
      for (;;) __asm__ volatile("" ::: "memory");
    _exit(0);
  }
  return 0;
}

/* Two processes come back where one went in. */
KERNEL(doubles) {
  IGNORE_THE_REST;
  sum_rows(args[0], args[1], ROWS);
  fork();
  return 0;
}

/* Right, and keeps 12 MB that it never gives back. */
KERNEL(leaks) {
  IGNORE_THE_REST;
  static int calls;
  sum_rows(args[0], args[1], ROWS);
  if (calls++ == 0) {
    void* kept = mmap(0, 12 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kept != MAP_FAILED) memset(kept, 1, 12 << 20);
  }
  return 0;
}

/* Ends the process that measures it, without a word. */
KERNEL(kills) {
  IGNORE_THE_REST;
  (void)args;
  kill(getpid(), SIGKILL);
  return 0;
}
