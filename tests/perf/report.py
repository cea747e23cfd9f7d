"""Ratios and tables from the rounds that were measured."""
import math
import statistics

# Ratios to the best peer that each shape of a row should reach (upper end of the interval).
BARS = {"matmul": 0.97, "batch_matmul": 0.97, "matmul_fused": 1.1, "attention": 1.1, "softmax": 1.0,
        "layer_norm": 1.0, "reduce": 1.0, "transpose": 1.0, "elementwise": 1.0, "embedding": 1.0, "pool": 1.0,
        "conv2d": 0.95, "conv2d_fused": 1.05, "depthwise": 1.0, "winograd": 1.3,
        "int8_matmul": 0.95, "bf16_matmul": 0.95, "int8_conv": 0.95, "bf16_conv": 0.95}
FAR = 1.25
# Variants by library, where one of its ways is enough for "any one library".
LIBRARIES = ("mkl", "onednn", "openblas", "xsmm", "torch")


def library(name):
    return next(l for l in LIBRARIES if name.startswith(l))


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def median_interval(values):
    """The median and its 95% interval by order statistics (the sign test turned round): nothing is
    assumed of the distribution. With fewer than six values the interval is their range."""
    v = sorted(values)
    n, below, k = len(v), 0.0, 0
    while k < n // 2:
        below += math.comb(n, k) * 0.5**n
        if below > 0.025:
            break
        k += 1
    k = max(0, k - 1)
    return statistics.median(v), v[k], v[n - 1 - k]


def summary(rounds):
    """Of one variant: medians over the rounds, each of which is the median of its calls."""
    v = sorted(r["us"] for r in rounds)
    cold = [x for r in rounds for x in r["cold"]]
    quarter = (v[len(v) * 3 // 4] - v[len(v) // 4]) / statistics.median(v)
    return {"min": min(r["min"] for r in rounds), "median": statistics.median(v),
            "spread": quarter, "rounds": len(rounds), "cold": statistics.median(cold) if cold else None,
            "cold_min": min(cold) if cold else None}


def competes(among, peer):
    """Packed ahead against packed ahead; but a peer that is faster unpacked counts with that."""
    return among in peer["classes"] or (among == "packed" and "plain" in peer["classes"])


def out_of_the_race(peer, peers, classes, rounds):
    """Whether another competes wherever this one does (in `classes`) and is far ahead: its slowest
    round so far is faster than this one's fastest, which chance gives equals once in 924 times six
    rounds, and its median by FAR."""
    us = lambda p: [r["us"] for r in rounds[p["name"]]]
    where = [a for a in classes if competes(a, peer)]
    return any(all(competes(a, other) for a in where) and max(us(other)) < min(us(peer))
               and FAR * statistics.median(us(other)) < statistics.median(us(peer))
               for other in peers if other is not peer)


def compare(ours, among, peers, rounds):
    """The best peer of the even rounds, and ours against it on the odd ones; `among`: the class.
    Those that left the race are compared in the rounds that they have, and are never the best."""
    us = lambda name, which: [rounds[name][r]["us"] for r in which if r < len(rounds[name])]
    n = len(rounds[ours["name"]])
    even, odd = range(0, n, 2), range(1, n, 2)
    rivals = [p for p in peers if competes(among, p)]
    if not rivals or not odd:
        return None
    best = min((p["name"] for p in rivals if len(rounds[p["name"]]) == n),
               key=lambda p: statistics.median(us(p, even)))
    ratio = lambda p, which: [b / a for a, b in zip(us(ours["name"], which), us(p, which))]
    middle, low, high = median_interval(ratio(best, odd))
    cold = lambda name: [x for r in rounds[name] for x in r["cold"]]
    mine, theirs = cold(ours["name"]), [cold(p["name"]) for p in rivals]
    theirs = [statistics.median(t) for t in theirs if t]
    return {"best": best, "ratio": middle, "low": low, "high": high,
            "ratios": {p["name"]: statistics.median(ratio(p["name"], odd)) for p in rivals},
            "cold_ratio": min(theirs) / statistics.median(mine) if mine and theirs else None}


def limits_of(c, rounds, ours):
    """Share of what the machine can do, in the same rounds: of the multiply-add peak, or of the
    slower of the operator's bytes and its arithmetic."""
    median = lambda name: statistics.median(r["us"] for r in rounds[name])
    mine = median(ours["name"])
    if c["flops"] and "fma" in rounds:
        peak = rounds["fma.peak"]
        return {"gflops": c["flops"] / mine * 1e-3, "peak_gflops": peak,
                "share": c["flops"] / mine * 1e-3 / peak, "of": "FMA peak"}
    moves = [n for n in ("bytes", "bytes-streamed") if n in rounds]
    if not moves:
        return {}
    moved = min(map(median, moves))
    computed = median("arithmetic") if "arithmetic" in rounds else 0
    return {"gbps": (c["read_bytes"] + c["write_bytes"]) / mine * 1e-3,
            "bound_us": max(moved, computed), "share": max(moved, computed) / mine,
            "of": "arithmetic" if computed > moved else "bandwidth"}


def result_lines(c, threads, ours, peers, rounds):
    """One line for each of our variants and each class that it takes part in."""
    out = []
    for o, among in ((o, among) for o in ours for among in o["classes"]):
        line = {"row": c["row"], "shape": c["shape"], "group": c.get("group", ""),
                "threads": threads, "ours": o["name"], "class": among, "note": o["note"],
                "us": summary(rounds[o["name"]]), "rounds": len(rounds[o["name"]])}
        line |= limits_of(c, rounds, o)
        line["peers"] = {p["name"]: summary(rounds[p["name"]]) | {"note": p["note"]}
                         for p in peers if competes(among, p)}
        line["against"] = compare(o, among, peers, rounds)
        out.append(line)
    return out


def time_text(us):
    return f"{us:.3g} us" if us < 1e3 else f"{us / 1e3:.4g} ms"


def against_text(line):
    a = line["against"]
    if not a:
        return "no peer"
    return f"{a['ratio']:.3f} [{a['low']:.3f}, {a['high']:.3f}] {a['best']}"


def progress_text(line):
    share = f", {line['share']:.0%} of {line['of']}" if "share" in line else ""
    return (f"{line['row']} {line['shape']} {line['ours']} ({line['class']}) {line['threads']}t: "
            f"{time_text(line['us']['median'])}{share}, {against_text(line)}")


def row_table(lines):
    names = sorted({p for l in lines if l["against"] for p in l["against"]["ratios"]})
    head = ["shape", "thr", "ours", "class", "min", "median", "spread", "cold", "GFLOP/s or GB/s", "share",
            "best peer", "ratio", "95%", "cold ratio"] + names
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for l in lines:
        a = l["against"]
        rate = l.get("gflops", l.get("gbps"))
        cells = [l["shape"], str(l["threads"]), l["ours"], l["class"], time_text(l["us"]["min"]),
                 time_text(l["us"]["median"]), f"{l['us']['spread']:.1%}",
                 time_text(l["us"]["cold"]) if l["us"]["cold"] else "",
                 f"{rate:.1f}" if rate else "", f"{l['share']:.0%}" if "share" in l else ""]
        if a:
            cold = f"{a['cold_ratio']:.2f}" if a["cold_ratio"] else ""
            missed = "**" if a["high"] < BARS[l["row"]] else ""
            cells += [a["best"], f"{missed}{a['ratio']:.3f}{missed}",
                      f"{a['low']:.3f} to {a['high']:.3f}", cold]
            cells += [f"{a['ratios'][n]:.2f}" if n in a["ratios"] else "" for n in names]
        out.append("| " + " | ".join(cells + [""] * (len(head) - len(cells))) + " |")
    return out


def kind(line):
    """Lines of one table of the overview: a row, one of our ways, a number of threads."""
    return line["row"], line["group"], line["ours"], line["class"], line["threads"]


def overview(lines):
    out = ["| row | ours | class | threads | shapes | geomean to the best peer | lowest | bar | "
           "below the bar |", "|---|---|---|---|---|---|---|---|---|"]
    for key in dict.fromkeys(map(kind, lines)):
        mine = [l["against"] | {"shape": l["shape"]} for l in lines if kind(l) == key and l["against"]]
        if not mine:
            continue
        lowest = min(mine, key=lambda a: a["ratio"])
        missed = [a for a in mine if a["high"] < BARS[key[0]]]
        row, group, ours, among, threads = key
        out.append(f"| {row} {group} | {ours} | {among} | {threads} | {len(mine)} | "
                   f"{geomean([a['ratio'] for a in mine]):.3f} | {lowest['ratio']:.3f} "
                   f"({lowest['shape']}) | {BARS[key[0]]} | {len(missed)} |")
    return out


def checked_calls(lines):
    """What the checked call costs more than the raw entry, where both were measured."""
    at = {(l["shape"], l["threads"], l["ours"], l["class"]): l["us"]["median"] for l in lines}
    more = [(1e3 * (us - at[raw]), raw[0]) for (shape, threads, ours, among), us in at.items()
            if ours.endswith("-checked")
            and (raw := (shape, threads, ours.removesuffix("-checked"), among)) in at]
    if not more:
        return []
    worst, shape = max(more)
    return ["", f"The checked call costs {statistics.median(m for m, _ in more):.0f} ns more than the "
            f"raw entry (median; {worst:.0f} ns at {shape})."]


def single_libraries(lines):
    out = ["| plain products against one library | threads | shapes | geomean |", "|---|---|---|---|"]
    ratios = {}
    for l in lines:
        if not l["against"] or l["ours"] != "tenon" or l["row"] not in ("matmul", "batch_matmul"):
            continue
        of = {}
        for name, r in l["against"]["ratios"].items():
            of[library(name)] = min(r, of.get(library(name), r))
        for name, r in of.items():
            ratios.setdefault((name, l["threads"]), []).append(r)
    for (name, threads), r in sorted(ratios.items()):
        out.append(f"| {name} | {threads} | {len(r)} | {geomean(r):.3f} |")
    return out


def table(machine, lines, missing):
    out = [f"# Tenon beside its peers", "", *[f"- {m}" for m in machine], "",
           "Times are medians over interleaved rounds (min: the fastest call); spread: middle half of "
           "the rounds over the median; ratio: time of the best peer (chosen on the even rounds) over "
           "ours (odd rounds), above 1 we are faster, with the 95% interval of its median by order "
           "statistics; bold: the whole interval is below the bar. A peer far behind another of its "
           "kind in each of six rounds was measured in no more. cold: all operands flushed from every "
           "cache before the call.", ""]
    out += overview(lines) + checked_calls(lines) + [""] + single_libraries(lines) + [""]
    for row in dict.fromkeys(l["row"] for l in lines):
        out += [f"## {row}", ""] + row_table([l for l in lines if l["row"] == row]) + [""]
    if missing:
        out += ["## Not there, refused or wrong", ""] + [f"- {m}" for m in missing] + [""]
    return "\n".join(out)
