from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import same_code

from fa4gen.toolchain.cache import Cache

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "same_code.py"

LOAD, STORE = "  ld.global.u32 %r1, [%r2];\n", "  st.global.u32 [%r2], %r1;\n"
PTX = """\
.version 9.0
.global .align 4 .u32 _ZN2_INTERNAL_1_k5kOldE = 3;
.global .align 4 .u32 _ZN6Config5kOldE = 4;
.global .align 4 .u32 table[2] = {1, 2};
.visible .entry a(.param .u32 a_param_0) {
  .reg .b32 %r<4>;  // registers
  ld.param.u32 %r1, [a_param_0];
$L__BB0_1:
  add.s32 %r3, %r1, 7;
  st.shared.u32 [%r3 + 0], %r1;
  ld.global.u32 %r1, [%r2];
  st.global.u32 [%r2], %r1;
  mov.u64 %rd1, table;
  bra $L__BB0_1;
}
.func _Z1bv() { ret; }
"""
RENAMED = """\
.version 9.0
.global .align 4 .u32 _ZN6Config4kNewE = 5;
.global .align 4 .u32 table[2] = {1, 2};
.func _Z7anotherv() { ret; }
.visible .entry a(.param .u32 a_param_7) {
  .reg .b32 %r<9>;
  ld.param.u32 %r8, [a_param_7];
$L__BB4_2:
  add.s32 %r2, %r8, 7;
  st.shared.u32 [%r2], %r8;
  ld.global.u32 %r8, [%r5];
  st.global.u32 [%r5], %r8;
  mov.u64 %rd3, table;
  bra $L__BB4_2;
}
"""


def test_names_lines_and_order_of_functions_do_not_count() -> None:
    assert same_code.neutral_ptx(PTX) == same_code.neutral_ptx(RENAMED)


@pytest.mark.parametrize(
    ("old", "new"),
    [("add.s32 %r3, %r1, 7", "add.s32 %r3, %r1, 8"), ("add.s32 %r3, %r1", "add.s32 %r1, %r3"),
     ("bra $L__BB0_1;", ""), (LOAD + STORE, STORE + LOAD),
     ("st.shared", "st.global"), ("[%r3 + 0]", "[%r3 + 4]"),
     ("{1, 2}", "{1, 3}")],
)  # fmt: skip
def test_instructions_count(old: str, new: str) -> None:
    assert old in PTX
    assert same_code.neutral_ptx(PTX.replace(old, new)) != same_code.neutral_ptx(PTX)


def test_verdicts_and_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def saved(name: str, kernels: dict[str, tuple[str, str]]) -> str:
        found = {
            kernel: {"code": code, "ptx": ptx, "registers": 8, "instruction_bytes": 16}
            for kernel, (code, ptx) in kernels.items()
        }
        (tmp_path / name).write_text(json.dumps({"format": same_code.FORMAT, "kernels": found}))
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


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(json.dumps({"sm_90a/x": {"code": "1"}}))
    with pytest.raises(SystemExit, match="saved by another version of this script"):
        same_code.fingerprints(tmp_path / "old", "*", None)


KERNEL = """\
namespace k {
struct Config { static constexpr unsigned kSize = 3; };
constexpr unsigned kStep = 4;
__device__ unsigned table = 5;
}
extern "C" __global__ void small(unsigned* out) { out[k::kStep] = k::Config::kSize; }
"""
READS = ("] = ", "] = k::table + ")


@pytest.mark.compile
@pytest.mark.parametrize(
    ("both", "old", "new", "same"),
    [
        (("", ""), "constexpr unsigned kStep", "constexpr unsigned kSpare = 1, kStep", True),
        (("", ""), "table = 5", "table = 6", True),
        (("", ""), "kStep = 4", "kStep = 8", False),
        (("", ""), "kSize = 3", "kSize = 2", False),
        (READS, "table = 5", "table = 6", False),
        (READS, "small(unsigned* out) {", "small(unsigned* out) {\n ", True),
    ],
)
def test_constants_count_where_a_kernel_reads_them(
    tmp_path: Path, both: tuple[str, str], old: str, new: str, same: bool
) -> None:
    found = []
    for name, text in (("a", KERNEL), ("b", KERNEL.replace(old, new))):
        folder = tmp_path / name / "generated" / "sm_90a" / "small"
        folder.mkdir(parents=True)
        (folder / "small.cu").write_text(text.replace(*both) if both[0] else text)
        cache = Cache(tmp_path / "cache")
        found.append(same_code.fingerprints(tmp_path / name, "*", cache)["sm_90a/small"])
    assert old in KERNEL
    assert (found[0].code == found[1].code) == (found[0].ptx == found[1].ptx) == same
