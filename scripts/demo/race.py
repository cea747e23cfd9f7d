#!/usr/bin/env python3
"""Times the demo network in Tenon and in onnxruntime in turns, on one thread, and prints the ratios of the medians.

usage: race.py TENON MODEL LOG [--rounds N]
"""
import argparse
import json
import subprocess
import time
from statistics import median

import numpy as np
import onnxruntime as ort

SHAPE = (1, 3, 48, 192)


def tenon_round(tenon, model, log):
    shape = "x=" + "x".join(map(str, SHAPE))
    command = [tenon, "bench", model, "--shape", shape, "--log", log, "--threads", "1", "--rounds", "3", "--whole",
               "--json", "--quiet"]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    return row["default_us"], row["median_us"]


def ort_round(session, feed):
    end = time.perf_counter() + 0.1
    samples = []
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        samples.append((time.perf_counter() - start) * 1e6)
    return median(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("model")
    parser.add_argument("log")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: np.random.default_rng(1).uniform(-1, 1, SHAPE).astype(np.float32)}
    ort_round(session, feed)
    rounds = [(*tenon_round(args.tenon, args.model, args.log), ort_round(session, feed)) for _ in range(args.rounds)]
    default, tuned, theirs = (median(r[k] for r in rounds) for k in range(3))
    print(f"one run, one thread, median of {args.rounds} rounds in turns:")
    print(f"  onnxruntime {ort.__version__}  {theirs:8.1f} us")
    print(f"  Tenon, default      {default:8.1f} us   {default / theirs:.2f} of onnxruntime's time")
    print(f"  Tenon, tuned        {tuned:8.1f} us   {tuned / theirs:.2f} of onnxruntime's time")


if __name__ == "__main__":
    main()
