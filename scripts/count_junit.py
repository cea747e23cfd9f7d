#!/usr/bin/env python3
"""Prints "passed failed skipped" of CTest's JUnit file, and on stderr one line per test that failed or was skipped."""
import sys
import xml.etree.ElementTree as tree


def reason(case):
    for line in (case.findtext("system-out") or "").splitlines():
        if "SKIPPED:" in line:
            return line.split("SKIPPED:", 1)[1].strip()
    return "no reason given"


passed = failed = skipped = 0
try:
    cases = tree.parse(sys.argv[1]).getroot().iter("testcase")
except (OSError, tree.ParseError) as e:
    print(f"no test results: {e}", file=sys.stderr)
    print("0 1 0")
    sys.exit(0)
for case in cases:
    status = case.get("status")
    if status == "run":
        passed += 1
    elif status in ("notrun", "disabled"):
        skipped += 1
        print(f"skipped: {case.get('name')}: {reason(case)}", file=sys.stderr)
    else:
        failed += 1
        print(f"FAILED: {case.get('name')}", file=sys.stderr)
print(passed, failed, skipped)
