from __future__ import annotations

import struct
from textwrap import dedent

import pytest

from fa4gen.emulator.errors import PtxSyntaxError
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.ptx.syntax import (
    Address,
    Function,
    FunctionName,
    Immediate,
    Instruction,
    Label,
    LabelTable,
    Module,
    NotPredicate,
    Pair,
    Register,
    Sink,
    SourceLine,
    Special,
    Symbol,
    Vector,
)

HEADER = ".version 9.0\n.target sm_90a, debug\n.address_size 64\n"
REGISTERS = """
    .reg .pred %p<5>, q;
    .reg .b16 %rs<5>;
    .reg .b32 %r<10>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<5>;
    .reg .b128 %rq;
"""


def module_of(text: str) -> Module:
    return parse_module(HEADER + dedent(text))


def body_of(body: str, before: str = "") -> Function:
    """Parse a body with registers of every class."""
    text = f"{before}\n.visible .entry k(.param .u64 k_param_0)\n{{{REGISTERS}{body}\n}}"
    return module_of(text).functions["k"]


def first_of(body: str, before: str = "") -> Instruction:
    return body_of(body, before).instructions[0]


def int_(value: int) -> Immediate:
    return Immediate("int", value)


def f64(value: float) -> Immediate:
    return Immediate("f64", struct.unpack("<Q", struct.pack("<d", value))[0])


def test_the_header_and_comments() -> None:
    module = module_of('// one {\n/* two\n { */ .pragma "x";\n')
    assert module.version == (9, 0)
    assert module.target == "sm_90a"
    assert module.functions == {}


def test_an_entry() -> None:
    module = module_of("""
        .visible .entry k(
            .param .align 64 .b8 map[128],
            .param .u64 .ptr .global .align 1 p,
            .param .f32 x
        )
        .maxntid 128, 2
        .minnctapersm 1
        .explicitcluster
        .reqnctapercluster 2, 1, 1
        { ret; }
    """)
    entry = module.functions["k"]
    assert entry.entry
    assert [(p.name, p.size, p.align, p.element) for p in entry.parameters] == [
        ("map", 128, 64, "b8"),
        ("p", 8, 8, "u64"),
        ("x", 4, 4, "f32"),
    ]
    assert entry.directives == {
        "maxntid": (128, 2, 1),
        "minnctapersm": (1,),
        "explicitcluster": (),
        "reqnctapercluster": (2, 1, 1),
    }


def test_an_opcode_is_split_at_single_dots() -> None:
    instruction = first_of("fence.proxy.async.shared::cta;")
    assert instruction.opcode == "fence"
    assert instruction.modifiers == ("proxy", "async", "shared::cta")
    instruction = first_of("tcgen05.wait::ld.sync.aligned;")
    assert (instruction.opcode, instruction.modifiers[0]) == ("tcgen05", "wait::ld")
    assert first_of("mov.b32 %r1, %r2;").text == "mov.b32"


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("%r3", Register("%r3", "r", 3)),
        ("%rs2", Register("%rs2", "h", 2)),
        ("q", Register("q", "p", 5)),
        ("%rq", Register("%rq", "q", 0)),
        ("!%p2", NotPredicate(Register("%p2", "p", 2))),
        ("%f1|%p1", Pair(Register("%f1", "r", 11), Register("%p1", "p", 1))),
        ("_|%p1", Pair(Sink(), Register("%p1", "p", 1))),
        ("_", Sink()),
        ("12", int_(12)),
        ("-2147483648", int_(-(2**31))),
        ("0xFFFFFFFFU", int_(2**32 - 1)),
        ("0b101", int_(5)),
        ("017", int_(15)),
        ("7U", int_(7)),
        ("2*(3+4)-1", int_(13)),
        ("1 << 4", int_(16)),
        ("~0", int_(-1)),
        ("0f3F800000", Immediate("f32", 0x3F800000)),
        ("-0f3F800000", Immediate("f32", 0xBF800000)),
        ("0d3FF0000000000000", f64(1.0)),
        ("1.5", f64(1.5)),
        ("-2.5e-1", f64(-0.25)),
        ("%tid.x", Special("%tid.x")),
        ("%laneid", Special("%laneid")),
        ("%cluster_ctarank", Special("%cluster_ctarank")),
        ("WARP_SZ", Special("WARP_SZ")),
        ("{%r1, _, 3}", Vector((Register("%r1", "r", 1), Sink(), int_(3)))),
        ("[%rd1]", Address(Register("%rd1", "d", 1))),
        ("[%rd1+8]", Address(Register("%rd1", "d", 1), 8)),
        ("[ %rd1 + -8 ]", Address(Register("%rd1", "d", 1), -8)),
        ("[%rd1-8]", Address(Register("%rd1", "d", 1), -8)),
        ("[64]", Address(int_(64))),
        (
            "[%rd3, {%r1, 0}]",
            Address(Register("%rd3", "d", 3), 0, Vector((Register("%r1", "r", 1), int_(0)))),
        ),
    ],
)
def test_operands(text: str, operand: object) -> None:
    assert first_of(f"op.b32 {text}, %r0;").operands == (operand, Register("%r0", "r", 0))
    assert first_of(f"op.b32 {text};").operands == (operand,)


def test_symbols() -> None:
    function = body_of(
        "mov.u32 %r1, raw; mov.u32 %r1, raw+4; ld.shared.u32 %r1, [raw+8]; ld.param.u64 %rd1, "
        "[k_param_0];",
        ".extern .shared .align 16 .b8 raw[];",
    )
    plain, shifted, load, parameter = (each.operands[1] for each in function.instructions[:4])
    assert isinstance(plain, Symbol)
    raw = plain.variable
    assert (raw.space, raw.size, raw.align, raw.extern) == ("shared", 0, 16, True)
    assert shifted == Symbol(raw, 4)
    assert load == Address(Symbol(raw), 8)
    assert parameter == Address(Symbol(function.parameters[0]))


def test_guards() -> None:
    plain, negated = body_of("@%p1 trap; @!q trap;").instructions[:2]
    assert plain.guard == Register("%p1", "p", 1)
    assert not plain.guard_negated
    assert negated.guard == Register("q", "p", 5)
    assert negated.guard_negated


def test_registers_are_counted_per_class() -> None:
    function = body_of("{ .reg .b32 a, b; .reg .f64 x<3>; }")
    assert function.registers == {"p": 6, "h": 5, "r": 17, "d": 8, "q": 1}


def test_a_vector_register_is_its_components() -> None:
    function = body_of("{ .reg .v4 .s32 v; mov.s32 v.y, v.a; st.v4.s32 [%rd1], v; }")
    copy, store = function.instructions[:2]
    assert function.registers["r"] == 15 + 4
    assert store.operands[1] == Vector(tuple(Register(f"v.{at}", "r", 15 + at) for at in range(4)))
    assert copy.operands == (store.operands[1].items[1], store.operands[1].items[3])


def test_statements_share_and_span_lines() -> None:
    function = body_of("mov.b32 %r1, 1; mov.b32\n %r2,\n 2;\n\n ret;")
    texts = [(each.text, each.line) for each in function.instructions]
    first = texts[0][1]
    assert texts == [("mov.b32", first), ("mov.b32", first), ("ret", first + 4)]


def test_blocks_have_their_own_registers_and_labels() -> None:
    block = """
        {
        .reg .pred P1;
        LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2;
        @P1 bra DONE;
        bra LAB_WAIT;
        DONE:
        }
    """
    function = body_of(block + block + "bra OUT; { bra OUT; } OUT: ret;")
    targets = [
        each.operands[0].target
        for each in function.instructions
        if isinstance(each.operands[0] if each.operands else None, Label)
    ]
    assert targets == [3, 0, 6, 3, 8, 8]
    waits = [each.operands[0] for each in function.instructions if each.opcode == "mbarrier"]
    assert waits == [Register("P1", "p", 6), Register("P1", "p", 7)]


def test_a_body_ends_with_a_return() -> None:
    assert [each.text for each in body_of("").instructions] == ["ret"]
    assert [each.text for each in body_of("bra END; END:").instructions] == ["bra", "ret"]
    assert [each.text for each in body_of("ret;").instructions] == ["ret"]
    assert [each.text for each in body_of("@%p1 ret;").instructions] == ["ret", "ret"]


def test_branch_tables() -> None:
    function = body_of("""
        table: .branchtargets A, B,
            A;
        brx.idx %r1, table;
        A: trap;
        B: ret;
    """)
    assert function.instructions[0].operands == (
        Register("%r1", "r", 1),
        LabelTable("table", (1, 2, 1)),
    )


def test_source_lines() -> None:
    module = module_of("""
        .visible .entry k() {
        trap;
        .loc 1 7 3
        trap;
        .loc 2 9 0, function_name $L__info_string0, inlined_at 1 7 3
        trap;
        .loc 1 0 0 is_stmt 1
        trap;
        }
        .file 1 "/dir//a.cu", 123, 4
        .file 2 "C:\\dir\\b.h"
        .section .debug_str { $L__info_string0: .b8 95, 0 }
    """)
    sources = [each.source for each in module.functions["k"].instructions]
    assert sources[:4] == [
        None,
        SourceLine("a.cu", 7, path="/dir//a.cu"),
        SourceLine(
            "b.h", 9, "a.cu:7:3", "C:\\dir\\b.h", (SourceLine("a.cu", 7, path="/dir//a.cu"),)
        ),
        None,
    ]


def test_calls_that_were_inlined_into_each_other() -> None:
    """A helper of a helper, called twice: each place is followed to the one named last."""
    module = module_of("""
        .visible .entry k() {
        .loc 1 8 3
        .loc 1 3 3, function_name $L__info_string0, inlined_at 1 8 3
        .loc 2 8 5, function_name $L__info_string1, inlined_at 1 3 3
        trap;
        .loc 1 10 3
        .loc 1 3 3, function_name $L__info_string0, inlined_at 1 10 3
        .loc 2 8 5, function_name $L__info_string1, inlined_at 1 3 3
        .loc 2 5 5, function_name $L__info_string2, inlined_at 2 8 5
        trap;
        }
        .visible .entry other() {
        .loc 2 8 5, function_name $L__info_string1, inlined_at 1 3 3
        trap;
        }
        .file 1 "k.cu"
        .file 2 "in.h"
    """)
    first, second, *_ = module.functions["k"].instructions
    assert first.inlined == " (inlined at k.cu:3, k.cu:8)"
    assert second.inlined == " (inlined at in.h:8, k.cu:3, k.cu:10)"
    assert second.position == "in.h:5 (inlined at in.h:8, k.cu:3, k.cu:10)"
    assert second.place == "in.h:5 in.h:8:5"
    assert module.functions["other"].instructions[0].inlined == " (inlined at k.cu:3)"


def test_calls_without_end_are_cut() -> None:
    again = ".loc 1 5 1, function_name $L__info_string0, inlined_at 1 5 1\n"
    module = module_of(f'.visible .entry k() {{ {again * 1000} trap; }} .file 1 "k.cu"')
    last = module.functions["k"].instructions[0]
    assert last.source is not None
    assert len(last.source.calls) == 32
    assert last.inlined == " (inlined at k.cu:5, k.cu:5, k.cu:5, ..., k.cu:5)"


@pytest.mark.parametrize(
    ("text", "align", "size", "initial"),
    [
        (".global .u32 x;", 4, 4, None),
        (".global .align 8 .f64 x = 0d400A000000000000;", 8, 8, struct.pack("<d", 3.25)),
        (".const .align 4 .f32 x[2] = {0f3F800000, 2.5};", 4, 8, struct.pack("<2f", 1, 2.5)),
        (".global .s16 x[2][2] = {{1, -2}, {3}};", 2, 8, struct.pack("<4h", 1, -2, 3, 0)),
        (".global .b8 x[] = {1, 2, 255};", 1, 3, bytes([1, 2, 255])),
        (".shared .align 1024 .b8 x[4096];", 1024, 4096, None),
        (".global .v4 .f32 x[2];", 16, 32, None),
        (".visible .global .attribute(.managed) .align 4 .u32 x = 5;", 4, 4, b"\5\0\0\0"),
    ],
)
def test_module_variables(text: str, align: int, size: int, initial: bytes | None) -> None:
    (variable,) = module_of(text).variables
    assert (variable.align, variable.size, variable.initial) == (align, size, initial)


def test_addresses_in_initialisers() -> None:
    module = module_of("""
        .global .b8 $str[4], b;
        .global .align 8 .u64 x[3] = {generic($str), 0, b+16};
    """)
    x = module.variables[2]
    assert x.relocations == ((0, "$str", True), (16, "b", False))
    assert x.initial == bytes(16) + (16).to_bytes(8, "little")


def test_variables_of_a_body() -> None:
    function = body_of(".local .align 8 .b8 depot[64]; .shared .u32 s; mov.u64 %rd1, depot;")
    assert [(each.name, each.space, each.size) for each in function.variables] == [
        ("depot", "local", 64),
        ("s", "shared", 4),
    ]


def test_functions_and_calls() -> None:
    module = module_of("""
        .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;
        .func stop() .noreturn ;
        .func (.param .b32 r) f(.param .b32 a) ;
        .entry k() {
            .reg .b32 %r<2>;
            .param .b32 x; .param .b32 y;
            call.uni (y), f, (x);
            call stop;
            call (_), vprintf, (%r0, 1);
        }
        .func (.param .b32 r) f(.param .b32 a) { ret; }
    """)
    assert set(module.functions) == {"vprintf", "stop", "f", "k"}
    assert module.functions["vprintf"].instructions == ()
    assert len(module.functions["f"].instructions) == 1
    first, second, third = module.functions["k"].instructions[:3]
    x, y = module.functions["k"].variables
    assert first.operands == (Vector((Symbol(y),)), FunctionName("f"), Vector((Symbol(x),)))
    assert second.operands == (Vector(()), FunctionName("stop"), Vector(()))
    assert third.operands[2] == Vector((Register("%r0", "r", 0), int_(1)))


def test_formals_in_registers_are_loaded_and_stored() -> None:
    module = module_of("""
        .func (.reg .b32 out) f(.reg .b32 in) { add.u32 out, in, 1; ret; }
    """)
    assert [each.text for each in module.functions["f"].instructions] == [
        "ld.param.b32",
        "add.u32",
        "st.param.b32",
        "ret",
    ]


def test_forms_of_the_asynchronous_instructions() -> None:
    function = body_of("""
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [%r1], [%rd1, {%r2, %r3}], [%r4], %rs1;
        tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r2], %rd1, %r3, {%r1, %r1, %r1, %r1}, q;
        tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3 + 16];
        elect.sync _|%p1, 0xffffffff;
        mbarrier.arrive.shared::cta.b64 _, [%r1];
        wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2,
            %p1, 1, 1, 0, 0;
    """)
    copy = function.instructions[0]
    assert copy.modifiers[-1] == "mbarrier::complete_tx::bytes"
    assert [type(operand).__name__ for operand in copy.operands] == [
        "Address",
        "Address",
        "Address",
        "Register",
    ]
    assert len(function.instructions) == 7


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.b32 %r1, %r10;", r"line \d+: register %r10 is not declared"),
        ("mov.b32 %r1, %r01;", "register %r01 is not declared"),
        ("mov.b32 %r1, nowhere;", "nowhere is not declared"),
        ("bra nowhere;", "label nowhere is not declared"),
        ("bra IN; { IN: trap; }", "label IN is not declared"),
        ("brx.idx %r1, nowhere;", "no .branchtargets named nowhere"),
        ("call nowhere;", "function nowhere is not declared"),
        ("mov.b32 %r1, %r2", r"expected ',' or ';' after an operand, found '}'"),
        ("mov.b32 %r1 %r2;", r"expected ',' or ';' after an operand, found '%r2'"),
        ("ld.u32 %r1, [%rd1;", "expected ']' after an address, found ';'"),
        ("mov.b32 %r1, ;", "expected an operand, found ';'"),
        ("@%r1 trap;", "%r1 guards an instruction but is not a predicate"),
        ("@_ trap;", "_ is not declared"),
        (".reg .b32 %r<3>;", "register %r is already declared"),
        (".reg .b32 %r1;", "register %r1 is already declared"),
        (".reg .v4 .b32 v<2>;", "numbered vector registers are not supported"),
        (".reg .v2 .pred v;", "vectors of predicates do not exist"),
        (".reg .v2 .b32 v; mov.b32 %r1, v.z;", r"expected an operand, found 'v.z'"),
        (".reg .b33 v;", "expected a type such as .b32, found '.b33'"),
        (".strange 1;", "expected a statement, found '.strange'"),
        ("A: A: trap;", "label A is already declared"),
        (".loc 9 1 1", "file 9 is not declared"),
        ("mov.b32 %r1, 1.5+1;", "constant expressions of floating numbers"),
        ("?", r"expected an instruction, found '\?'"),
    ],
)
def test_errors_in_a_body(body: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message):
        body_of(body)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".entry k() .strange 1 { }", "expected a performance directive or a body"),
        (".entry k() { trap; ", "expected an instruction, found the end of the text"),
        (".entry k() { } .entry k() { }", "function k is already defined"),
        (".entry k(.param .b32 a, .param .b32 a) { }", "parameter a is already declared"),
        (".global .u32 x; .global .u32 x;", "variable x is already declared"),
        (".global .u32 x[1] = {1, 2};", "has 2 elements, expected at most 1"),
        (".global .u64 x = nowhere;", "nowhere is not declared"),
        (".global .f32 x = 1e300;", r"1e\+300 does not fit a \.f32"),
        (".global .align 3 .u32 x;", "alignment 3 is not a power of two"),
        (".global .texref t;", "expected a type such as .b32, found '.texref'"),
        ("hello", "expected a directive, a variable or a function, found 'hello'"),
        (".section .debug_info { .b8 1", "expected '}', found the end of the text"),
    ],
)
def test_errors_in_a_module(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message):
        module_of(text)


def test_a_module_without_a_header() -> None:
    with pytest.raises(PtxSyntaxError, match=r"needs \.version and \.target"):
        parse_module(".visible .entry k() { ret; }")
    with pytest.raises(PtxSyntaxError, match="line 1: expected address size 64, found '32'"):
        parse_module(".address_size 32")


def test_an_error_names_its_line() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse_module(HEADER + ".entry k()\n{\n  ret;\n  mov.b32 %x, 1;\n}\n")
    assert caught.value.line == 7
