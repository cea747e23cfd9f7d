"""torch (CPU) behind the protocol of server.h: torch_server.py FLUSH_LIBRARY."""
import ctypes
import json
import os
import sys
import time

import numpy as np

protocol = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import torch
import torch.nn.functional as F

torch.set_num_threads(len(os.sched_getaffinity(0)))
torch.set_grad_enabled(False)
flush_lines = ctypes.CDLL(sys.argv[1]).perf_flush
flush_lines.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

SHORTEST_SAMPLE, WARM_UP, NO_WARM_UP = 10e-6, 700e-6, 20e-3
NUMPY = {"f32": np.float32, "i32": np.int32, "bf16": np.uint16, "u8": np.uint8, "i8": np.int8,
         "i64": np.int64}


def tensor(shape, dtype, numbers=None):
    """Begins with a page, as server.h's Storage does."""
    count = int(np.prod(shape))
    memory = np.zeros(count * np.dtype(dtype).itemsize + 4096, np.uint8)
    at = -memory.ctypes.data % 4096
    array = memory[at:at + count * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
    if numbers is not None:
        array[...] = numbers
    return torch.from_numpy(array)


class NotThere(Exception):
    pass


def variant(name, classes, call, out, inputs, fetch=None):
    return {"name": name, "classes": classes, "call": call, "memory": [*inputs, out],
            "fetch": fetch or (lambda: out)}


def plain(call, out, inputs):
    return [variant("torch", ["plain"], call, out, inputs)]


def matmul(c, x, out):
    a, b = x[:2]
    epilogue = c.get("epilogue", "")
    if epilogue == "residual":
        return plain(lambda: torch.addmm(x[2], a, b, out=out), out, x)
    if epilogue == "bias_gelu":
        between = torch.empty_like(out)
        def call():
            torch.addmm(x[2], a, b, out=between)
            torch.ops.aten.gelu.out(between, out=out)
        return plain(call, out, x + [between])
    f = torch.bmm if a.dim() == 3 else torch.mm
    return plain(lambda: f(a, b, out=out), out, x)


def bf16_matmul(c, x, out):
    raise NotThere("its product of bf16 matrices gives bf16")


def conv2d(c, x, out):
    result = []
    for layout, form in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
        t = [v.contiguous(memory_format=form) for v in x]
        kept = {}
        def call(t=t, kept=kept):
            y = torch.conv2d(t[0], t[1], None, c["stride"], c["pad"], 1, c["groups"])
            kept["y"] = y.add_(t[2]).relu_() if c["epilogue"] == "add_relu" else y
        classes = ["layout of choice"] + ([layout] if layout == "nchw" else [])
        result.append(variant("torch-" + layout, classes, call, t[0], t,
                              lambda kept=kept: kept["y"].contiguous()))
    return result


def softmax(c, x, out):
    return plain(lambda: torch.softmax(x[0], -1, out=out), out, x)


def layer_norm(c, x, out):
    kept = {}
    def call():
        kept["y"] = F.layer_norm(x[0], (c["columns"],), x[1], x[2], c["epsilon"])
    return [variant("torch", ["plain"], call, x[0], x, lambda: kept["y"])]


def reduce(c, x, out):
    shape = x[0].reshape(c["extents"])
    return plain(lambda: torch.sum(shape, c["axes"], out=out), out, x)


def transpose(c, x, out):
    turned = x[0].transpose(-1, -2)
    return plain(lambda: out.copy_(turned), out, x)


def elementwise(c, x, out):
    op = c["function"]
    if op == "add":
        return plain(lambda: torch.add(x[0], x[1], out=out), out, x)
    if op == "add_relu":
        return plain(lambda: torch.add(x[0], x[1], out=out).relu_(), out, x)
    f = {"exp": torch.exp, "gelu": torch.ops.aten.gelu.out, "silu": torch.ops.aten.silu.out}[op]
    return plain(lambda: f(x[0], out=out), out, x)


def pool(c, x, out):
    result = []
    for layout, form in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
        t, kept = x[0].contiguous(memory_format=form), {}
        f = F.max_pool2d if c["function"] == "max" else F.avg_pool2d
        def call(t=t, kept=kept):
            kept["y"] = f(t, c["k"], c["stride"], c["pad"])
        classes = ["layout of choice"] + ([layout] if layout == "nchw" else [])
        result.append(variant("torch-" + layout, classes, call, t, [t],
                              lambda kept=kept: kept["y"].contiguous()))
    return result


def embedding(c, x, out):
    table, picks = x
    kept = {}
    def call():
        kept["y"] = F.embedding(picks, table)
    made = [variant("torch", ["plain"], lambda: torch.index_select(table, 0, picks, out=out), out, x),
            variant("torch-embedding", ["plain"], call, out, x, lambda: kept["y"])]
    if len(os.sched_getaffinity(0)) == 1:
        t, p, o = table.numpy(), picks.numpy(), out.numpy()
        made.append(variant("numpy", ["plain"], lambda: np.take(t, p, 0, o, "clip"), out, x))
    return made


def attention(c, x, out):
    q, k, v = (t.unsqueeze(0) for t in x)
    kept = {}
    def call():
        kept["y"] = F.scaled_dot_product_attention(q, k, v)
    return [variant("torch", ["plain"], call, x[0], x, lambda: kept["y"])]


ROWS = {f.__name__: f for f in (matmul, bf16_matmul, conv2d, softmax, layer_norm, reduce, transpose,
                                elementwise, embedding, pool, attention)}


def timed(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def estimate(call, first):
    """The least of a few calls; one that outlasts all caches need not be made again for it."""
    if first > 5 * NO_WARM_UP:
        return first
    took, n = min(timed(call, 1) for _ in range(3)), 4
    while took * n < 200e-6:
        took = timed(call, n)
        n *= 4
    return took


def prepare(c):
    if c["op"] not in ROWS:
        raise NotThere("not measured here")
    inputs = [tensor(i["shape"], NUMPY[i["dtype"]],
                     np.fromfile(i["file"], NUMPY[i["dtype"]]).reshape(i["shape"]))
              for i in c["inputs"]]
    out = tensor(c["output"]["shape"], np.float32)
    made = ROWS[c["op"]](c, inputs, out)
    reply = []
    for v in made:
        out.fill_(float("nan"))
        first = timed(v["call"], 1)
        path = f"{c['folder']}/{c['prefix']}-{v['name']}.bin"
        v["fetch"]().contiguous().numpy().tofile(path)
        v["us"] = estimate(v["call"], first) * 1e6
        reply.append({"name": v["name"], "classes": v["classes"], "note": "", "output": path,
                      "us": v["us"]})
    return made, {"variants": reply}


def run(v, request):
    call = v["call"]
    if v["us"] < NO_WARM_UP * 1e6:
        start = time.perf_counter()
        call()
        call()
        while time.perf_counter() - start < WARM_UP:
            call()
    batch = max(1, int(SHORTEST_SAMPLE * 1e6 / v["us"]))
    samples, start = [], time.perf_counter()
    while not samples or time.perf_counter() - start < request["us"] * 1e-6:
        samples.append(timed(call, batch))
    cold = []
    for _ in range(request["cold"]):
        for t in v["memory"]:
            flush_lines(t.data_ptr(), t.numel() * t.element_size())
        cold.append(timed(call, 1) * 1e6)
    samples.sort()
    return {"us": samples[len(samples) // 2] * 1e6, "min": samples[0] * 1e6,
            "calls": batch * len(samples), "cold": cold}


def main():
    made = []
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                made = []
                made, reply = prepare(request["case"])
            elif request["do"] == "run":
                reply = run(made[request["variant"]], request)
            else:
                made, reply = [], {}
        except NotThere as reason:
            reply = {"not_there": str(reason)}
        except Exception as error:  # the library's own; the harness reports it
            reply = {"error": str(error)}
        protocol.write(json.dumps(reply) + "\n")
        protocol.flush()


main()
