"""Kernels that use one pipeline struct alone: rendered from the shipped templates, compiled once,
launched in the emulator, and plain models of what they have to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from ml_dtypes import bfloat16

from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated
from fa4gen.emulator import Limits, Program, Report, TensorMap
from fa4gen.render.environment import TemplateSet
from fa4gen.render.instructions import FAMILIES
from fa4gen.resources import data_root
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

ARCH: Final = "sm_100a"
FOLDER: Final = Path(__file__).parent / "cuda"
LIMITS: Final = Limits(steps=500_000, idle_steps=20_000)
# what common.cuh.j2 lays out, and the room for the alignment of its base
SHARED_BYTES: Final = 4 * 4096 + 20 * 1024 + 1024 + 1024
ROWS, PANEL, LANES = 32, 16, 32  # of a block, columns of a panel, of a warp
UNTOUCHED: Final = -77
ROUNDS: Final = 3  # of a ring, and one step more

FAULTS: Final = (
    "none", "no_wait", "no_acquire", "early_release", "double_release", "one_release", "no_flip",
    "first_phase", "first_slot", "thread_commit", "early_commit", "stage_early", "half_count",
    "one_told", "no_fence",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One instantiation of a kernel: which ring or role, its size, and what is wrong with it."""

    kind: str
    stages: int
    parts: int = 1
    fault: str = "none"

    @property
    def name(self) -> str:
        return f"{self.kind}_s{self.stages}_p{self.parts}_{self.fault}"

    def __str__(self) -> str:
        return self.name


def render(file: str, cta_group: int = 1, depth: int = 128, **tables: Any) -> str:
    """The source of a kernel file over the shipped templates."""
    config = {"kernel": "attention", "name": "pipelines", "arch": ARCH, "dtype": "bf16"}
    plan = build_plan(validated({**config, "depth": depth, "cta_group": cta_group}))
    assert plan.shared[0].alignment == 1024
    template = TemplateSet((FOLDER, data_root("templates"))).environment().get_template(file)
    return template.render(
        plan=plan, pair=cta_group == 2, faults=FAULTS, families=FAMILIES, used=(), **tables
    )


@cache
def compile_text(name: str, source: str) -> str:
    return find_compiler("nvrtc").build_ptx(Unit(name, source, {}, ARCH))


@cache
def program(file: str, table: str, variants: tuple[Any, ...], cta_group: int = 1) -> Program:
    """A file of kernels, one for each variant."""
    source = render(file, cta_group, **{table: variants})
    return Program(compile_text(file.removesuffix(".cu.j2"), source))


@dataclass(frozen=True)
class Done:
    """The result of a launch: its report, what it has left, and what is right."""

    report: Report
    out: NDArray[Any]
    expected: NDArray[Any]


@dataclass(frozen=True)
class Struct:
    """Kernels around a struct: how to run one on so many CTAs, and which there are.

    A mutant is reported as one of the kinds beside it, whatever the interleaving.
    """

    run: Callable[..., Done]
    clean: Mapping[int, tuple[Variant, ...]]
    mutants: Mapping[int, Mapping[Variant, set[str]]]


def launch(
    program: Program, entry: str, args: list[Any], ctas: int = 1, threads: int = 64, **options: Any
) -> Report:
    return program.launch(
        entry, grid=ctas, block=threads, args=args, dynamic_shared=SHARED_BYTES, limits=LIMITS,
        **options,
    )  # fmt: skip


def small_integers(seed: int, *shape: int) -> NDArray[Any]:
    """bfloat16 numbers whose sums of products are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(bfloat16)


@dataclass(frozen=True)
class Operands:
    """The left operand (rank, head, panel, row, column), keys and values likewise."""

    left: NDArray[Any]
    keys: NDArray[Any]
    values: NDArray[Any]

    @classmethod
    def make(cls, seed: int, ctas: int, parts: int, blocks: int) -> Operands:
        return cls(
            small_integers(seed, ctas, 1, max(parts, 2), 128, PANEL),
            small_integers(seed + 1, 1, 1, parts, blocks * ROWS, PANEL),
            small_integers(seed + 2, 1, 1, 2, blocks * ROWS, PANEL),
        )

    def maps(self) -> list[TensorMap]:
        ctas = len(self.left)

        def tensor_map(array: NDArray[Any], panels: int, rows: int) -> TensorMap:
            return TensorMap(array, (1, 1, panels, rows, PANEL), swizzle=2 * PANEL)

        return [
            tensor_map(self.left, 1, 128),
            tensor_map(self.keys, 1, ROWS // ctas),
            tensor_map(self.values, 2 // ctas, ROWS),
        ]

    def stored_keys(self) -> NDArray[Any]:
        """Keys as the kernels that fill slots by stores read them: block, part, row, column."""
        parts = self.keys.shape[2]
        blocks = self.keys[0, 0].reshape(parts, -1, ROWS, PANEL).swapaxes(0, 1)
        return np.ascontiguousarray(blocks).view(np.uint16)

    def key_products(self, blocks: int) -> NDArray[Any]:
        """The lanes that are shown of Left Keys^T, for each rank and block."""
        parts = self.keys.shape[2]
        left = self.left[:, 0, :parts, :LANES].astype(np.float32)
        keys = self.keys[0, 0].astype(np.float32).reshape(parts, -1, ROWS, PANEL)
        return np.einsum("gqlc,qbrc->gblr", left, keys[:, :blocks])

    def value_products(self, blocks: int) -> NDArray[Any]:
        """The lanes that are shown of Left Values, for each rank and block."""
        left = self.left[:, 0, :2, :LANES].astype(np.float32)
        # panel of columns, block, half of the rows
        values = self.values[0, 0].astype(np.float32).reshape(2, -1, 2, PANEL, PANEL)
        result = np.einsum("ghlk,pbhkc->gblpc", left, values[:, :blocks])
        return result.reshape(len(self.left), blocks, LANES, 2 * PANEL)


def empty_products(ctas: int, steps: int) -> NDArray[Any]:
    """Room for the lanes that are shown of each step's product."""
    return np.full((ctas, steps, LANES, ROWS), np.nan, np.float32)


def assert_clean(report: Report) -> None:
    assert report.verdict.value == "clean", str(report)
