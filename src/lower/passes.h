#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

namespace tenon {

// The passes of lower(), in the order they run; each is one file of its name. All map a program to
// one that means the same (interpreter before == after). lower.cpp is the table of contents.

/// Gives each attached init a nest of its own, directly above the outermost loop that binds one of
/// the stage's reduce axes, over copies (marks and notes kept) of the loops inside it that bind
/// spatial axes.
///
///     for i                               for i
///       for k  reduce                       for j  vectorize
///         for j  vectorize          ->        C.init: C[i, j] = 0
///           C[i, j] += A[i, k]*B[k, j]      for k  reduce
///                                             for j  vectorize
///                                               C[i, j] += A[i, k]*B[k, j]
Program expand_inits(const Program& program);

/// Stage leaves become stores under their guards, the axes' variables replaced by their bindings. A
/// reduction of a tuple reads all elements before it writes one.
///
///     stage C (i := i.o*6 + i.i, k := k)        if i.o*6 + i.i < 100
///       guard i.o*6 + i.i < 100           ->      C[i.o*6 + i.i] = C[i.o*6 + i.i] + A[i.o*6 + i.i,
///       k] C[i] += A[i, k]
Program lower_stages(const Program& program);

/// Which buffers compact_buffers() looks at: a thread's own ones must wait for bind_threads().
enum class Memory : uint8_t { all, of_block, of_thread };

/// Shrinks each allocated buffer to the box that is touched inside its Allocate; indices become
/// relative to the box. In a register buffer the dimension that vectorised loops run along goes
/// last and is padded to whole vectors. UserError for a register buffer of unknown size or above
/// 128 vectors.
///
///     allocate T[1000] register                       allocate T[6, 64] register
///       for i.i in 0..6   for j.i in 0..50      ->      for i.i in 0..6   for j.i in 0..50
///         T[i.o*6 + i.i, j.o*50 + j.i] = ..               T[i.i, j.i] = ..
Program compact_buffers(const Program& program, const Target& target, Memory which = Memory::all);

/// For GPUs: each nest at the root becomes code that all threads of a block run. Thread loops go
/// outermost, inside the block loops, with the largest extent that a stage has; the leaves are
/// guarded where threads are spare; memory of the block is allocated outside them. A barrier stands
/// where a thread may read or overwrite what another has touched since the last one, never under a
/// condition that differs between threads. UserError where a barrier could not be reached by all.
///
///     for b in 0..4  block_x                for b in 0..4  block_x
///       allocate S[18] shared                 allocate S[18] shared
///       for t in 0..18  thread_x                for thread_x in 0..18  thread_x
///         S[t] = A[b*16 + t]          ->          S[thread_x] = A[b*16 + thread_x]
///       for t in 0..16  thread_x                  barrier
///         C[b*16 + t] = S[t] + S[t + 2]           if thread_x < 16
///                                                   C[b*16 + thread_x] = ...
Program bind_threads(const Program& program);

/// Carries out the notes prefetch(B)=d: at the top of the loop's body, inside the buffers that it
/// allocates, each cache line is prefetched of the box of B that the body touches d iterations
/// later. Nothing where no box is known, or B is in registers or lives inside the loop.
///
///     for k in 0..64  prefetch(B)=4            for k in 0..64
///       for j in 0..32                  ->       for line in 0..2  unroll
///         C[j] += A[k]*B[k, j]                     prefetch B[k + 4, line*16]
///                                                for j in 0..32 ...
Program issue_prefetches(const Program& program);

/// Carries out the notes double_buffer(T)=1: the parts of the loop's body that fill T run one
/// iteration ahead, into the other one of two copies. InternalError where the schedule's check let
/// a loop pass whose body does not allocate and fill T itself.
///
///     for x in 0..n  double_buffer(T)=1        allocate T[2, f]
///       allocate T[f]                          fill T[0, ..] for x = 0   if 0 < n
///       fill T                          ->     for x in 0..n
///       work on T                                fill T[(x + 1)%2, ..] for x + 1   if x + 1 < n
///                                                work on T[x%2, ..]
Program double_buffers(const Program& program);

/// Splits loops where a guard (or, under a loop with the note "partition", the condition of a
/// select) holds for all inner iterations, so that the body has no predicate and the extents in the
/// tails are constants.
///
///     for i.o in 0..17                          for i.o in 0..16
///       for i.i in 0..6  unroll                   for i.i in 0..6  unroll
///         if i.o*6 + i.i < 100          ->          S
///           S                                   for i.i in 0..4  unroll
///                                                 S[i.o := 16]
///
/// A parallel loop stays one loop with a uniform branch at its top instead of running the tail
/// after a barrier; quotients and remainders of a fused loop become Lets with ranges and branch
/// likewise. A vectorised loop is only trimmed. Stops splitting when the copies would exceed
/// `max_statements`.
Program partition_loops(const Program& program, int64_t max_statements);

/// Multi-dimensional accesses become one i64 index: row-major, or the buffer's layout, rows padded
/// as its aligns ask.
///
///     A[i, j + 1]  of A[100, 64]     ->     A[i*64 + j + 1]  of A[6400]
Program flatten_buffers(const Program& program);

/// Loops marked vectorize become chunks of whole vectors; see vectorize_loops.cpp. UserError in
/// words for what cannot run on vectors. Also gives loads that stand under one side of a select
/// that side's condition as mask.
///
///     for j in 0..40  vectorize         for j.v in 0..2  unroll
///       C[j] = A[j] * s           ->      C[ramp(j.v*16, 1, 16)] = A[ramp(j.v*16, 1, 16)] *
///       broadcast(s, 16)
///                                       C[ramp(32, 1, 16)] if mask = A[..] if mask * broadcast(s,
///                                       16)
Program vectorize_loops(const Program& program, const Target& target);

/// Refuses vector code that registers cannot hold: each access of a register buffer must be one
/// whole vector (or one scalar) of the same lanes as all others, at an element known once the
/// unrolled loops are, by the thread that allocated it. UserError naming the buffer and the access.
void check_registers(const Program& program);

/// Writes exp, log, tanh, ... as arithmetic on scalars and vectors alike; accuracy is stated per
/// function. Where the target multiplies by 2^n in one instruction, a call of ldexp stays.
Program expand_math(const Program& program, const Target& target);

/// Simplifies index and condition expressions with the ranges of the loops; substitutes loops of
/// one iteration, drops empty loops and decided branches, takes conditions out of loops they do not
/// depend on and makes parallel loops inside parallel ones serial.
///
///     for i in 0..4                      if n < 3
///       for one in 0..1            ->      for i in 0..4
///         if n < 3                           A[i*8 + 1] = 1
///           A[(i*2 + one)*4 + 1] = 1
Program simplify_program(const Program& program);

}  // namespace tenon
