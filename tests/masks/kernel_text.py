"""The functions of a kernel that say which keys a row sees, built for the host.

They are cut out of the rendered kernel as they are, with CUDA's words defined away. The mask's
numbers become variables, so that one build serves for all of them.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.masks.mask import kernel_name
from fa4gen.render.render import render

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.masks.mask import Mask

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
WANTED = ("visible_blocks", "needs_mask", "mask_scores")
PROLOGUE = """
#define __device__
#define __forceinline__ inline
using int32 = int;
using uint32 = unsigned;
using int64 = long long;
static int32 max(int32 a, int32 b) { return a > b ? a : b; }
static int32 min(int32 a, int32 b) { return a < b ? a : b; }
[[maybe_unused]] static struct { uint32 x; } threadIdx;
static float __int_as_float(uint32 bits) { float x; __builtin_memcpy(&x, &bits, 4); return x; }
"""
RANGES = """
static Problem problem_of(int32 query_rows, int32 key_rows) {
  Problem problem{};
  problem.query_rows = query_rows;
  problem.key_rows = key_rows;
  return problem;
}
extern "C" void blocks(int32 query_rows, int32 key_rows, int32 first_row, int32 rows,
                       int32* range) {
  const BlockRange found = visible_blocks(problem_of(query_rows, key_rows), first_row, rows);
  range[0] = found.begin;
  range[1] = found.end;
}
extern "C" int needs(int32 query_rows, int32 key_rows, int32 first_row, int32 block) {
  return needs_mask(problem_of(query_rows, key_rows), first_row, block);
}
"""
HIDE = {
    "sm_90a": """
extern "C" void hide(int32 query_rows, int32 key_rows, int32 first_row, int32 block, char* hidden) {
  for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x) {
    const int32 row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    float scores[WIDTH / 2] = {};
    mask_scores(problem_of(query_rows, key_rows), scores, first_row + row, block);
    for (int i = 0; i < WIDTH / 2; ++i) {
      const int32 column = fragment_column(i) + 2 * (threadIdx.x % 4);
      hidden[(row + 8 * fragment_row(i)) * WIDTH + column] = scores[i] < 0;
    }
  }
}
""",
    "sm_100a": """
extern "C" void hide(int32 query_rows, int32 key_rows, int32 first_row, int32 block, char* hidden) {
  for (int32 row = 0; row < kTileRows; ++row)
    for (int32 part = 0; part < WIDTH; part += kRowKeys) {
      float scores[kRowKeys] = {};
      mask_scores(problem_of(query_rows, key_rows), scores, first_row + row, block * WIDTH + part);
      for (int32 key = 0; key < kRowKeys; ++key)
        hidden[row * WIDTH + part + key] = scores[key] < 0;
    }
}
""",
}
_DEFINITION = re.compile(
    r"^(?:struct (?P<struct>\w+) \{.*?^\};"
    r"|__device__ __forceinline__ [^\n]*?\b(?P<function>\w+)\((?:[^\n]*\}$|.*?^\}$)"
    r"|constexpr \w+ (?P<constant>\w+) = [^;]*;)",
    re.MULTILINE | re.DOTALL,
)


def definitions(text: str, wanted: tuple[str, ...]) -> list[str]:
    """Return the definitions of ``wanted`` in a kernel, and of what they use, in its order."""
    found = {
        match["struct"] or match["function"] or match["constant"]: match[0]
        for match in _DEFINITION.finditer(text)
    }
    needed, left = set(), list(wanted)
    while left:
        name = left.pop()
        if name in found and name not in needed:
            needed.add(name)
            left += re.findall(r"\w+", found[name])
    assert set(wanted) <= needed
    return [found[name] for name in found if name in needed]


@dataclass(frozen=True)
class HostMask:
    """A kernel's functions for one kind of mask."""

    library: ctypes.CDLL
    block_keys: int
    """Keys of a block that is loaded."""
    rows: int
    """Query rows of which one call of needs_mask and mask_scores is about."""
    keys: int
    """Keys of which they are; a CTA's own where a pair shares the keys of a block."""

    def set_numbers(self, mask: Mask) -> None:
        """Make the mask's numbers those of ``mask``, of the same kind."""
        for name, value in mask.numbers().items():
            ctypes.c_int32.in_dll(self.library, kernel_name(name)).value = value

    def blocks(self, query_rows: int, key_rows: int, first_row: int, rows: int) -> range:
        """Return what visible_blocks gives."""
        found = (ctypes.c_int32 * 2)()
        self.library.blocks(query_rows, key_rows, first_row, rows, found)
        return range(found[0], found[1])

    def needs_mask(self, query_rows: int, key_rows: int, first_row: int, block: int) -> bool:
        """Return what needs_mask gives."""
        return bool(self.library.needs(query_rows, key_rows, first_row, block))

    def hidden(self, query_rows: int, key_rows: int, first_row: int, block: int) -> Any:
        """Return (rows, keys): True where mask_scores hides the score."""
        found = np.full((self.rows, self.keys), 2, dtype=np.uint8)
        self.library.hide(
            query_rows, key_rows, first_row, block, found.ctypes.data_as(ctypes.c_void_p)
        )
        assert (found < 2).all(), "a score that no thread has"
        return found.astype(bool)


def build_mask(
    config: Mapping[str, Any], folder: Path, edit: tuple[str, str] = ("", "")
) -> HostMask:
    """Build the functions of the kernel of ``config``; ``edit`` replaces a piece of them first."""
    loaded = load_mapping(config, "host_mask")
    plan = build_plan(loaded.config)
    rendered = render(plan, loaded)
    wanted = ("fragment_row", "fragment_column") if plan.arch == "sm_90a" else ("kTileRows",)
    text = "\n".join(
        definitions("\n".join([*rendered.headers.values(), rendered.source]), (*WANTED, *wanted))
    )
    for name in plan.mask.numbers():
        constant = kernel_name(name)
        text, times = re.subn(rf"constexpr (int32 {constant} = )", r'extern "C" { \1', text)
        text = re.sub(rf"(int32 {constant} = [^;]*;)", r"\1 }", text)
        assert times == 1
    assert not edit[0] or text.count(edit[0]) == 1, (
        f"{edit[0]} is there {text.count(edit[0])} times"
    )
    if edit[0]:
        text = text.replace(*edit)
    keys = getattr(plan, "own_keys", plan.BN)
    source = folder / "mask.cc"
    source.write_text(
        PROLOGUE + text + RANGES + HIDE[plan.arch].replace("WIDTH", str(keys)), encoding="utf-8"
    )
    library = folder / "mask.so"
    command = [COMPILER, "-std=c++17", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    if not edit[0]:
        command.append("-Werror=unused-variable")
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    rows = 128 if plan.arch == "sm_100a" and plan.depth != 512 else 64
    return HostMask(ctypes.CDLL(str(library)), plan.BN, rows, keys)
