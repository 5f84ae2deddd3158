from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "same_code.py"

LOAD, STORE = "  ld.global.u32 %r1, [%r2];\n", "  st.global.u32 [%r2], %r1;\n"
PTX = """\
.version 9.0
.global .align 4 .u32 _ZN2_INTERNAL_1_k5kOldE = 3;
.visible .entry a(.param .u32 a_param_0) {
  .reg .b32 %r<4>;  // registers
  ld.param.u32 %r1, [a_param_0];
$L__BB0_1:
  add.s32 %r3, %r1, 7;
  st.shared.u32 [%r3 + 0], %r1;
  ld.global.u32 %r1, [%r2];
  st.global.u32 [%r2], %r1;
  bra $L__BB0_1;
}
.func _Z1bv() { ret; }
"""
RENAMED = """\
.version 9.0
.func _Z7anotherv() { ret; }
.visible .entry a(.param .u32 a_param_7) {
  .reg .b32 %r<9>;
  ld.param.u32 %r8, [a_param_7];
$L__BB4_2:
  add.s32 %r2, %r8, 7;
  st.shared.u32 [%r2], %r8;
  ld.global.u32 %r8, [%r5];
  st.global.u32 [%r5], %r8;
  bra $L__BB4_2;
}
"""


@pytest.fixture(scope="module")
def same_code() -> Any:
    spec = importlib.util.spec_from_file_location("same_code", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["same_code"] = module  # where its dataclasses look for their module
    spec.loader.exec_module(module)
    return module


def test_names_lines_and_order_of_functions_do_not_count(same_code: Any) -> None:
    assert same_code.neutral_ptx(PTX) == same_code.neutral_ptx(RENAMED)


@pytest.mark.parametrize(
    ("old", "new"),
    [("add.s32 %r3, %r1, 7", "add.s32 %r3, %r1, 8"), ("add.s32 %r3, %r1", "add.s32 %r1, %r3"),
     ("bra $L__BB0_1;", ""), (LOAD + STORE, STORE + LOAD),
     ("st.shared", "st.global"), ("[%r3 + 0]", "[%r3 + 4]")],
)  # fmt: skip
def test_instructions_count(same_code: Any, old: str, new: str) -> None:
    assert old in PTX
    assert same_code.neutral_ptx(PTX.replace(old, new)) != same_code.neutral_ptx(PTX)


def test_verdicts_and_the_exit_status(
    same_code: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def saved(name: str, kernels: dict[str, tuple[str, str]]) -> str:
        found = {
            kernel: {"code": code, "ptx": ptx, "registers": 8, "instruction_bytes": 16}
            for kernel, (code, ptx) in kernels.items()
        }
        (tmp_path / name).write_text(json.dumps(found))
        return str(tmp_path / name)

    before = saved(
        "before", {"sm_90a/x": ("1", "p"), "sm_90a/y": ("2", "q"), "sm_90a/z": ("3", "r")}
    )
    after = saved("after", {"sm_90a/x": ("1", "o"), "sm_90a/y": ("9", "q"), "sm_90a/z": ("8", "s")})

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["same_code.py", *arguments])
        status = same_code.main()
        return status, capsys.readouterr().out.splitlines()[-1]

    assert run(before, after) == (1, "different: 1, same PTX: 1, same code: 1")
    assert run(before, after, "--only", "*/[xy]") == (0, "same PTX: 1, same code: 1")
    missing = saved("missing", {"sm_90a/x": ("1", "p")})
    assert run(before, missing) == (1, "removed: 2, same code: 1")
