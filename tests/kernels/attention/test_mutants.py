"""Mutants of decode, latent attention, ragged batches and pages: each has to be reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.kernels.attention import test_ragged_512 as ragged_512
from tests.kernels.attention.decode import test_depth512 as decode_512
from tests.kernels.attention.decode import test_expressions as decode_expressions
from tests.kernels.attention.decode import test_kv_dtype as decode_fp8
from tests.kernels.attention.decode import test_launches as decode
from tests.kernels.attention.decode import test_page_scales as decode_page_scales
from tests.kernels.attention.decode import test_splits as decode_splits
from tests.kernels.attention.decode import test_wide as decode_wide
from tests.kernels.attention.latent import test_latent as latent
from tests.kernels.attention.latent_sm100 import test_latent as latent_sm100
from tests.kernels.attention.sm90 import test_fp8 as fp8_sm90
from tests.kernels.attention.sm90 import test_page_scales as page_scales_sm90
from tests.kernels.attention.sm90 import test_ragged as ragged_sm90
from tests.kernels.attention.sm100 import test_ragged as ragged_sm100

if TYPE_CHECKING:
    from tests.kernels.attention.launches import ShownMutant

TABLES: Final = {
    "decode": decode,
    "decode 512": decode_512,
    "decode expressions": decode_expressions,
    "decode fp8": decode_fp8,
    "decode page scales": decode_page_scales,
    "decode splits": decode_splits,
    "decode wide": decode_wide,
    "fp8 sm90": fp8_sm90,
    "fp8 sm90 page scales": page_scales_sm90,
    "latent": latent,
    "latent sm100": latent_sm100,
    "ragged sm90": ragged_sm90,
    "ragged 512": ragged_512,
    "ragged sm100": ragged_sm100,
}
"""Modules with the table ``SHOWN``, and the names in ``QUICK`` of those that every run makes."""
ALONE: Final = {"decode wide", "latent", "latent sm100"}
"""Tables whose kernels join products."""
ALSO_ON_BLACKWELL: Final = {"decode", "decode fp8", "decode page scales"}


def _each() -> list[Any]:
    return [
        pytest.param(table, mutant, id=f"{table}: {name}")
        for table, module in TABLES.items()
        for name, mutant in module.SHOWN.items()
    ]


def _runs() -> list[Any]:
    """All of them with --many-seeds, some also on the other architecture."""
    seeds = pytest.mark.seeds
    found = []
    for table, module in TABLES.items():
        for name, mutant in module.SHOWN.items():
            marks = [] if name in module.QUICK else [seeds]
            found.append(pytest.param(table, mutant, id=f"{table}: {name}", marks=marks))
            if table in ALSO_ON_BLACKWELL:
                other, words = mutant.on("sm_100a"), f"{table} on Blackwell: {name}"
                marks = [] if words in QUICK_ON_BLACKWELL else [seeds]
                found.append(pytest.param(table, other, id=words, marks=marks))
    return found


QUICK_ON_BLACKWELL: Final = {"decode on Blackwell: partial result read early"}


@pytest.mark.parametrize(("table", "mutant"), _each())
def test_the_mutant_can_still_be_made(table: str, mutant: ShownMutant) -> None:
    del table
    assert mutant.kernel != mutant.original


@pytest.mark.emulate
@pytest.mark.compile
@pytest.mark.parametrize(("table", "mutant"), _runs())
def test_the_mutant_is_reported(
    table: str, mutant: ShownMutant, request: pytest.FixtureRequest
) -> None:
    if table in ALONE:
        request.getfixturevalue("each_product_alone")
    assert mutant.is_reported()
