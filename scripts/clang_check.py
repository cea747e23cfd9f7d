#!/usr/bin/env python3
"""Compiles every source of a build folder with clang++ (no output): the second compiler Tenon must pass.

usage: clang_check.py BUILD_FOLDER [--jobs N]
"""
import argparse
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys


def command_for(entry, compiler):
    words = shlex.split(entry["command"])
    while os.path.basename(words[0]).startswith("ccache"):
        words = words[1:]
    words[0] = compiler
    out = words.index("-o")
    words = words[:out] + words[out + 2:]
    words[words.index("-c")] = "-fsyntax-only"
    return words + ["-Wno-unknown-warning-option"]


def check(entry, compiler):
    done = subprocess.run(command_for(entry, compiler), cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if not compiler:
        print("clang_check: no clang++ found; install clang-14", file=sys.stderr)
        return 1
    with open(os.path.join(args.build, "compile_commands.json")) as f:
        entries = [e for e in json.load(f) if e["file"].endswith(".cpp")]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for file, code, text in pool.map(lambda e: check(e, compiler), entries):
            if code != 0:
                failed += 1
                print(f"clang_check: {file}\n{text}")
    print(f"clang_check: {len(entries) - failed} of {len(entries)} files compile with {os.path.basename(compiler)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
