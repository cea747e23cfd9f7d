"""How near default schedules are to tuned ones: tunes each case of shapes.json for a while, then
measures both in turns (`tenon tune`, `tenon bench`); prints time of the tuned over the default.
With several spaces each case is tuned in each, from an empty log, and all are measured in the same
turns: how near the default is to the best of them, and the sketches to the templates.

    python3 tests/perf/tuned.py --time 10 --every 3 --threads 1
    python3 tests/perf/tuned.py --time 10 --every 3 --spaces templates,sketches
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_FLOPS = 2e10  # beyond, the plain loops that check a trial take minutes


def words(c):
    """The case as an operator of `tenon kernels`; nothing where it is not one operator."""
    pick = lambda *names: [f"{n}={c[n]}" for n in names]
    if c["op"] == "matmul" and not c["epilogue"] and "batch" not in c:
        return ["matmul", *pick("m", "n", "k")]
    if c["op"] == "conv2d" and not c["epilogue"]:
        if c["algorithm"]:
            return ["conv2d_winograd", *pick("c_in", "h", "w", "c_out"), "constant=U"]
        plain = ["input=plain"] if c["c_in"] < 16 else []
        return ["conv2d_blocked", "constant=W", *plain,
                *pick("c_in", "h", "w", "c_out", "k", "stride", "pad", "groups")]
    if c["op"] == "pool":
        return ["pool", "op=" + c["function"], "block=16", *pick("c", "h", "w", "k", "stride", "pad")]
    if c["op"] == "elementwise" and c["computes"] != "add_relu":
        return ["elementwise", "op=" + c["computes"], *pick("n")]
    shaped = {"reduce": ["shape=" + c.get("shape_word", ""), "axis=" + c.get("axis_word", "")],
              "transpose": ["shape=" + c.get("shape_word", "")]}
    if c["op"] in shaped:
        return [c["op"], *shaped[c["op"]]]
    dims = {"softmax": ("rows", "columns"), "layer_norm": ("rows", "columns"),
            "attention": ("heads", "q", "kv", "d"), "matmul": ("batch", "m", "n", "k")}
    name = "batch_matmul" if c["op"] == "matmul" else c["op"]
    return [name, *pick(*dims[c["op"]])] if c["op"] in dims and not c.get("epilogue") else None


def measured(tenon, subject, threads, seconds, spaces, folder):
    """Median time of the default schedule, "default", and of the best of each space, in turns."""
    logs = {space: os.path.join(folder, space + ".jsonl") for space in spaces}
    common = ["--threads", str(threads), "--quiet"]
    for space, log in logs.items():
        subprocess.run([tenon, "tune", *subject, "--time", f"{seconds}s", "--space", space, "--log", log,
                        *common], check=True, stdout=subprocess.DEVNULL)
    against = [word for log in logs.values() for word in ("--against", log)]
    out = subprocess.run([tenon, "bench", *subject, *against, *common, "--json"], check=True,
                         capture_output=True, text=True,
                         env=dict(os.environ, TENON_SHIPPED_LOGS="")).stdout
    times = {r["schedule"]: r["median_us"] for r in map(json.loads, out.splitlines())
             if "schedule" in r}
    of_log = lambda log: next(t for name, t in times.items() if name.startswith(log + ":"))
    return {"default": times["default"], **{space: of_log(log) for space, log in logs.items()}}


def geomean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def report(name, ratios, what):
    if ratios:
        print(f"{name:13} {len(ratios)} cases: {what}: geomean {100 * geomean(ratios):.0f}%, "
              f"least {100 * min(ratios):.0f}%", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--time", type=float, default=10, help="seconds of tuning a case (default 10)")
    p.add_argument("--every", type=int, default=1, help="only every so many cases of a row")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--spaces", default="both",
                   help="of both, templates, sketches: each is tuned for --time (default both)")
    p.add_argument("--rows", default=",".join(r for r in cases.ROWS if "fused" not in r))
    p.add_argument("--tenon", default=os.path.join(HERE, "../../build/bin/tenon"))
    o = p.parse_args()
    spaces = o.spaces.split(",")
    for row in o.rows.split(","):
        shares, ratios = [], []
        named = [(c, words(c)) for c in cases.load([row]) if c["flops"] <= MOST_FLOPS]
        for c, subject in [n for n in named if n[1]][::o.every]:
            with tempfile.TemporaryDirectory() as folder:
                us = measured(o.tenon, subject, o.threads, o.time, spaces, folder)
            shares.append(min(min(us[s] for s in spaces) / us["default"], 1))
            line = f"the default reaches {100 * shares[-1]:.0f}% of the tuned"
            if "templates" in us and "sketches" in us:
                ratios.append(us["templates"] / us["sketches"])
                line += f", sketches {100 * ratios[-1]:.0f}% of templates"
            print(f"{row:13} {c['shape']:32} {o.threads}t: {line}", flush=True)
        report(row, shares, "default to tuned")
        report(row, ratios, "sketches to templates")


if __name__ == "__main__":
    sys.exit(main())
