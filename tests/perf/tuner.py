"""How good the tuner is: tunes six operators from empty logs and prints, for each, the medians over
the seeds of what the sketches reach after 16 trials and when, trials a second, the best of the
sketches beside the best of the templates (in turns), the winner's ratio to the default in the log
and in fresh processes; with --tvm, Apache TVM's tuned libraries in turns with ours.

    python3 tests/perf/tuner.py --time 6 --seeds 3 --threads 2
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Operator, and what the script that made the libraries of --tvm calls it.
CASES = {
    "matmul": ("matmul m=1024 n=1024 k=1024", "matmul:1024x1024x1024"),
    "conv 3x3": ("conv2d c_in=256 c_out=256 h=14 w=14 k=3 pad=1", "conv:r50-14-3x3-256"),
    "conv 1x1": ("conv2d c_in=1024 c_out=256 h=14 w=14 k=1", "conv:r50-14-1x1-1024-256"),
    "softmax": ("softmax rows=128 columns=768", "softmax:128x768"),
    "layer_norm": ("layer_norm rows=128 columns=768", "layer_norm:128x768"),
    "batch_matmul": ("batch_matmul batch=12 m=128 n=128 k=64", "bmm:12x128x128x64"),
}


def median_us(record):
    return statistics.median(record["samples_us"])


class Run:
    """One `tenon tune` from an empty log, each line of it with the time at which it was there."""

    def __init__(self, o, words, space, seed, log):
        self.log, self.seen = log, []
        command = [o.tenon, "tune", *words, "--space", space, "--seed", str(seed), "--log", log,
                   "--time", f"{o.time}s", "--threads", str(o.threads), "--quiet", "--json"]
        start = time.monotonic()
        report = log + ".report"
        with open(report, "w") as out:
            tuner = subprocess.Popen(command, stdout=out)
        lines = 0
        while tuner.poll() is None:
            time.sleep(0.01)
            if os.path.exists(log):
                at = time.monotonic() - start
                with open(log) as file:
                    text = file.read()
                there = text[:text.rfind("\n") + 1].splitlines()
                self.seen += [(at, json.loads(line)) for line in there[lines:]]
                lines = len(there)
        if tuner.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit code {tuner.returncode}")
        with open(report) as out:
            summary = json.loads(out.read().splitlines()[-1])["summary"]
        self.task = summary["tasks"][0]
        # The default is no find of the search, and turns at the end time trials again.
        self.trials = [(at, r) for at, r in self.seen if r["trial"] > 0 and not r.get("comparison")]

    def rate(self):
        """Trials a second from the start to the last of them."""
        return len(self.trials) / self.trials[-1][0] if self.trials else 0

    def best_after(self, count):
        times = [median_us(r) for _, r in self.trials[:count] if r["status"] == "ok"]
        return min(times, default=float("inf"))

    def seconds_to(self, us):
        """When the log first held a trial that was as fast; infinite: never."""
        return next((at for at, r in self.trials if r["status"] == "ok" and median_us(r) <= us),
                    float("inf"))


def bench(o, words, *options):
    """Schedule's name and median in microseconds, of each row of `tenon bench`, in turns."""
    out = subprocess.run([o.tenon, "bench", *words, "--threads", str(o.threads), "--json", "--quiet",
                          *options], check=True, capture_output=True, text=True).stdout
    return [(r["schedule"], r["median_us"]) for r in map(json.loads, out.splitlines())]


def winners_ratio(o, words, run):
    """Default over best: in the log, and in each of three fresh processes."""
    fresh = []
    for _ in range(3):
        rows = bench(o, words, "--log", run.log)
        fresh.append(rows[0][1] / rows[1][1] if len(rows) > 1 else 1.0)
    return run.task["ratio"], fresh


def beside_tvm(o, words, name, log):
    """Our best of `log` and TVM's library, medians of rounds in turns, microseconds."""
    library = os.path.join(o.tvm, name.replace(":", "_") + ".so")
    if not os.path.exists(library):
        return None
    env = dict(os.environ, TVM_NUM_THREADS=str(o.threads))
    ours, theirs = [], []
    for _ in range(3):
        ours.append(bench(o, words, "--rounds", "5", "--against", log)[-1][1])
        out = subprocess.run([o.tvm_python, o.tvm_script, "time", library, name], check=True,
                             env=env, capture_output=True, text=True).stdout
        theirs.append(json.loads(out.splitlines()[-1])["median_us"])
    return statistics.median(ours), statistics.median(theirs)


def report_curve(runs):
    finals = [r.best_after(len(r.trials)) for r in runs]
    after = statistics.median(f / r.best_after(16) for f, r in zip(finals, runs))
    reached = statistics.median(r.seconds_to(f / 0.95) for f, r in zip(finals, runs))
    rate = statistics.median(r.rate() for r in runs)
    counts = statistics.median(len(r.trials) for r in runs)
    print(f"  {100 * after:.0f}% after 16 of {counts:.0f} trials; 95% after {reached:.1f} s; "
          f"{rate:.1f} trials a second")


def measure(o, title, words, tvm_name, folder):
    print(f"{title}: {' '.join(words)}, {o.threads} thread(s), {o.seeds} seeds x {o.time:g} s")
    runs = {space: [Run(o, words, space, seed, os.path.join(folder, f"{space}-{seed}.jsonl"))
                    for seed in range(1, o.seeds + 1)] for space in ("sketches", "templates")}
    report_curve(runs["sketches"])
    logs = [r.log for space in runs for r in runs[space]]
    rows = bench(o, words, *[word for log in logs for word in ("--against", log)])[-len(logs):]
    times = [us for _, us in rows]
    best = {space: min(times[k * o.seeds:(k + 1) * o.seeds]) for k, space in enumerate(runs)}
    print(f"  best of sketches {best['sketches']:.1f} us, of templates {best['templates']:.1f} us: "
          f"{best['templates'] / best['sketches']:.2f}; sketches by seed: "
          + ", ".join(f"{us:.1f}" for us in times[:o.seeds]))
    for run in runs["templates"]:  # their default is the one that bench times
        if run.task["best_us"] == run.task["default_us"]:
            print("  no schedule is faster than the default")
            continue
        in_log, fresh = winners_ratio(o, words, run)
        print(f"  winner's ratio to the default: {in_log:.3f} in the log, "
              + ", ".join(f"{r:.3f} ({100 * (in_log / r - 1):+.1f}%)" for r in fresh)
              + " in fresh processes")
    tvm = beside_tvm(o, words, tvm_name, runs["sketches"][0].log) if o.tvm else None
    if tvm:
        reached = statistics.median(r.seconds_to(tvm[1]) for r in runs["sketches"])
        print(f"  ours {tvm[0]:.1f} us, TVM {tvm[1]:.1f} us: {tvm[1] / tvm[0]:.2f}; "
              f"its quality after {reached:.1f} s")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--time", type=float, default=6, help="seconds of tuning a run (default 6)")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--cases", default=",".join(CASES), help="joined by commas; all: %(default)s")
    p.add_argument("--tenon", default=os.path.join(HERE, "../../build/bin/tenon"))
    p.add_argument("--tvm", help="folder of libraries tuned by TVM, named as in CASES")
    p.add_argument("--tvm-python", help="Python that has TVM")
    p.add_argument("--tvm-script", help="`SCRIPT time LIBRARY CASE` prints median_us as JSON")
    o = p.parse_args()
    for title in o.cases.split(","):
        words, tvm_name = CASES[title]
        with tempfile.TemporaryDirectory() as folder:
            measure(o, title, words.split(), tvm_name, folder)


main()
