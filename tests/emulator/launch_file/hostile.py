"""Launch files that were mutated, and arrays that are no arrays."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random

import numpy as np

VALUES = (
    "{}", "[]", "null", "''", "-1", "0", "1", "1.5", "1e400", ".nan", ".inf", "true", "off",
    "2147483647", "9223372036854775808", "9" * 32, "9" * 60, "0xfffffffffffffffff", "[1, 2, 3, 4]",
    "[[1]]", "{a: 1}", "{1: 2}", "{[1]: 2}", "!!python/object:os.system x", "&a [*a]", "017",
    "1:30",
    "\u0663", '"\\0"', "x + 5", "x + 99999999999999999999", "'x[5:1]'", "'['", "/dev/zero",
    "folder.npy", "pipe.npy", "claims.npy", "objects.npy", "negative.npy", "code.npy", "nested.npy",
    "empty.npy", "several.npz", "number.npy", "text.npy", "big.npy", "float16", "bfloat16", "int4",
    "float4_e2m1fn", "object", "'f4,f4'", "__builtins__", "finfo", "'>f4'", "complex64", "str",
    "V8",
    "longdouble", "datetime64", "<<", "|\n  text", "[100000, 100000, 100000]", "[-1]", "5e-324",
    "1.7976931348623157e308", "normal", "randint", "uniform", "arange", "full",
)  # fmt: skip
KEYS = (
    "block", "grid", "cluster", "entry", "dynamic_shared", "arguments", "arrays", "variables",
    "seeds", "schedules", "checks", "max_steps", "max_memory", "resident_clusters",
    "registers_per_thread", "pending_writes", "pending_reads", "names",
)  # fmt: skip
ARGUMENT_KEYS = (
    "name", "make", "shape", "dtype", "seed", "scale", "low", "high", "value", "expect",
    "partial", "tolerance", "address", "pointers", "tensor_maps", "array", "tensor_map", "box",
    "swizzle", "element_strides", "interleave", "fill", "strides", "atom", "packed", "im2col",
    "scalar", "bytes", "size",
    "bytes_file", "use", "zeros",
)  # fmt: skip
ARGUMENTS = (
    "make: zeros, shape: [32]", "make: normal, shape: [32]", "make: randint, shape: [8], high: 5",
    "make: uniform, shape: [9]", "make: full, shape: [32]", "array: x.npy", "scalar: 1",
    "bytes: '00'", "bytes_file: x.npy", "tensor_map: x, box: [16]", "use: x",
)  # fmt: skip
JUNK = (
    b"", b"\0" * 100, b"\xef\xbb\xbf", b"[" * 20_000, b"{" * 20_000, b"- " * 5_000, b"? " * 5_000,
    b"a: &a [*a, *a]\n", b"x" * 9_000_000, b"---\n---\n", bytes(range(256)), b"block: 32\n" * 9,
)  # fmt: skip
MARKS = (
    b"{",
    b"[",
    b":",
    b"\n",
    b"- ",
    b"&a ",
    b"*a",
    b"!",
    b"'",
    b'"',
    b"#",
    b"\t",
    b"\0",
    b"\xff",
)


def npy_files() -> None:
    """Files in the current folder whose names end like those of arrays."""

    def header(name: str, text: str) -> None:
        head = text.encode()
        size = len(head).to_bytes(2, "little")
        Path(name).write_bytes(b"\x93NUMPY\x01\x00" + size + head + bytes(64))

    layout = "{'descr': '<f4', 'fortran_order': False, 'shape': "
    header("claims.npy", layout + "(1000000000000000,)}\n")
    header("negative.npy", layout + "(-4,)}\n")
    header("objects.npy", layout.replace("<f4", "|O") + "(4,)}\n")
    header("code.npy", layout + "__import__('os').mkdir('made by code')}\n")
    header("nested.npy", "(" * 9000)
    Path("empty.npy").write_bytes(b"")
    Path("folder.npy").mkdir()
    os.mkfifo("pipe.npy")
    np.savez("several.npz", a=1, b=2)
    np.save("number.npy", np.array(3.0))
    np.save("text.npy", np.array(["x"]))
    np.save("big.npy", np.array([1, 2], ">f4"))


def hostile_launch(random: Random, base: str) -> bytes:
    """``base``, whose last line is the last argument, with something that is not expected."""
    kind = random.random()
    if kind < 0.3:
        key = random.choice(KEYS)
        kept = [line for line in base.splitlines() if not line.startswith(key + ":")]
        return ("\n".join(kept) + f"\n{key}: {random.choice(VALUES)}\n").encode()
    if kind < 0.8:
        known = random.choice(ARGUMENTS)
        if random.random() < 0.4:
            known = re.sub(r": [^,]*", lambda _: ": " + random.choice(VALUES), known, count=1)
        more = [key for key in random.sample(ARGUMENT_KEYS, 2) if key + ":" not in known]
        parts = [known, *(f"{key}: {random.choice(VALUES)}" for key in more)]
        return (base + "- {" + ", ".join(parts) + "}\n").encode()
    if kind < 0.95:
        data = bytearray(base.encode())
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(data))
            data[at : at + random.randrange(2)] = random.choice(MARKS)
        return bytes(data)
    return random.choice(JUNK)
