"""What a case gives in float64, and how far float32 may be off it: bounds derived from the number of
roundings (unit roundoff u, sums in any order), not from what any library gives."""
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from operands import from_bf16

U = 2.0**-24
LARGE = 4e9  # floating-point operations beyond which rows are sampled
ERF = 1e-6  # of the argument: the usual approximations of erf stay below half of it


def matmul(c, x):
    """Value, bound and the rows (of each matrix) that they are for."""
    a, b = (from_bf16(v) if v.dtype == np.uint16 else v for v in x[:2])
    m, k = c["m"], c["k"]
    rows = np.arange(m)
    if c["flops"] > LARGE:
        rows = np.unique(np.concatenate([[0, m - 1], np.linspace(1, m - 2, 46).astype(int)]))
    a, b = a[..., rows, :].astype(np.float64), b.astype(np.float64)
    value = a @ b
    if c["output"]["dtype"] == "i32":
        return value, np.zeros_like(value), rows
    bound = (k + 2) * U * (np.abs(a) @ np.abs(b))
    if c.get("epilogue") == "residual":
        value = value + x[2][rows]
        bound = bound + U * np.abs(value)
    if c.get("epilogue") == "bias_gelu":
        z = value + x[2]
        value, bound = gelu(z), 1.2 * (bound + U * np.abs(z)) + ERF * np.abs(z)
    return value, bound, rows


def gelu(z):
    return 0.5 * z * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def windows(c, x, fill):
    p, s = c["pad"], c["stride"]
    x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=fill)
    return sliding_window_view(x, (c["k"], c["k"]), axis=(2, 3))[:, :, ::s, ::s]


def convolve(c, x, w):
    g = c["groups"]
    v = windows(c, x.astype(np.float64), 0)  # n, ci, oh, ow, k, k
    w = w.astype(np.float64)
    if g > 1:  # one channel a group
        return np.einsum("nchwij,cij->nchw", v, w[:, 0])
    n, ci, oh, ow, k, _ = v.shape
    columns = v.transpose(1, 4, 5, 0, 2, 3).reshape(ci * k * k, -1)
    return (w.reshape(w.shape[0], -1) @ columns).reshape(-1, n, oh, ow).transpose(1, 0, 2, 3)


def conv2d(c, x):
    x = [from_bf16(v) if v.dtype == np.uint16 else v for v in x]
    if c["output"]["dtype"] == "i32":
        value = convolve(c, x[0], x[1])
        return value, np.zeros_like(value)
    terms = (c["c_in"] // c["groups"]) * c["k"] ** 2
    value = convolve(c, x[0], x[1])
    bound = (terms + 2) * U * convolve(c, np.abs(x[0]), np.abs(x[1]))
    if c["epilogue"] == "add_relu":
        value = value + x[2]
        bound = bound + U * np.abs(value)
        value = np.maximum(value, 0)
    return value, bound


def rows_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax(c, x):
    v = x[0].astype(np.float64)
    value = rows_softmax(v)
    return value, value * U * (c["columns"] + 16 + 2 * (v.max(-1, keepdims=True) - v))


def layer_norm(c, x):
    v, s, b = (t.astype(np.float64) for t in x)
    n = c["columns"]
    mean = v.mean(-1, keepdims=True)
    deviation = np.sqrt(v.var(-1, keepdims=True) + c["epsilon"])
    normal = (v - mean) / deviation
    of_mean = n * U * np.abs(v).mean(-1, keepdims=True) + 4 * U * np.abs(v)
    bound = np.abs(s) * (of_mean / deviation + np.abs(normal) * (n + 8) * U) + 4 * U * np.abs(b)
    return normal * s + b, bound


def reduce(c, x):
    v = x[0].astype(np.float64)
    axes = tuple(c["axes"])
    return v.sum(axes), v.size / max(1, v.sum(axes).size) * U * np.abs(v).sum(axes)


def transpose(c, x):
    value = np.swapaxes(x[0], -1, -2).astype(np.float64)
    return value, np.zeros_like(value)


def embedding(c, x):
    value = x[0][x[1]].astype(np.float64)
    return value, np.zeros_like(value)


def elementwise(c, x):
    v = x[0].astype(np.float64)
    op = c["function"]
    if op == "add" or op == "add_relu":
        value = v + x[1]
        return (np.maximum(value, 0) if op == "add_relu" else value), U * np.abs(value)
    if op == "exp":
        return np.exp(v), np.exp(v) * U * (4 + np.abs(v))
    if op == "gelu":
        return gelu(v), ERF * np.abs(v)
    value = v / (1 + np.exp(-v))
    return value, np.abs(value) * U * (8 + np.abs(v))


def pool(c, x):
    if c["function"] == "max":
        value = windows(c, x[0], -np.inf).max((-1, -2)).astype(np.float64)
        return value, np.zeros_like(value)
    v = windows(c, x[0].astype(np.float64), 0)
    return v.mean((-1, -2)), (c["k"] ** 2 + 2) * U * np.abs(v).mean((-1, -2))


def attention(c, x):
    q, k, v = (t.astype(np.float64) for t in x)
    scale = 1 / math.sqrt(c["d"])
    scores = q @ np.swapaxes(k, 1, 2) * scale
    off = (c["d"] + 4) * U * (np.abs(q) @ np.swapaxes(np.abs(k), 1, 2)) * scale
    p = rows_softmax(scores)
    relative = 2 * off.max(-1, keepdims=True) + U * (2 * c["kv"] + 20 + 2 * np.ptp(scores, -1)[..., None])
    return p @ v, relative * (p @ np.abs(v))


FUNCTIONS = {"matmul": matmul, "int8_matmul": matmul, "bf16_matmul": matmul, "conv2d": conv2d,
             "int8_conv": conv2d, "bf16_conv": conv2d,
             "softmax": softmax, "layer_norm": layer_norm, "reduce": reduce, "transpose": transpose,
             "elementwise": elementwise, "embedding": embedding, "pool": pool, "attention": attention}


class Expected:
    """The reference of a case; check() says what is wrong with a result, or nothing."""

    def __init__(self, c, x):
        self.c, self.x = c, x
        self.value, self.bound, *rest = FUNCTIONS[c["op"]](c, x)
        self.rows = rest[0] if rest else None

    def check(self, path):
        o = self.c["output"]
        got = np.fromfile(path, dtype=np.int32 if o["dtype"] == "i32" else np.float32)
        got = got.reshape(o["shape"])
        whole = got
        if self.rows is not None:
            got = got[..., self.rows, :]
        got = got.reshape(self.value.shape).astype(np.float64)
        # A number below the smallest normal one may be flushed.
        off = np.abs(got - self.value) / (self.bound + 1e-37)
        if not np.all(off <= 1):
            at = np.unravel_index(np.nanargmax(np.where(np.isnan(off), np.inf, off)), off.shape)
            return (f"wrong at {list(map(int, at))}: {got[at]!r} where {self.value[at]!r} "
                    f"+- {self.bound[at]:.2g} is right")
        if self.rows is not None and len(self.rows) < self.c["m"]:
            return self.check_all_rows(whole)
        return ""

    def check_all_rows(self, got):
        """C r = A (B r) for a vector r of signs: the rows that were not sampled."""
        a, b = self.x[0].astype(np.float64), self.x[1]
        r = np.random.default_rng(1).choice([-1.0, 1.0], b.shape[-1])
        off = np.abs(got @ r - a @ (b @ r))
        limit = (self.c["k"] + 2) * U * (np.abs(a) @ np.abs(b).sum(-1, dtype=np.float64))
        if not np.all(off <= limit):
            return f"row {int(np.argmax(off / limit))} is wrong (all columns together)"
        return ""
