"""Each struct alone: what passes through it arrives, and its mutants are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from fa4gen.errors import CompileError
from tests.rings import handovers, output_ring, tma
from tests.rings.handovers import COPIES_TO_THREADS, THREADS_TO_THREADS
from tests.rings.harness import Struct, Variant, assert_clean, compile_text, render
from tests.rings.output_ring import OUTPUT
from tests.rings.roles import ROLES
from tests.rings.staged import STAGED
from tests.rings.tma import TMA

if TYPE_CHECKING:
    from tests.rings.conftest import Policies

pytestmark = pytest.mark.compile
STRUCTS: Final = {
    "threads": THREADS_TO_THREADS, "tiles": COPIES_TO_THREADS, "staged": STAGED, "tma": TMA,
    "role": ROLES, "output": OUTPUT,
}  # fmt: skip
SIZES: Final = {1: "single", 2: "pair"}
CLEAN: Final = [
    pytest.param(struct, variant, ctas, id=f"{name}-{variant}-{SIZES[ctas]}")
    for name, struct in STRUCTS.items()
    for ctas, variants in struct.clean.items()
    for variant in variants
]
MUTANTS: Final = [
    pytest.param(struct, variant, ctas, kinds, id=f"{name}-{variant}-{SIZES[ctas]}")
    for name, struct in STRUCTS.items()
    for ctas, variants in struct.mutants.items()
    for variant, kinds in variants.items()
]


def check(struct: Struct, variant: Variant, ctas: int, seed: int, schedule: str) -> None:
    done = struct.run(variant, ctas, seed=seed, schedule=schedule)
    assert_clean(done.report)
    np.testing.assert_array_equal(done.out, done.expected)


@pytest.mark.parametrize(("struct", "variant", "ctas"), CLEAN)
def test_what_passes_through_arrives(
    struct: Struct, variant: Variant, ctas: int, policies: Policies
) -> None:
    for seed, schedule in policies:
        check(struct, variant, ctas, seed, schedule)


@pytest.mark.parametrize(
    ("struct", "variant", "ctas"),
    [
        *((THREADS_TO_THREADS, Variant(kind, 2), 1) for kind in ("scoped", "lane")),
        *((COPIES_TO_THREADS, Variant(kind, 3), 1) for kind in ("scoped", "lane")),
        *((OUTPUT, Variant("scoped", 2, 32), ctas) for ctas in SIZES),
    ],
)
def test_more_interleavings(struct: Struct, variant: Variant, ctas: int) -> None:
    for seed in range(len(SCHEDULES), 4 * len(SCHEDULES)):
        check(struct, variant, ctas, seed, SCHEDULES[seed % len(SCHEDULES)])


@pytest.mark.parametrize(("struct", "variant", "ctas", "kinds"), MUTANTS)
def test_mutants_are_reported(
    struct: Struct, variant: Variant, ctas: int, kinds: set[str], policies: Policies
) -> None:
    """As one of these kinds; what else follows from it depends on the interleaving."""
    for seed, schedule in policies:
        report = struct.run(variant, ctas, seed=seed, schedule=schedule).report
        assert report.verdict.value == "error", str(report)
        assert {finding.kind for finding in report.findings} & kinds, str(report)


@pytest.mark.parametrize(
    ("struct", "variant", "ctas", "verdict", "kinds"),
    [
        # what was read has been stored before the release: so the reads are over
        (COPIES_TO_THREADS, handovers.NO_FENCE, 1, "isa", {"proxy-war"}),
        (OUTPUT, output_ring.NO_FENCE, 1, "review", {"missing-tcgen05-fence"}),
        # the peer's arrival, of the scope of its CTA, orders by the letter only through the fence
        (OUTPUT, output_ring.NO_FENCE, 2, "isa", {"race", "missing-tcgen05-fence"}),
    ],
)
def test_reads_are_fenced_before_their_release(
    struct: Struct, variant: Variant, ctas: int, verdict: str, kinds: set[str], policies: Policies
) -> None:
    for seed, schedule in policies:
        report = struct.run(variant, ctas, seed=seed, schedule=schedule).report
        assert report.verdict.value == verdict, str(report)
        assert {finding.kind for finding in report.findings} == kinds


@pytest.mark.parametrize(
    "variant", [tma.KEYS[1], tma.KEYS[8], tma.VALUES[0], tma.FUSED[1]], ids=str
)
def test_release_arrives_without_a_product(variant: Variant) -> None:
    skipped = 0b0110_1101_0101_0110
    # Unchecked: a commit that tracks no product orders nothing, and one copy follows another.
    done = tma.run(variant, 1, skipped=skipped, checks=False)
    assert_clean(done.report)
    left_out = [step for step in range(done.out.shape[1]) if skipped >> step & 1]
    assert left_out
    done.expected[:, left_out] = np.nan
    np.testing.assert_array_equal(done.out, done.expected)


HANDLE: Final = """
extern "C" __global__ void wrong_roles() {{
  ProducerConsumerPipeline<2> pipeline{{0}};
  const {} one(pipeline);
  const {} two(one);
}}
"""
CALL: Final = """
extern "C" __global__ void wrong_roles() {{
  TMAConsumerPipeline<Config<1, 1>, {}> pipeline{{0, 0, 0, 0, 0}};
  pipeline.{};
}}
"""


@pytest.mark.parametrize(
    ("file", "tables", "more", "message"),
    [
        *(
            ("handovers", ("stage_counts", "threads", "tiles"), HANDLE.format(handle, handle),
             "deleted function")
            for handle in ("ProduceContext<2>", "ConsumeContext<2>", "ExplicitConsumeContext<2>")
        ),
        ("output_ring", ("variants",), "\ntemplate struct OutputRingBuffer<4, 160, 1>;\n",
         "Tensor memory has 512 columns"),
        ("states", ("states",), "\ntemplate struct PipelineState<1, 2>;\n",
         "A step must not pass the whole ring"),
        *(
            ("states", ("states",), CALL.format("false", call), "This pipeline holds V")
            for call in ("get_k()", "wait_k()", "release_k(1)")
        ),
        *(
            ("states", ("states",), CALL.format("true", call), "This pipeline holds K")
            for call in ("get_v()", "wait_v()", "release_v(1)")
        ),
    ],
)  # fmt: skip
def test_what_does_not_compile(file: str, tables: tuple[str, ...], more: str, message: str) -> None:
    """Copies of a handle, stages beyond tensor memory, steps past a ring, keys taken for values."""
    source = render(f"{file}.cu.j2", **dict.fromkeys(tables, ())) + more
    with pytest.raises(CompileError, match=message):
        compile_text("refused", source)
