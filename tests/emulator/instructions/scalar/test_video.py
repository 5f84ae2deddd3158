"""Video instructions against the PTX ISA's steps on whole numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.instructions.scalar.definitions import clamp
from tests.emulator.instructions.scalar.definitions import whole as number
from tests.emulator.kernel import clean

RNG = np.random.default_rng(1)
HARD = np.array(
    [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F80FF01, 0x80007FFF, 0x0180FF7F], np.uint32
)
A, B = (x.reshape(-1) for x in np.meshgrid(HARD, HARD))
A, B = (np.concatenate([x, RNG.integers(0, 1 << 32, 192, np.uint32)]) for x in (A, B))
C = RNG.integers(0, 1 << 32, len(A), np.uint32)
TYPES = ("u32", "s32")


def executed(text: str) -> list[int]:
    body = f"""mov.u32 %r0, %tid.x; mul.wide.u32 %d5, %r0, 4; add.u64 %d6, %d0, %d5;
    ld.global.u32 %r1, [%d6]; ld.global.u32 %r2, [%d6+1024]; ld.global.u32 %r3, [%d6+2048];
    {text} st.global.u32 [%d6+3072], %r4;"""
    data = np.stack([A, B, C, np.zeros_like(A)])
    clean(body, data, block=256)
    return data[3].tolist()


PLAIN = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "absdiff": lambda a, b: abs(a - b),
    "min": min,
    "max": max,
    "avrg": lambda a, b: (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1,
}
TESTS = {"lt": lambda a, b: a < b, "ge": lambda a, b: a >= b, "ne": lambda a, b: a != b}
SECOND = {"": lambda t, c: t, "add": lambda t, c: t + c, "min": min, "max": max}


def check(text: str, wanted) -> None:
    words = zip(executed(text), A.tolist(), B.tolist(), C.tolist(), strict=True)
    for found, a, b, c in words:
        assert found == wanted(a, b, c) & 0xFFFFFFFF, (text, hex(a), hex(b), hex(c))


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("name", ["add", "sub", "absdiff", "min", "max"])
def test_scalars(name: str, second: str) -> None:
    for number_of_form in (0, 3, 5, 6):
        d, ta, tb = (TYPES[number_of_form >> n & 1] for n in range(3))
        for sat in ("", ".sat"):
            last = ", %r3;" if second else ";"
            text = f"v{name}.{d}.{ta}.{tb}{sat}{'.' * bool(second)}{second} %r4, %r1, %r2{last}"

            def wanted(a, b, c, d=d, ta=ta, tb=tb, sat=sat):
                value = PLAIN[name](number(a, ta), number(b, tb))
                return SECOND[second](clamp(value, d) if sat else value, number(c, d))

            check(text, wanted)


@pytest.mark.parametrize("test", TESTS)
def test_comparisons(test: str) -> None:
    for ta, tb in (("u32", "s32"), ("s32", "s32"), ("u32", "u32")):
        check(
            f"vset.{ta}.{tb}.{test}.add %r4, %r1, %r2, %r3;",
            lambda a, b, c, ta=ta, tb=tb: TESTS[test](number(a, ta), number(b, tb)) + c,
        )


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("name", ["vshl", "vshr"])
def test_shifts(name: str, mode: str) -> None:
    for kind in TYPES:

        def wanted(a, b, c, kind=kind):
            count = min(b, 32) if mode == "clamp" else b & 31
            value = number(a, kind)
            return value << count if name == "vshl" else value >> count

        check(f"{name}.{kind}.{kind}.u32.{mode} %r4, %r1, %r2;", wanted)


@pytest.mark.parametrize("scale", ["", ".shr7", ".shr15"])
@pytest.mark.parametrize("sat", ["", ".sat"])
@pytest.mark.parametrize("one", ["", ".po"])
def test_products(one: str, sat: str, scale: str) -> None:
    for ta, tb in (("u32", "u32"), ("u32", "s32"), ("s32", "s32")):
        final = "s32" if "s32" in (ta, tb) else "u32"

        def wanted(a, b, c, ta=ta, tb=tb, final=final):
            total = number(a, ta) * number(b, tb) + number(c, final) + bool(one)
            total >>= int(scale[4:] or 0)
            return clamp(total, final) if sat else total

        check(f"vmad.{final}.{ta}.{tb}{one}{sat}{scale} %r4, %r1, %r2, %r3;", wanted)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", [*PLAIN, "set"])
def test_parts(name: str, count: int) -> None:
    bits = 32 // count
    for number_of_form in (0, 3, 5, 6):
        d, ta, tb = (TYPES[number_of_form >> n & 1] for n in range(3))
        for more in ("", ".sat", ".add") if name != "set" else ("", ".add"):
            types = f"{ta}.{tb}.lt" if name == "set" else f"{d}.{ta}.{tb}"

            def wanted(a, b, c, d=d, ta=ta, tb=tb, more=more):
                operation = TESTS["lt"] if name == "set" else PLAIN[name]
                whole = 0
                for part in range(count):
                    x, y = (
                        number(w >> part * bits, f"{t[0]}{bits}") for w, t in ((a, ta), (b, tb))
                    )
                    value = int(operation(x, y))
                    if more == ".add":
                        whole += value
                        continue
                    value = clamp(value, f"{d[0]}{bits}") if more else value
                    whole |= (value & (1 << bits) - 1) << part * bits
                return whole + c if more == ".add" else whole

            check(f"v{name}{count}.{types}{more} %r4, %r1, %r2, %r3;", wanted)
