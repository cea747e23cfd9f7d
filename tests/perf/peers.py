"""Server processes, one for each library and number of threads. A server computes only in its turn:
between turns it is stopped (SIGSTOP), so that its waiting threads, which spin, disturb no other."""
import ctypes
import glob
import json
import os
import select
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 180
PRCTL = ctypes.CDLL(None).prctl


def first(pattern):
    found = sorted(glob.glob(pattern))
    return found[0] if found else ""


def commands(places):
    """Name -> command line and environment, of those that are installed and built."""
    venv, omp = places["peers"] + "/venv", places["peers"] + "/onednn-omp"
    binary = lambda name: os.path.join(places["bin"], name)
    site = first(venv + "/lib/python3*/site-packages")
    opencl = {"OCL_ICD_FILENAMES": first(venv + "/lib/libintelocl.so"),
              "LD_LIBRARY_PATH": venv + "/lib"}
    made = {
        "tenon": ([binary("perf_tenon")] + ([places["records"]] if places["records"] else []), {}),
        "limits": ([binary("perf_limits")], {}),
        "mkl": ([binary("perf_blas"), "mkl", first(venv + "/lib/libmkl_rt.so*")],
                {"LD_LIBRARY_PATH": venv + "/lib", "MKL_THREADING_LAYER": "INTEL"}),
        "onednn": ([binary("perf_onednn")], opencl),
        "onednn-omp": ([binary("perf_onednn-omp")], {"LD_LIBRARY_PATH": omp + "/lib"}),
        "openblas": ([binary("perf_blas"), "openblas", first(site + "/numpy.libs/libscipy_openblas*")],
                     {}),
        "xsmm": ([binary("perf_xsmm")], {}),
        "torch": ([venv + "/bin/python", HERE + "/servers/torch_server.py", binary("libperf_flush.so")],
                  {"OPENBLAS_NUM_THREADS": "1"}),
    }
    return {n: c for n, c in made.items() if all(os.path.exists(p) for p in c[0] if "/" in p)}


PEERS = ["mkl", "onednn", "onednn-omp", "openblas", "xsmm", "torch"]


class Gone(Exception):
    """A server ended or did not answer."""


def start_of(cpus):
    """In the new process: out of the terminal's reach (Ctrl-C is the harness's), on these CPUs, and
    ended with the harness even while stopped."""
    os.setpgrp()
    os.sched_setaffinity(0, cpus)
    PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    def __init__(self, name, command, environment, cpus, realtime, log):
        self.name, self.realtime, self.stopped = name, realtime, False
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        threads = str(len(cpus))
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            env[variable] = threads
        env.update(environment)
        self.log = open(log, "ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env,
            preexec_fn=lambda: start_of(cpus))

    def ask(self, timed=False, **request):
        """One request and its reply; timed ones under SCHED_RR where that is allowed."""
        self.go_on()
        if self.realtime:
            self.schedule(os.SCHED_RR if timed else os.SCHED_OTHER)
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
            line = self.process.stdout.readline() if ready else b""
            if ready and not line:
                self.process.wait()
        except BrokenPipeError:
            line = b""
        if not line:
            how = self.process.poll()
            self.close()
            raise Gone(f"{self.name} ended ({how}); {self.log.name} has its last words"
                       if how is not None else f"{self.name} did not answer within {PATIENCE_S} s")
        self.stop()
        return json.loads(line)

    def schedule(self, policy):
        parameter = os.sched_param(1 if policy == os.SCHED_RR else 0)
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                os.sched_setscheduler(int(thread), policy, parameter)
            except ProcessLookupError:
                pass  # ended since it was listed

    def go_on(self):
        if self.stopped:
            os.kill(self.process.pid, signal.SIGCONT)
        self.stopped = False

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        self.stopped = True

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()


def may_be_realtime():
    try:
        # What this process starts (threads of numpy, servers) is not to inherit it.
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        return True
    except PermissionError:
        return False


# Library -> its verbose switch, and what the telling line of its output has.
VERBOSE = {"mkl": ("MKL_VERBOSE", "1", "for Intel(R) 64 architecture"),
           "onednn": ("ONEDNN_VERBOSE", "1", "info,cpu,isa"),
           "onednn-omp": ("ONEDNN_VERBOSE", "1", "info,cpu,isa"),
           "openblas": ("OPENBLAS_VERBOSE", "2", "Core"),
           "xsmm": ("LIBXSMM_VERBOSE", "3", "/SP"),
           "torch": ("MKL_VERBOSE", "1", "for Intel(R) 64 architecture")}


def instruction_set(name, command, environment, request, log):
    """What the library itself says that it runs on, by its own verbose switch."""
    if name not in VERBOSE:
        return ""
    switch, value, telling = VERBOSE[name]
    server = Server(name, command, environment | {switch: value}, {min(os.sched_getaffinity(0))},
                    False, log)
    try:
        server.ask(do="prepare", case=request)
        server.go_on()
        server.process.stdin.close()  # some speak when they end
        server.process.wait(timeout=20)
    except (Gone, subprocess.TimeoutExpired):
        pass
    server.close()
    with open(log, errors="replace") as f:
        lines = [l.strip() for l in f if telling in l]
    return lines[0] if lines else "nothing that could be read"
