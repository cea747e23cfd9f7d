"""The numbers that a case is measured on."""
import zlib

import numpy as np


def to_bf16(x):
    """Bits of the nearest bf16, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def inputs_of(c):
    """The same numbers for a case in every run: floats in [-1, 1), bytes over their whole range,
    positions among a table's rows."""
    rng = np.random.default_rng(zlib.crc32(f"{c['op']} {c['shape']}".encode()))
    out = []
    for o in c["inputs"]:
        if o["dtype"] == "u8":
            out.append(rng.integers(0, 256, o["shape"], dtype=np.uint8))
        elif o["dtype"] == "i8":
            out.append(rng.integers(-128, 128, o["shape"], dtype=np.int8))
        elif o["dtype"] == "i64":
            out.append(rng.integers(0, c["rows"], o["shape"], dtype=np.int64))
        else:
            x = rng.random(o["shape"], dtype=np.float32) * 2 - 1
            out.append(to_bf16(x) if o["dtype"] == "bf16" else x)
    return out
