#!/usr/bin/env python3
"""Prints Tenon's decisions beside onnxruntime's on the demo's pictures; exit 1 if they differ.

usage: compare.py MODEL FOLDER     FOLDER holds NAME.npy (input) and NAME.out.npy (Tenon's output)
"""
import glob
import os
import sys

import numpy as np
import onnxruntime as ort

LABELS = ["0 degrees", "180 degrees"]
TOLERANCE = 1e-4


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model, folder = sys.argv[1:]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    bad = 0
    print(f"{'picture':10} {'Tenon says':14} {'p':>9}   {'onnxruntime':14} {'p':>9}   difference")
    for path in sorted(glob.glob(os.path.join(folder, "*.out.npy"))):
        name = os.path.basename(path)[: -len(".out.npy")]
        ours = np.load(path).reshape(-1)
        x = np.load(os.path.join(folder, name + ".npy"))
        theirs = session.run(None, {session.get_inputs()[0].name: x})[0].reshape(-1)
        difference = float(np.abs(ours - theirs).max())
        a, b = int(ours.argmax()), int(theirs.argmax())
        print(f"{name:10} {LABELS[a]:14} {ours[a]:9.6f}   {LABELS[b]:14} {theirs[b]:9.6f}   {difference:.1e}")
        if a != b or not difference < TOLERANCE:
            bad += 1
    if bad:
        print(f"compare: {bad} picture(s) differ from onnxruntime by a decision or by {TOLERANCE} or more", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
