from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.toolchain.lint import RULES, lint
from fa4gen.toolchain.model import Resources
from fa4gen.toolchain.report import function_frames

CLEAN = """\
ptxas info    : 44 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 1200 bytes smem
ptxas info    : Compile time = 513.352 ms
"""
PREFIX = "ptxas info    : "
SERIALIZED = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to "


def resources(**values: int) -> Resources:
    return Resources(**{field.name: 0 for field in fields(Resources)} | values)


def codes(log: str) -> list[str]:
    return [finding.code for finding in lint(log, resources())]


def test_a_clean_log() -> None:
    assert lint(CLEAN, resources(registers=128, static_shared_bytes=1200)) == ()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "C7508",
            "'setmaxnreg' ignored; unable to determine register count at entry.",
        ),
        ("C7508", "'setmaxnreg' ignored to maintain minimum register requirements."),
        ("C7509", SERIALIZED + "the presence of Extern calls in the function 'k'"),
        ("C7510", SERIALIZED + "wgmma pipeline crossing function boundary at a function call"),
        ("C7511", SERIALIZED + "insufficient register resources for the wgmma pipeline in line 9"),
        ("C7512", SERIALIZED + "insufficient register resources for the function 'k'"),
        ("C7513", SERIALIZED + "non wgmma instructions defining input registers of a wgmma"),
        ("C7514", SERIALIZED + "non wgmma instructions reading accumulator registers of  a wgmma"),
        ("C7515", SERIALIZED + "non wgmma instructions defining accumulator registers of a wgmma"),
        ("C7516", SERIALIZED + "ill formed pipeline stage in the function 'k'"),
        ("C7518", SERIALIZED + "program dependence on compiler-inserted WG.AR in divergent path"),
        ("C7599", SERIALIZED + "a reason that nobody has seen yet"),
        ("C7517", "warpgroup.wait is injected in around line 39 by compiler to allow use of"),
        ("C7517", "wgmma.wait_group is injected in around line 39 by compiler to allow use of"),
        ("C7519", "warpgroup.arrive is injected in around line 42 by compiler to allow use of"),
        ("C7519", "wgmma.fence is injected in around line 42 by compiler to allow use of"),
    ],
)
def test_what_ptxas_gives_away_as_a_note(code: str, text: str) -> None:
    (finding,) = lint(f"{PREFIX}({code}) {text}\n{CLEAN}", resources())
    assert finding.code == code
    assert finding.forbids
    assert finding.remedy
    assert finding.log_lines == (f"{PREFIX}({code}) {text}",)
    without_code = lint(f"{PREFIX}{text}\n{CLEAN}", resources())
    assert [f.forbids for f in without_code] == [True]


def test_the_line_of_the_ptx() -> None:
    around = f"{PREFIX}(C7517) warpgroup.wait is injected in around line 39 by compiler\n{CLEAN}"
    exact = f"{PREFIX}(C7511) {SERIALIZED}insufficient register resources for the wgmma pipeline"
    assert lint(around, resources())[0].ptx_line == 39
    assert lint(f"{exact} in the function 'k' in line 42\n{CLEAN}", resources())[0].ptx_line == 42
    assert lint(f"{exact} in the function 'k'\n{CLEAN}", resources())[0].ptx_line == 0


@settings(max_examples=50, deadline=None)
@given(
    stack=st.integers(0, 5000),
    stores=st.integers(0, 5000),
    loads=st.integers(0, 5000),
    nvrtc=st.booleans(),
)
def test_no_byte_of_local_memory_is_too_small(
    stack: int, stores: int, loads: int, nvrtc: bool
) -> None:
    frame = f"{stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads"
    margin = "ptxas         .     " if nvrtc else "    "
    log = f"{PREFIX}Function properties for k\n{margin}{frame}\n"
    used = resources(stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads)
    findings = lint(log, used)
    wanted = ["spill"] if stores or loads else ["stack"] if stack else []
    assert [f.code for f in findings] == wanted
    assert all(f.forbids for f in findings)
    if stores or loads:
        assert f"{stores} bytes stored, {loads} bytes loaded" in findings[0].message


def test_spills_of_every_function_count() -> None:
    log = CLEAN + (
        f"{PREFIX}Function properties for helper\n"
        "    16 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads\n"
    )
    assert [frame.function for frame in function_frames(log)] == ["k", "helper"]
    assert codes(log) == ["spill"]


def test_local_memory_beside_the_stack() -> None:
    (finding,) = lint(CLEAN, resources(local_bytes=8))
    assert (finding.code, finding.forbids) == ("local", True)


def test_a_log_without_a_report_proves_nothing() -> None:
    assert codes("") == ["report"]


def test_warnings_have_a_place() -> None:
    log = 'k.cu(12): warning #177-D: variable "s" was declared but never referenced\n' + CLEAN
    (finding,) = lint(log, resources())
    assert (finding.file, finding.line, finding.severity) == ("k.cu", 12, "warning")
    assert finding.message == 'variable "s" was declared but never referenced'
    assert not finding.forbids


def test_every_rule_says_what_to_do() -> None:
    assert all(rule.meaning and rule.remedy.endswith(".") for rule in RULES)
