#pragma once

namespace tenon {

/// One of the pieces of work that a lent pool is asked to run. Any thread may call it; it does not
/// throw.
struct LentTask {
  void (*run)(void* argument, int k) = nullptr;
  void* argument = nullptr;
  void operator()(int k) const { run(argument, k); }
};

/// Threads of the program that uses Tenon, for programs that have a pool already and want no second
/// one: ThreadPool(lent) runs its loops on them. A C-style callback and what it is given; lend()
/// makes one of a function object.
struct LentPool {
  int workers = 1;  ///< pieces that a loop is split into at most
  void* context = nullptr;
  /// Calls task(k) once for every k in [0, n), n <= workers, on any threads and in any order, at
  /// once where it can (pieces may also run one after the other: they never wait for each other),
  /// and returns when all have ended. Called by the thread that runs a kernel, by one at a time.
  void (*run)(void* context, int n, LentTask task) = nullptr;
};

/// `run(n, task)` as LentPool::run; it must live as long as the pool.
///
///     auto run = [&](int n, LentTask task) { my_pool.for_each(n, task); };
///     ThreadPool pool(lend(my_pool.size(), run));
///     kernel.run(arguments, pool);
template <class F>
LentPool lend(int workers, F& run) {
  return {workers, &run,
          [](void* context, int n, LentTask task) { (*static_cast<F*>(context))(n, task); }};
}

}  // namespace tenon
