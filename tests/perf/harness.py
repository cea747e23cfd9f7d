"""Measures Tenon and its peers in turns on the same cores: see README.md; run.sh starts it."""
import argparse
import fnmatch
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import cases
import peers
import report

QUICK = {"rows": "matmul", "shapes": "1024x1024x1024", "peers": "mkl,onednn", "rounds": 6}
LONG_US = 20_000  # calls beyond: one a turn, and seldom cold
OMP_MOST_US, OMP_MOST_FLOPS = 300, 2e8  # beyond, what a call of the newer oneDNN costs counts no more
COLD_BYTES = 64 << 20
RACE = 6  # rounds after which a peer that is far behind another leaves the race
SELDOM = 3  # cold calls and the machine's limits: once in so many rounds
SHORT_TURN_US = 1000


def options():
    p = argparse.ArgumentParser(prog="run.sh", description=__doc__.split(":")[0] + ".")
    p.add_argument("--rows", help="joined by commas; all: " + ",".join(cases.ROWS))
    p.add_argument("--shapes", help="only shapes that match this GLOB, as 1024x*")
    p.add_argument("--shapes-from", default="", help="another list in the form of shapes.json")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, help="interleaved rounds (default 18)")
    p.add_argument("--us", type=float, default=2500, help="least time of a turn, microseconds")
    p.add_argument("--peers", help="joined by commas; all: " + ",".join(peers.PEERS))
    p.add_argument("--out", help="JSON lines; the table goes beside it as .md")
    p.add_argument("--records", default="", help="a tuning log: adds tuned variants of ours")
    p.add_argument("--no-cold", action="store_true", help="warm caches only")
    p.add_argument("--no-realtime", action="store_true",
                   help="not under SCHED_RR (which is used where it is permitted, in timed turns)")
    p.add_argument("--quick", action="store_true",
                   help="a few seconds: " + ", ".join(f"{k} {v}" for k, v in QUICK.items()))
    p.add_argument("--list", action="store_true", help="print the cases and stop")
    p.add_argument("--places", type=json.loads, help=argparse.SUPPRESS)  # from run.sh
    o = p.parse_args()
    for name, value in QUICK.items() if o.quick else ():
        if getattr(o, name) is None:
            setattr(o, name, value)
    o.rounds = o.rounds or 18
    if o.rounds < 18:
        say(f"{o.rounds} rounds: too few for a claim, which takes 18")
    return o


def say(text):
    print(text, file=sys.stderr, flush=True)


def split_known(text, known):
    names = text.split(",") if text else list(known)
    for n in names:
        if n not in known:
            sys.exit(f"run.sh: no \"{n}\"; there are {', '.join(known)}")
    return names


def chosen_cases(o):
    found = cases.load(split_known(o.rows, cases.ROWS), o.shapes_from)
    found = [c for c in found if fnmatch.fnmatch(c["shape"], o.shapes or "*")]
    if not found:
        sys.exit(f"run.sh: no shape matches {o.shapes}; --list prints them")
    return found


def machine_lines(o, realtime, cpus):
    with open("/proc/cpuinfo") as f:
        model = {k.strip(): v.strip() for k, v in (l.split(":", 1) for l in f if ":" in l)}
    return [f"{model.get('model name', '')}, family {model.get('cpu family', '')} model "
            f"{model.get('model', '')}, on CPUs {','.join(map(str, cpus))}",
            ("timed turns under SCHED_RR" if realtime else "under the ordinary scheduler")
            + "; every library in a process of its own, stopped between its turns; denormals: "
              "the processor's setting at start (not flushed) for all",
            time.strftime("%Y-%m-%d %H:%M") + f", {o.rounds} rounds"]


class Harness:
    def __init__(self, o):
        self.o = o
        self.cpus = sorted(os.sched_getaffinity(0))
        self.threads = [int(t) for t in o.threads.split(",")]
        if max(self.threads) > len(self.cpus):
            sys.exit(f"run.sh: {max(self.threads)} threads on {len(self.cpus)} CPUs")
        os.makedirs(os.path.dirname(o.out), exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix="tenon-perf-", dir="/dev/shm")
        self.realtime = not o.no_realtime and peers.may_be_realtime()
        self.commands = peers.commands(o.places | {"records": o.records})
        self.names = ["limits", "tenon"] + split_known(o.peers, peers.PEERS)
        self.servers, self.lines, self.missing, self.peaks = {}, [], [], {}
        self.machine = machine_lines(o, self.realtime, self.cpus[:max(self.threads)])
        self.json = open(o.out, "w")
        for n in [n for n in self.names if n not in self.commands]:
            self.miss(f"{n} is not built or installed here")
            self.names.remove(n)

    def miss(self, text):
        if text not in self.missing:
            self.missing.append(text)
            say("  " + text)

    def log(self, name, threads=0):
        return os.path.join(os.path.dirname(self.o.out), f"{name}-{threads}.log")

    def server(self, name, threads):
        if (name, threads) not in self.servers:
            command, environment = self.commands[name]
            self.servers[name, threads] = peers.Server(name, command, environment,
                                                       set(self.cpus[:threads]), self.realtime,
                                                       self.log(name, threads))
        return self.servers[name, threads]

    def print_instruction_sets(self):
        c = dict(cases.product("matmul", [64, 64, 64]))
        self.write_inputs(c)
        request = c | {"folder": self.folder, "prefix": "isa", "threads": 1}
        for name in self.names:
            command, environment = self.commands[name]
            open(self.log(name), "w").close()
            text = peers.instruction_set(name, command, environment, request, self.log(name))
            if text:
                self.machine.append(f"{name} says: {text}")
                say(self.machine[-1])

    def print_limits(self):
        """Multiply-adds, and reading and copying at each level of the memory."""
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as f:
            beyond = min(1 << 30, max(1 << 28, 2 * int(f.read().strip().rstrip("K")) << 10))
        levels = {"L1": 12 << 10, "L2": 512 << 10, "L3": 16 << 20, "memory": beyond}
        for t in self.threads:
            server, texts = self.server("limits", t), []
            common = {"threads": t, "inputs": [], "output": {"dtype": "f32", "shape": [1]},
                      "folder": self.folder, "prefix": "limits"}
            def best_us(**request):
                names = server.ask(do="prepare", case=common | request)["variants"]
                return min((server.ask(timed=True, do="run", variant=i, us=20_000, cold=0)["min"], i)
                           for i in range(len(names)))[0], names
            us, names = best_us(op="fma")
            texts.append(f"{float(names[0]['note']) / us * 1e-3:.0f} GFLOP/s of multiply-adds")
            for level, each in levels.items():
                size = each * (t if level != "memory" else 1)
                read = size / best_us(op="memory", read_bytes=size, write_bytes=0)[0] * 1e-3
                copy = 2 * size / best_us(op="memory", read_bytes=size, write_bytes=size)[0] * 1e-3
                texts.append(f"{level} read {read:.0f}, copy {copy:.0f} GB/s")
            server.ask(do="drop")
            self.machine.append(f"{t} thread{'s' * (t > 1)}: " + "; ".join(texts))
            say(self.machine[-1])

    def write_inputs(self, c):
        from operands import inputs_of

        arrays = inputs_of(c)
        for i, (o, a) in enumerate(zip(c["inputs"], arrays)):
            o["file"] = f"{self.folder}/in{i}.bin"
            a.tofile(o["file"])
        return arrays

    def prepare(self, name, c, threads, expected):
        """The variants of one library that give the right answer."""
        if name == "onednn-omp" and c["flops"] > OMP_MOST_FLOPS:
            return []
        request = c | {"threads": threads, "folder": self.folder, "prefix": "out"}
        if name == "limits":
            op = "fma" if c["flops"] else "memory"
            request |= {"op": op, "function": c.get("arithmetic", c["function"])}
        label = f"{c['row']} {c['shape']} {threads}t"
        try:
            reply = self.server(name, threads).ask(do="prepare", case=request)
        except peers.Gone as gone:
            self.servers.pop((name, threads), None)
            reply = {"error": str(gone)}
        if "variants" not in reply:
            if "error" in reply or name == "tenon":
                self.miss(f"{c['row']} {c['shape']}: {name}: not there: " + reply.get(
                    "not_there", reply.get("error", "")))
            return []
        good = []
        for index, v in enumerate(reply["variants"]):
            v |= {"server": name, "index": index}
            wrong = "" if name == "limits" else expected().check(v["output"])
            os.remove(v["output"])
            if wrong:
                self.miss(f"{label}: {v['name']}: {wrong}")
            elif name != "onednn-omp" or v["us"] <= OMP_MOST_US:
                good.append(v)
        return good

    def turn_us(self, v):
        """Short calls have samples enough in a shorter turn."""
        if v["server"] == "limits":
            return self.o.us / 2
        return min(self.o.us, max(SHORT_TURN_US, 20 * v["us"]))

    def cold_calls(self, c, v, r):
        if self.o.no_cold or v["server"] == "limits" or r % SELDOM:
            return 0
        if v["us"] > LONG_US or c["read_bytes"] + c["write_bytes"] > COLD_BYTES:
            return int(r % 6 == 0 and v["us"] < 10 * LONG_US)
        return 2 if v["us"] < LONG_US / 20 else 1

    def measure(self, c, threads, variants):
        rounds = {v["name"]: [] for v in variants}
        shuffle = random.Random(7)
        ours = {a for v in variants if v["server"] == "tenon" for a in v["classes"]}
        rivals = [v for v in variants if v["server"] not in ("tenon", "limits")]
        out = []
        for r in range(self.o.rounds):
            if r == RACE:
                out = [v for v in rivals if report.out_of_the_race(v, rivals, ours, rounds)]
            order = [v for v in variants
                     if v not in out and (v["server"] != "limits" or r % SELDOM == 0)]
            shuffle.shuffle(order)
            for v in order:
                rounds[v["name"]].append(self.server(v["server"], threads).ask(
                    timed=True, do="run", variant=v["index"], us=self.turn_us(v),
                    cold=self.cold_calls(c, v, r)))
        return rounds

    def case(self, c, threads, expected):
        ours = self.prepare("tenon", c, threads, expected)
        if not ours:
            return
        rivals = [v for n in self.names if n not in ("limits", "tenon")
                  for v in self.prepare(n, c, threads, expected)]
        limits = self.prepare("limits", c, threads, expected) if "limits" in self.names else []
        try:
            rounds = self.measure(c, threads, ours + rivals + limits)
        except peers.Gone as gone:
            self.servers = {k: s for k, s in self.servers.items() if s.process.poll() is None}
            self.miss(f"{c['row']} {c['shape']} {threads}t: {gone}")
            return
        for v in limits:
            if v["name"] == "fma":
                rounds["fma.peak"] = self.peak(threads, float(v["note"]), rounds["fma"])
        for line in report.result_lines(c, threads, ours, rivals, rounds):
            self.lines.append(line)
            self.json.write(json.dumps(line) + "\n")
            self.json.flush()
            say("  " + report.progress_text(line))

    def peak(self, threads, flops, rounds):
        """Best rate of the probe in a case's own rounds; where something disturbed all of them, the
        best of the run so far, less what a clock may move."""
        best = flops / min(r["us"] for r in rounds) * 1e-3
        self.peaks[threads] = max(best, self.peaks.get(threads, 0))
        return max(best, 0.9 * self.peaks[threads])

    def run(self, found):
        from reference import Expected  # needs numpy, which --help does without

        start = time.time()
        for i, c in enumerate(found):
            left = (time.time() - start) / i * (len(found) - i) if i else 0
            say(f"[{i + 1}/{len(found)}, {time.time() - start:.0f} s"
                + (f", about {left:.0f} s to go]" if i else "]"))
            arrays = self.write_inputs(c)
            made = []
            expected = lambda: made[0] if made else (made.append(Expected(c, arrays)) or made[0])
            for t in self.threads:
                self.case(c, t, expected)

    def close(self):
        for s in self.servers.values():
            s.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.json.close()


def main():
    o = options()
    found = chosen_cases(o)
    if o.list:
        print("\n".join(f"{c['row']:14} {c['shape']}" for c in found))
        return
    harness = Harness(o)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for m in harness.machine:
            say(m)
        if not o.quick:
            harness.print_limits()
            harness.print_instruction_sets()
        harness.run(found)
    except KeyboardInterrupt:
        say("stopped: what was measured is kept")
    finally:
        harness.close()
    text = report.table(harness.machine, harness.lines, harness.missing)
    with open(os.path.splitext(o.out)[0] + ".md", "w") as f:
        f.write(text)
    if not o.quick:
        print(text)
    say(f"{o.out} and {os.path.splitext(o.out)[0]}.md")


if __name__ == "__main__":
    main()
