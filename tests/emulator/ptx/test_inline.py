from __future__ import annotations

from textwrap import dedent

import pytest

from fa4gen.emulator.errors import EmulatorError, LaunchError
from fa4gen.emulator.ptx.inline import flatten
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Label,
    LabelTable,
    Operand,
    Register,
    Symbol,
    Vector,
)

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
DOUBLE = """
    .func (.param .b32 out) double(.param .b32 in) {
        .reg .b32 %r<2>;
        .reg .pred %p<1>;
        ld.param.u32 %r0, [in];
        setp.eq.u32 %p0, %r0, 0;
        @%p0 bra SKIP;
        add.u32 %r1, %r0, %r0;
        st.param.b32 [out], %r1;
        @%p0 ret;
    SKIP:
        ret;
    }
"""
CALL = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r0; call (y), double, (x); }"


def flat(text: str) -> Function:
    return flatten(parse_module(HEADER + dedent(text)), "k")


def flat_body(body: str, before: str = DOUBLE) -> Function:
    return flat(f"{before}\n.entry k(.param .b32 p) {{ .reg .b32 %r<3>; .reg .pred q; {body} }}")


def shown(operand: Operand) -> str:
    match operand:
        case Register(name):
            return name
        case Symbol(variable):
            return variable.name
        case Address(base):
            return f"[{shown(base)}]"
        case Label(_, target):
            return f"->{target}"
        case LabelTable(_, targets):
            return f"->{targets}"
        case Immediate(_, bits):
            return str(bits)
        case Vector(items):
            return "{" + " ".join(map(shown, items)) + "}"
    return str(operand)


def listing(function: Function) -> list[str]:
    lines = []
    for each in function.instructions:
        sign = "!" if each.guard_negated else ""
        guard = f"@{sign}{each.guard.name} " if each.guard else ""
        lines.append(" ".join([guard + each.text, *map(shown, each.operands)]))
    return lines


def test_an_entry_without_calls_stays_as_it_is() -> None:
    text = HEADER + ".entry k(.param .b32 p) { .reg .b32 a; A: ld.param.b32 a, [p]; bra A; }"
    module = parse_module(text)
    function = flatten(module, "k")
    assert function.instructions[0] is module.functions["k"].instructions[0]
    assert listing(function) == ["ld.param.b32 a [p]", "bra ->0"]


def test_a_call_becomes_the_body() -> None:
    function = flat_body(f"ld.param.b32 %r0, [p]; {CALL} ret;")
    assert listing(function) == [
        "ld.param.b32 %r0 [p]",
        "st.local.b32 [x] %r0",
        "ld.local.u32 %r0@1 [x]",
        "setp.eq.u32 %p0@1 %r0@1 0",
        "@%p0@1 bra ->8",
        "add.u32 %r1@1 %r0@1 %r0@1",
        "st.local.b32 [y] %r1@1",
        "@%p0@1 bra.uni ->9",
        "bra.uni ->9",
        "ret",
    ]
    assert function.registers == {"p": 2, "h": 0, "r": 5, "d": 0, "q": 0}
    assert [(each.name, each.space) for each in function.variables] == [
        ("x", "local"),
        ("y", "local"),
    ]


def test_every_call_has_its_own_registers() -> None:
    function = flat_body(CALL + CALL)
    loads = [each.operands[0] for each in function.instructions if each.text == "ld.local.u32"]
    assert loads == [Register("%r0@1", "r", 3), Register("%r0@2", "r", 5)]
    assert function.registers["r"] == 7
    assert listing(function)[-2] == "bra.uni ->16"


def test_branches_of_the_caller_are_shifted() -> None:
    function = flat_body(
        f"""
        t: .branchtargets A, B;
        A: {CALL}
        B: bra A;
        brx.idx %r1, t;
        """
    )
    assert listing(function)[-2:] == ["bra ->0", "brx.idx %r1 ->(0, 8)"]
    assert function.labels["B"] == 8


def test_a_call_under_a_predicate() -> None:
    for guard, around in (("@q", "@!q"), ("@!q", "@q")):
        lines = listing(flat_body(CALL.replace("call", f"{guard} call") + "trap;"))
        assert lines[1] == f"{around} bra ->9"
        assert lines[9] == "trap"


def test_registers_and_numbers_as_arguments() -> None:
    lines = listing(flat_body("call (%r1), double, (7);"))
    assert lines[0] == "st.local.b32 [in@1] 7"
    assert lines[-2:] == ["ld.local.b32 %r1 [out@1]", "ret"]


def test_formals_in_registers() -> None:
    lines = listing(
        flat_body(
            "call (%r1), f, (%r2);",
            ".func (.reg .b32 out) f(.reg .b32 in) { add.u32 out, in, 1; ret; }",
        )
    )
    assert lines == [
        "st.local.b32 [in@1] %r2",
        "ld.local.b32 in@1 [in@1]",
        "add.u32 out@1 in@1 1",
        "st.local.b32 [out@1] out@1",
        "bra.uni ->5",
        "ld.local.b32 %r1 [out@1]",
        "ret",
    ]


def test_calls_of_calls() -> None:
    outer = ".func outer() { .reg .b32 %r<1>; " + CALL + " ret; }"
    function = flat_body("call outer; call outer; ret;", DOUBLE + outer)
    assert sum(each.opcode == "add" for each in function.instructions) == 2
    assert all(each.opcode != "call" for each in function.instructions)
    assert function.registers["r"] == 3 + 2 * (1 + 2)


def test_variables_of_a_callee() -> None:
    callee = """
        .func f() {
            .local .b32 mine; .shared .b32 common; .reg .b64 d;
            mov.u64 d, mine; mov.u64 d, common; ret;
        }
    """
    function = flat_body("call f; call f;", callee)
    assert [each.name for each in function.variables] == ["mine@1", "common", "mine@2"]
    assert listing(function)[:2] == ["mov.u64 d@1 mine@1", "mov.u64 d@1 common"]
    assert listing(function)[3:5] == ["mov.u64 d@2 mine@2", "mov.u64 d@2 common"]


def test_printing_prints_nothing() -> None:
    before = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);"
    in_memory = ".param .b32 y; call.uni (y), vprintf, (0, 0); ld.param.b32 %r0, [y]; ret;"
    assert listing(flat_body(in_memory, before)) == [
        "st.local.b32 [y] 0",
        "ld.local.b32 %r0 [y]",
        "ret",
    ]
    assert listing(flat_body("call (%r1), vprintf, (0, 0); ret;", before))[0] == "mov.b32 %r1 0"
    assert listing(flat_body("call (_), vprintf, (0, 0); ret;", before)) == ["ret"]


def test_a_failed_assertion_is_a_trap() -> None:
    lines = listing(flat_body("@q call __assertfail; ret;", ".extern .func __assertfail();"))
    assert lines == ["@!q bra ->2", "trap", "ret"]


@pytest.mark.parametrize(
    ("before", "body", "message"),
    [
        (".extern .func malloc();", "call malloc;", r"line \d+: function malloc is not modelled"),
        (".func f() { call f; }", "call f;", "recursion is not supported: k calls f calls f"),
        (
            ".func g(); .func f() { call g; } .func g() { call f; }",
            "call f;",
            "k calls f calls g calls f",
        ),
        ("", ".reg .b64 f; call f;", "indirect calls are not supported"),
        (DOUBLE, "call double, (1);", "double has 1 results, the call gives 0"),
        (
            DOUBLE,
            ".param .b8 x; call (%r1), double, (x);",
            "in has 4 bytes, x 1",
        ),
    ],
)
def test_calls_that_cannot_be_inlined(before: str, body: str, message: str) -> None:
    with pytest.raises(EmulatorError, match=message):
        flat_body(body, before)


def test_an_unknown_entry() -> None:
    module = parse_module(HEADER + ".func f() { } .entry a() { } .entry b() { }")
    for name in ("c", "f"):
        with pytest.raises(LaunchError, match=f"no entry {name}; it has a, b"):
            flatten(module, name)
