"""The cases of shapes.json: one function a row makes them; each knows its operands and its work."""
import json
import math
import os


def operand(name, shape, dtype="f32"):
    return {"name": name, "shape": [int(x) for x in shape], "dtype": dtype}


def case(row, op, shape, inputs, output, *, flops=0, function="", layer="", **dims):
    """`flops`: the work of an operator bound by multiply-adds; 0: its bytes bind it.
    `function`: what a memory-type operator computes for each number, where that may bind it."""
    width = {"f32": 4, "i32": 4, "bf16": 2, "u8": 1, "i8": 1, "i64": 8}
    size = lambda o: math.prod(o["shape"]) * width[o["dtype"]]
    return {"row": row, "op": op, "shape": shape, "inputs": inputs, "output": output,
            "flops": flops, "function": function, "layer": layer,
            "read_bytes": sum(size(i) for i in inputs), "write_bytes": size(output),
            "numbers": math.prod(output["shape"]), **dims}


def product(row, dims, epilogue="", op="matmul", types=("f32", "f32", "f32"), label=""):
    batch, (m, n, k) = (dims[0] if len(dims) == 4 else 1), dims[-3:]
    lead = [batch] if len(dims) == 4 else []
    inputs = [operand("A", lead + [m, k], types[0]), operand("B", lead + [k, n], types[1])]
    if epilogue == "bias_gelu":
        inputs.append(operand("bias", [n]))
    if epilogue == "residual":
        inputs.append(operand("R", [m, n]))
    extra = {"batch": batch} if lead else {}
    return case(row, op, "x".join(map(str, dims)) + label, inputs,
                operand("C", lead + [m, n], types[2]), flops=2 * batch * m * n * k,
                epilogue=epilogue, m=m, n=n, k=k, **extra)


def matmul(shapes):
    return [product("matmul", d) | {"group": g} for g, v in shapes["matmul"].items() for d in v]


def matmul_fused(shapes):
    return [product("matmul_fused", d, e, label="+" + e) for d in shapes["matmul"].get("bert", [])
            for e in ("bias_gelu", "residual")]


def batch_matmul(shapes):
    return [product("batch_matmul", d) for d in shapes["batch_matmul"]]


def int8_matmul(shapes):
    return [product("int8_matmul", d, op="int8_matmul", types=("u8", "i8", "i32"))
            for d in shapes["int8_matmul"]]


def bf16_matmul(shapes):
    return [product("bf16_matmul", d, op="bf16_matmul", types=("bf16", "bf16", "f32"))
            for d in shapes["bf16_matmul"]]


def attention(shapes):
    out = []
    for a in shapes["attention"]:
        h, q, kv, d = a["heads"], a["q"], a["kv"], a["d"]
        inputs = [operand("Q", [h, q, d]), operand("K", [h, kv, d]), operand("V", [h, kv, d])]
        out.append(case("attention", "attention", f"{h}x{q}x{kv}x{d}", inputs,
                        operand("Y", [h, q, d]), flops=4 * h * q * kv * d, heads=h, q=q, kv=kv, d=d))
    return out


def softmax(shapes):
    return [case("softmax", "softmax", f"{r}x{c}", [operand("X", [r, c])], operand("Y", [r, c]),
                 function="softmax", rows=r, columns=c) for r, c in shapes["softmax"]]


def layer_norm(shapes):
    return [case("layer_norm", "layer_norm", f"{r}x{c}",
                 [operand("X", [r, c]), operand("S", [c]), operand("B", [c])], operand("Y", [r, c]),
                 function="layer_norm", rows=r, columns=c, epsilon=1e-5) for r, c in shapes["layer_norm"]]


def reduce(shapes):
    out = []
    for r in shapes["reduce"]:
        shape, axis = r["shape"], r["axis"]
        axes = list(range(len(shape))) if axis == "all" else [axis] if axis == 0 or axis == 1 else axis
        kept = [x for d, x in enumerate(shape) if d not in axes] or [1]
        word = "x".join(map(str, shape))
        axis_word = "all" if axis == "all" else ",".join(map(str, axes))
        out.append(case("reduce", "reduce", f"{word} axis {axis_word}", [operand("X", shape)],
                        operand("Y", kept), axes=axes, shape_word=word, axis_word=axis_word,
                        extents=shape))
    return out


def transpose(shapes):
    out = []
    for s in shapes["transpose"]:
        batch, (r, c) = (s[0] if len(s) == 3 else 1), s[-2:]
        lead = [batch] if len(s) == 3 else []
        out.append(case("transpose", "transpose", "x".join(map(str, s)), [operand("X", lead + [r, c])],
                        operand("Y", lead + [c, r]), batch=batch, rows=r, columns=c,
                        shape_word="x".join(map(str, s))))
    return out


def embedding(shapes):
    """Rows of a table by their numbers; of the table only those count as read."""
    out = []
    for e in shapes["embedding"]:
        r, c, n = e["rows"], e["columns"], e["picks"]
        made = case("embedding", "embedding", f"{n} of {r}x{c}",
                    [operand("X", [r, c]), operand("I", [n], "i64")], operand("Y", [n, c]),
                    rows=r, columns=c, picks=n)
        out.append(made | {"read_bytes": n * (4 * c + 8)})
    return out


def elementwise(shapes):
    out = []
    for e in shapes["elementwise"]:
        op, n = e["op"], e["n"]
        names = ["X", "Y"] if op.startswith("add") else ["X"]
        made = case("elementwise", "elementwise", f"{op} {n}", [operand(x, [n]) for x in names],
                    operand("Z", [n]), n=n, computes=op)
        out.append(made | {"function": op, "arithmetic": "" if op.startswith("add") else op})
    return out


def pool(shapes):
    out = []
    for p in shapes["pool"]:
        o = (p["h"] + 2 * p["pad"] - p["k"]) // p["stride"] + 1
        made = case("pool", "pool", f"{p['op']} {p['c']}x{p['h']}x{p['w']} k{p['k']}s{p['stride']}",
                    [operand("X", [1, p["c"], p["h"], p["w"]])], operand("Y", [1, p["c"], o, o]),
                    **{k: p[k] for k in ("c", "h", "w", "k", "stride", "pad")})
        out.append(made | {"function": p["op"], "arithmetic": ""})
    return out


def conv(row, layer, epilogue="", algorithm="", op="conv2d", types=("f32", "f32", "f32")):
    g, k = layer["groups"], layer["k"]
    ci, co = layer["c_in"], layer["c_out"]
    o = (layer["h"] + 2 * layer["pad"] - k) // layer["stride"] + 1
    out = [layer["n"], co, o, o]
    inputs = [operand("X", [layer["n"], ci, layer["h"], layer["w"]], types[0]),
              operand("W", [co, ci // g, k, k], types[1])]
    if epilogue:
        inputs.append(operand("R", out))
    dims = {d: layer[d] for d in ("n", "c_in", "h", "w", "c_out", "k", "stride", "pad", "groups")}
    label = ("+" + epilogue if epilogue else "") + (" " + algorithm if algorithm else "")
    return case(row, op, layer["name"] + label, inputs, operand("Y", out, types[2]),
                flops=2 * layer["n"] * co * o * o * (ci // g) * k * k, epilogue=epilogue,
                algorithm=algorithm, **dims)


def conv2d(shapes):
    return [conv("conv2d", l) for l in shapes["conv2d"] if l["groups"] == 1]


def conv2d_fused(shapes):
    return [conv("conv2d_fused", l, "add_relu") for l in shapes["conv2d"] if l["groups"] == 1]


def depthwise(shapes):
    return [conv("depthwise", l) for l in shapes["conv2d"] if l["groups"] > 1]


def winograd(shapes):
    return [conv("winograd", l, algorithm="winograd") for l in shapes["conv2d"]
            if l["groups"] == 1 and l["k"] == 3 and l["stride"] == 1]


def narrow_layers(shapes):
    """The 3x3 layers, and of the 1x1 layers the strided and those that the network repeats most."""
    return [l for l in shapes["conv2d"] if l["groups"] == 1 and
            (l["k"] == 3 or l["k"] == 1 and (l["stride"] > 1 or l["times_in_resnet50"] >= 4))]


def int8_conv(shapes):
    return [conv("int8_conv", l, op="int8_conv", types=("u8", "i8", "i32"))
            for l in narrow_layers(shapes)]


def bf16_conv(shapes):
    return [conv("bf16_conv", l, op="bf16_conv", types=("bf16", "bf16", "f32"))
            for l in narrow_layers(shapes)]


ROWS = {f.__name__: f for f in (matmul, matmul_fused, batch_matmul, attention, softmax, layer_norm,
                                reduce, transpose, elementwise, embedding, pool, conv2d,
                                conv2d_fused, depthwise, winograd, int8_matmul, bf16_matmul,
                                int8_conv, bf16_conv)}


def load(rows, path=""):
    """The cases of a list of shapes; empty: the committed one."""
    with open(path or os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.json")) as f:
        shapes = json.load(f)
    # A list of one's own need not have every row's shapes.
    lists = {k: {} if k == "matmul" else [] for k in ("matmul", "batch_matmul", "softmax",
             "layer_norm", "reduce", "transpose", "elementwise", "embedding", "attention", "pool",
             "int8_matmul", "bf16_matmul", "conv2d")} | shapes
    return [c for r in rows for c in ROWS[r](lists)]

