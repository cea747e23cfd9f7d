/* The C interface between generated code and whoever calls it. Plain C: a shipped library needs no
 * more. */
#ifndef TENON_RUNTIME_KERNEL_ABI_H
#define TENON_RUNTIME_KERNEL_ABI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs iterations [begin, end) of a parallel loop. `worker` is in [0, workers of the pool) and no
   two calls with the same worker run at the same time: it picks the slice of per-worker workspace.
 */
typedef void (*tenon_task)(void* context, int64_t begin, int64_t end, int32_t worker);

/* Calls `task` on disjoint ranges that cover [0, count) exactly, possibly on several threads at
   once, and returns when all are done. */
typedef void (*tenon_parallel_for)(void* pool, int64_t count, tenon_task task, void* context);

/* A compiled kernel.
   args       one pointer per parameter, in the order of the formula's inputs, then its outputs;
   element-aligned dims       values of the symbolic extents (NULL when there are none) workspace
   64-byte aligned, at least the bytes the kernel asked for at this number of workers returns    0,
   or a code from enum tenon_status */
typedef int32_t (*tenon_kernel)(void* const* args, const int64_t* dims, void* workspace,
                                tenon_parallel_for parallel_for, void* pool);

/* Bytes of workspace that a call with these dims needs: bytes[0] once and bytes[1] for each worker.
   Kernels whose temporaries have symbolic extents come with such a function. */
typedef void (*tenon_workspace)(const int64_t* dims, int64_t* bytes);

enum tenon_status { TENON_OK = 0 };

#ifdef __cplusplus
}
#endif
#endif
