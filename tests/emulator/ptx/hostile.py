"""PTX that no compiler writes: nested, long, huge, mutated."""

from __future__ import annotations

import re
from random import Random

from tests.emulator.kernel import kernel

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"
STATEMENTS = (
    "mov.u32 %r1, %tid.x;", "mov.b64 %d1, {%r1, %r2};", "mov.b64 {%r1, %r2}, %d1;",
    "add.u32 %r1, %r2, 7;", "add.f32 %r1, %r2, 0f3f800000;", "mad.lo.u32 %r1, %r2, %r3, 4;",
    "fma.rn.f32x2 %d1, %d2, %d3, %d4;", "setp.lt.u32 %p1, %r1, 16;", "@%p1 add.u64 %d1, %d2, 1;",
    "setp.ge.and.s32 %p1|%p2, %r1, 3, %p3;", "selp.b32 %r1, %r2, %r3, %p1;",
    "cvt.rn.f32.s32 %r1, %r2;",
    "cvt.u64.u32 %d1, %r1;", "lop3.b32 %r1, %r2, %r3, %r4, 0x96;",
    "prmt.b32 %r1, %r2, %r3, 0x5410;",
    "ld.shared.u32 %r1, [tile];", "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [tile+16];",
    "st.shared.b32 [tile+4], %r1;", "st.global.u32 [%d0], %clock64;", "ld.global.u32 %r1, [%d0];",
    "atom.shared.add.u32 %r1, [tile], 1;", "red.global.add.u32 [%d0], 1;", "bar.sync 0;",
    "barrier.cluster.arrive.aligned;", "mbarrier.init.shared.b64 [tile], 1;",
    "mbarrier.arrive.shared::cta.b64 %d1, [tile];", "elect.sync %r1|%p1, 0xffffffff;",
    "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, 0xffffffff;",
    "vote.sync.ballot.b32 %r1, %p1, 0xffffffff;",
    "cp.async.ca.shared.global [tile], [%d0], 16;", "cp.async.wait_all;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d0], 16, [tile];",
    "fence.proxy.async.shared::cta;", "mapa.shared::cluster.u32 %r1, %r2, 0;",
    "wgmma.fence.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", "nanosleep.u32 20;",
    "setmaxnreg.inc.sync.aligned.u32 40;", "tcgen05.fence::before_thread_sync;",
    "div.u32 %r1, %r2, 0;",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [tile];", "isspacep.shared %p1, %d0;",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};",
)  # fmt: skip
OPERANDS = (
    "%r1", "%d1", "%h1", "%p1", "%q1", "!%p1", "_", "{%r1, %r2}", "{%h1, %h2}", "{}",
    "{%r1, {%r2}}",
    "[%d1]", "[%r1]", "[%d1, {%r1, %r2}]", "[tile]", "tile", "[tile+99999999999]", "[0]", "[-1]",
    "0", "-1", "4294967295", "18446744073709551615", "18446744073709551616", "0f3f800000",
    "0d3ff0000000000000", "1.5", "%tid", "%tid.x", "%tid.w", "%clock64", "%pm0", "%r1|%p1", "k",
    "[p0]", "~0", "(1 << 63)", "9" * 6000, "\u0663", "0x1p3", "%r300",
)  # fmt: skip
WORDS = (
    "u32",
    "s64",
    "f32",
    "b128",
    "pred",
    "sync",
    "aligned",
    "cta",
    "v2",
    "x8",
    "sat",
    "ftz",
    "rn",
)


def module(declarations: str = "", body: str = "", directives: str = "") -> str:
    """A module with one entry, which has a pointer as its parameter."""
    return (
        f"{HEAD}{declarations}\n.visible .entry k(.param .u64 out) {directives} {{\n"
        ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>;\n"
        f"{body}\nret;\n}}\n"
    )


def calls(depth: int, each: int) -> str:
    """Functions that call the one before so many times each."""
    made = [".func f0() { ret; }"]
    for index in range(1, depth):
        made.append(f".func f{index}() {{ {f'call f{index - 1}; ' * each}ret; }}")
    return "\n".join(made)


NESTED = 20_000
REFUSED = [
    ("", "needs .version and .target"),
    ("/*" * 50_000, "line 1: a comment begins with /* and does not end"),
    (module(body="mov.u32 %r1, " + "(" * 50_000 + "1" + ")" * 50_000 + ";"), "more than 100 b"),
    (module(body="mov.u32 %r1, " + "-" * NESTED + "1;"), "line 7: more than 100 brackets"),
    (module(body="mov.b64 %d1, " + "{" * NESTED + "%r1" + "}" * NESTED + ";"), "more than 100 b"),
    (module(body="{" * NESTED + "}" * NESTED), "line 7: more than 100 blocks inside each other"),
    (module(".global .b32 x[1] = " + "{" * NESTED + "1" + "}" * NESTED + ";"), "line 4: more"),
    (module(calls(2000, 1), "call f1999;"), "more than 100 calls inside each other"),
    (module(calls(30, 2), "call f29;"), "it accepts 20000 calls and 1000000 instructions"),
    (module(body="add." + "y." * 1000 + "u32 %r1;"), "an opcode of 2007 characters"),
    (module(body=f"mov.u32 %r{'1' * 5000}, 1;"), "is not declared"),
    (module(body=f"mov.u32 %r1, {'9' * 5000};"), "'99999999"),
    (module(body="mov.u64 %d1, 18446744073709551616;"), "does not fit into 64 bits"),
    (module(body="mov.u32 %r1, \u0663;"), "line 7: expected an operand, found '\u0663'"),
    (module(body="mov.u32 %r1, %tid;"), "%tid has no value here; it has %tid.x, %tid.y and %tid.z"),
    (module(body="setp.eq.u32 %r1, %r2, 1;"), "line 7: setp.eq.u32 is not modelled: %r1 is not a"),
    (module(body="mbarrier.arrive.shared::cta.b64 _;"), "its 1 operands are not those that it has"),
    (module(body="wgmma.wait_group.sync.aligned;"), "its 0 operands are not those that it has"),
    (module(body="setmaxnreg.inc.sync.aligned.u32;"), "its 0 operands are not those that it has"),
    (module().replace("sm_90a", "sm_999"), "line 2: the target sm_999 is not known"),
    (module().replace("sm_90a", "sm_90b"), "line 2: the target sm_90b is not known"),
    (module().replace("sm_90a", "sm_120a"), "line 2: the target sm_120a is not known"),
    (module().replace("sm_90a", "foo"), "line 2: the target foo is not known"),
    (module(body=".reg .b32 %x<99999999999999999999>;"), "number of registers, found one above"),
]  # fmt: skip
TOO_LARGE = [
    (module(body=".reg .b32 %x<2000000000>; mov.u32 %x1, 1;"), "GiB of registers"),
    (module(body=".local .b8 s[8589934592]; mov.u64 %d1, s;"), "8 GiB of local memory"),
    (module(f".global .b8 x[{1 << 40}];"), "global memory of 1 TiB"),
    (module(f".global .align {1 << 40} .b8 x[4];"), "far apart"),
    (module(body=f".shared .b8 s[{1 << 40}];"), "bytes of shared memory"),
]  # fmt: skip


def hostile_ptx(random: Random) -> bytes:
    """A kernel with statements, tokens or bytes that do not fit."""
    kind = random.random()
    if kind < 0.6:
        body = "\n".join(_statement(random) for _ in range(random.randint(1, 3)))
        return kernel(body, shared=4096, target=random.choice(("sm_90a", "sm_100a"))).encode()
    if kind < 0.75:
        return random.choice((*REFUSED, *TOO_LARGE))[0].encode()
    text = kernel("\n".join(random.sample(STATEMENTS, 6)), shared=4096)
    if kind < 0.9:
        tokens = re.findall(r"[%.\w]+|\s+|.", text)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(tokens))
            tokens[at] = random.choice(("", random.choice(tokens), random.choice(OPERANDS)))
        return "".join(tokens).encode()
    data = bytearray(text.encode())
    for _ in range(random.randint(1, 6)):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def _statement(random: Random) -> str:
    """A statement with another operand, one more, one less, or other modifiers."""
    opcode, _, rest = random.choice(STATEMENTS).rstrip(";").partition(" ")
    if opcode.startswith("@"):
        opcode, _, rest = rest.partition(" ")
    operands = re.split(r", *(?![^{\[]*[}\]])", rest) if rest else []
    kind = random.random()
    at = random.randrange(len(operands) + 1)
    if kind < 0.5 and operands:
        operands[at % len(operands)] = random.choice(OPERANDS)
    elif kind < 0.6 and operands:
        del operands[at % len(operands)]
    elif kind < 0.7:
        operands.insert(at, random.choice(OPERANDS))
    elif kind < 0.9:
        words = opcode.split(".")
        words.insert(random.randrange(len(words)) + 1, random.choice(WORDS))
        opcode = ".".join(words)
    guard = random.choice(("", "", "@%p1 ", "@!%p2 "))
    return f"{guard}{opcode} {', '.join(operands)};"
