"""Matrix products in the emulator, without the launcher: a plan, a problem, the results."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from fa4gen.emulator import SCHEDULES, TensorMap
from fa4gen.errors import ConfigError
from fa4gen.scales import arrange, form_of
from fa4gen.scales.narrow import ELEMENTS, decode, unpack_pairs
from fa4gen.scales.quantize import scale_values
from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.emulator import plan_names
from tests.kernels.source_mutation import Found, Kernel, kernel_in, matches, program_of, ptx_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.emulator import Program, Report

DTYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp16": np.dtype(np.float16),
    "fp8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "fp4_e2m1": np.dtype(np.uint8),  # two a byte
    "fp32": np.dtype(np.float32),
}
UNIT_ROUNDOFF = {"bf16": 2**-8, "fp16": 2**-11, "fp32": 2**-23}
HALF_A_SUBNORMAL = {"fp16": 2**-25}
"""The largest rounding error of numbers too small for the type's whole precision."""
FLOAT32_SUM = 2**-20
"""The error of a sum by its terms: the effect of the order of additions, with room to spare."""


@contextmanager
def noting(text: str) -> Iterator[None]:
    """Add ``text`` to the message of what fails inside."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


@dataclass(frozen=True)
class Problem:
    """``indexed``: A is zero, and each element of C its own index. ``multiprocessors``: of the
    chip that the launch is for, few so that each CTA takes several tiles. ``scale_padding``: bytes
    after each row of plain scales; ``scale_step``: from one of a row to the next."""

    m: int
    n: int
    k: int
    batch: int = 1
    alpha: float = 1.0
    beta: float = 0.5
    group_rows: int = 2
    multiprocessors: int = 2
    indexed: bool = False
    nan_in_c: bool = False
    scale_padding: int = 0
    scale_step: int = 1


@dataclass(frozen=True)
class Outcome:
    """``wrong`` describes how the numbers differ; "" if they agree and nothing else was written."""

    report: Report
    wrong: str
    bits: bytes = b""
    """The bits of the output."""

    @property
    def failure(self) -> str:
        """Every problem in one text; "" where there is none."""
        if self.report.verdict.value != "clean":
            return "\n".join(str(finding) for finding in self.report.findings[:4])
        return self.wrong


def gemm_kernel(keys: dict[str, Any]) -> Kernel:
    """Return the kernel of a Blackwell config with only ``keys``."""
    config = {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", **keys}
    return kernel_in(json.dumps(config))


def check(keys: dict[str, Any], problem: Problem, seed: int = 0) -> None:
    """Assert that a kernel is clean and right."""
    outcome = emulate(gemm_kernel(keys), problem, seed)
    assert outcome.failure == "", f"{keys}, {problem}, seed {seed}"


def some_problem(random: Random) -> Problem:
    """Draw a problem of any size."""
    beta = random.choice((0.0, 1.0, 0.5))
    return Problem(
        m=random.randint(1, 700),
        n=random.randint(1, 600),
        k=random.choice((0, 1, 8, random.randint(1, 100), random.randint(1, 900))),
        batch=random.choice((1, 1, 2, 3)),
        alpha=random.choice((1.0, -0.5, 0.0)),
        beta=beta,
        group_rows=random.choice((1, 2, 8)),
        multiprocessors=random.choice((2, 4, 6)),
        nan_in_c=beta == 0,
    )


def check_drawn(
    some_keys: Callable[[Random], dict[str, Any]], number: int, seeds: Sequence[int]
) -> bool:
    """Check a kernel drawn by ``number`` on a problem for each seed; False where there is none."""
    random = Random(number)
    keys = some_keys(random)
    try:
        gemm_kernel(keys)
    except ConfigError:
        return False
    with noting(f"drawn by check_drawn({some_keys.__module__}.{some_keys.__name__}, {number})"):
        for seed in seeds:
            check(keys, some_problem(random), seed)
    return True


class _Tensor:
    """A logical array (batch, x, y) in memory whose rows end in padding."""

    def __init__(
        self, shape: tuple[int, int, int], contiguous: int, dtype: str, rng: np.random.Generator
    ) -> None:
        order = (0, 1, 2) if contiguous == 2 else (0, 2, 1)
        lines = [shape[axis] for axis in order]
        chunk = 16 // DTYPES[dtype].itemsize
        self._touched = -(-lines[2] // chunk) * chunk  # stores clip to 16 bytes
        padded = (*lines[:2], self._touched + chunk)
        self._buffer = rng.standard_normal(padded).astype(DTYPES[dtype])
        self.memory = self._buffer[..., : lines[2]]
        numbers = self.memory
        if dtype == "fp4_e2m1":
            self._buffer[...] = rng.integers(0, 256, padded)
            numbers = decode(unpack_pairs(self.memory), ELEMENTS[dtype])
        self.logical = numbers.transpose(order)

    def poison(self) -> None:
        self._buffer[...] = np.nan

    @property
    def padding_is_poison(self) -> bool:
        return bool(np.isnan(self._buffer[..., self._touched :].astype(np.float32)).all())


class _Scales:
    """Scales of the rows of A or the columns of B, as the kernel reads them and as numbers."""

    def __init__(
        self, scales: OperandScales, problem: Problem, rows: int, rng: np.random.Generator
    ) -> None:
        known, batch, k = form_of(scales.form), problem.batch, max(problem.k, 1)
        shape = (batch, rows, -(-k // known.columns))
        least, most = (120, 134) if known.scale == "ue8m0" else (0x20, 0x58)
        codes = rng.integers(least, most, shape).astype(np.uint8)
        if scales.in_atoms:
            atoms = arrange(codes)
            self.memory = atoms.reshape(*atoms.shape[:3], -1).view(np.uint32)
        else:
            step, blocks = problem.scale_step, shape[2]
            lines = np.full((batch, rows, step * blocks + problem.scale_padding), 255, np.uint8)
            self.memory = lines[..., : step * blocks : step]  # NaN between them
            self.memory[...] = codes
        each = np.repeat(scale_values(codes, known), known.columns, axis=2)
        self.numbers = each[..., :k].astype(np.float64)


def emulate(kernel: Kernel, problem: Problem, seed: int, order: int | None = None) -> Outcome:
    """Run with all checks; compare with float64.

    ``seed``: of the numbers and, unless there is an ``order``, of the schedule.
    """
    plan, rng = kernel.plan, np.random.default_rng(seed)
    batch, m, n, k = problem.batch, problem.m, problem.n, problem.k
    some = max(k, 1)  # no map has an extent of 0
    in_memory = -(-some // getattr(plan, "elements_per_byte", 1))
    a = _Tensor((batch, m, in_memory), 2 if plan.a_major == "k" else 1, plan.dtype, rng)
    b = _Tensor((batch, in_memory, n), 1 if plan.b_major == "k" else 2, plan.dtype, rng)
    scales = {}
    if plan.tensor_memory and plan.scales:
        for name, rows in (("scale_a", m), ("scale_b", n)):
            scales[name] = _Scales(plan.scales[0], problem, rows, rng)
    columns = 2 if "n" in plan.c.axes else 1  # the axis of C that is contiguous
    c_rows = m if "m" in plan.c.axes else 1
    c = _Tensor((batch, c_rows, n if columns == 2 else 1), columns, plan.out_dtype, rng)
    out = _Tensor((batch, m, n), 2, plan.out_dtype, rng)
    out.poison()
    if problem.nan_in_c:
        c.poison()
    if problem.indexed:
        a.memory[...] = 0
        c.memory[...] = np.arange(c.memory.size).reshape(c.memory.shape)
    report = _launch(
        plan,
        program_of(ptx_of(kernel)),
        problem,
        {"a": a, "b": b, "c": c, "out": out, **scales},
        seed if order is None else order,
    )
    wrong = "" if out.padding_is_poison else "written past the end of a row"
    wrong = wrong or _difference(plan, problem, *_scaled(a, b, scales), c, out)
    return Outcome(report, wrong, np.ascontiguousarray(out.memory).tobytes())


def _scaled(a: _Tensor, b: _Tensor, scales: dict[str, _Scales]) -> tuple[Any, Any]:
    """Return the numbers of A and B, each times the scale of its block."""
    exact_a, exact_b = a.logical.astype(np.float64), b.logical.astype(np.float64)
    if scales:
        exact_a = exact_a * scales["scale_a"].numbers
        exact_b = exact_b * scales["scale_b"].numbers.transpose(0, 2, 1)
    return exact_a, exact_b


def _launch(
    plan: Any, program: Program, problem: Problem, tensors: dict[str, Any], seed: int
) -> Report:
    row_tiles = -(-problem.m // plan.tile_rows)
    column_tiles = -(-problem.n // plan.tile_columns)
    tiles = row_tiles * column_tiles * problem.batch
    values: dict[str, Any] = {
        "alpha": problem.alpha, "beta": problem.beta, "m": problem.m, "n": problem.n,
        "k": problem.k, "row_tiles": row_tiles, "column_tiles": column_tiles,
        "num_tiles": tiles, "group_rows": problem.group_rows,
    }  # fmt: skip
    for row in plan.scales:
        if not row.in_atoms:
            values[row.name] = memory = tensors[row.name].memory
            values.update(zip(row.strides, memory.strides, strict=True))
    for row in plan.tensor_maps:
        memory = tensors[row.tensor].memory
        if len(row.dims) < memory.ndim:
            memory = memory[:, 0]
        if memory.dtype in (DTYPES["fp8_e4m3"], DTYPES["fp8_e5m2"]):
            memory = memory.view(np.uint8)
        values[row.parameter] = TensorMap(memory, box=row.box[::-1], swizzle=row.swizzle)
    types = {"int32": np.int32, "int64": np.int64, "float": np.float32}
    most = tiles * plan.launch.cluster
    fit = max(1, problem.multiprocessors // plan.launch.cluster) * plan.launch.cluster
    return program.launch(
        plan.entry_point,
        grid=most if plan.scheduler == "dynamic" else min(fit, most),
        block=plan.launch.threads,
        cluster=plan.launch.cluster,
        args=[types.get(p.c_type, lambda given: given)(values[p.name]) for p in plan.parameters],
        dynamic_shared=plan.launch.dynamic_shared_bytes,
        seed=seed,
        schedule=SCHEDULES[seed % len(SCHEDULES)],
        names=plan_names(plan),
    )


def _difference(
    plan: Any, problem: Problem, exact_a: Any, exact_b: Any, c: _Tensor, out: _Tensor
) -> str:
    def exact(tensor: _Tensor) -> Any:
        return tensor.logical.astype(np.float64)

    shape = out.logical.shape
    x, terms = np.zeros(shape), np.zeros(shape)
    if problem.k:
        x += problem.alpha * (exact_a @ exact_b)
        terms += abs(problem.alpha) * (abs(exact_a) @ abs(exact_b))
    if plan.c.exists and problem.beta != 0:
        x += problem.beta * exact(c)
        terms += abs(problem.beta * exact(c))
    found = exact(out)
    rounding = UNIT_ROUNDOFF[plan.out_dtype] * abs(x)
    rounding = np.maximum(rounding, HALF_A_SUBNORMAL.get(plan.out_dtype, 0.0))
    bound = rounding + FLOAT32_SUM * terms
    if plan.arch == "sm_90a" and plan.element_bytes == 1:  # the tensor cores' sums keep 13 bits
        for batch, (a, b) in enumerate(zip(exact_a, exact_b, strict=True)):
            bound[batch] += abs(problem.alpha) * CutSums().score_room(a, b.T, np)
    if problem.indexed:
        bound = np.zeros(shape)
    bad = np.argwhere(~(abs(found - x) <= bound))
    if not bad.size:
        return ""
    first = tuple(bad[0])
    return f"{len(bad)} of {x.size} wrong, first {first}: {found[first]} instead of {x[first]}"


def is_told(outcome: Outcome, founds: Sequence[Found], kernel: Kernel) -> bool:
    """Whether one of ``founds`` is among the findings; "numbers" means a wrong result."""
    numbers = any(found.kind == "numbers" for found in founds)
    if numbers and outcome.wrong and outcome.report.verdict.value == "clean":
        return True
    return any(
        matches(finding, found, kernel) for finding in outcome.report.findings for found in founds
    )
