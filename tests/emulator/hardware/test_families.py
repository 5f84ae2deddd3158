"""The memory that every family of Hopper instructions leaves, against that of an H200.

``families_h200.npz`` was recorded there by record_families.py: the arrays that a probe changed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Program
from tests.emulator.hardware import sum_probes
from tests.emulator.hardware.record_families import all_probes, arrays_of, bits, dynamic_shared

RECORDED = Path(__file__).with_name("families_h200.npz")
RECORDED_SUMS = Path(__file__).with_name("wgmma_sums_h200.npz")


@pytest.fixture(scope="module")
def recorded():
    with np.load(RECORDED) as data:
        return dict(data)


@pytest.mark.parametrize("probe", all_probes(), ids=lambda probe: probe.name)
def test_as_on_the_gpu(probe, recorded) -> None:
    program = Program(probe.ptx)
    for seed, schedule in enumerate(SCHEDULES[:: 1 if probe.grid == 1 else 2]):
        arguments = probe.arguments()
        report = program.launch(
            grid=probe.grid, block=probe.block, args=arguments, seed=seed, schedule=schedule,
            dynamic_shared=dynamic_shared(probe), checks=False,
        )  # fmt: skip
        assert not report.findings, str(report)
        changed = 0
        for index, array in enumerate(arrays_of(arguments)):
            expected = recorded.get(f"{probe.name}/{index}")
            if expected is None:
                assert np.array_equal(bits(array), bits(arrays_of(probe.arguments())[index]))
                continue
            changed += 1
            _compare(array, expected.view(array.dtype), probe.rtol)
        assert changed, "the recording shows no effect"


@pytest.mark.skipif(
    not RECORDED_SUMS.exists(), reason="to record on an H200: record_families.py FILE sums"
)
@pytest.mark.parametrize("probe", sum_probes.probes(), ids=lambda probe: probe.name)
def test_sums_of_8_bit_floats(probe) -> None:
    arguments = probe.arguments()
    Program(probe.ptx).launch(
        grid=1, block=128, args=arguments, dynamic_shared=dynamic_shared(probe), checks=False
    )
    with np.load(RECORDED_SUMS) as data:
        _compare(arguments[0], data[f"{probe.name}/0"], 0.0)


def _compare(got: np.ndarray, expected: np.ndarray, rtol: float) -> None:
    if not rtol:
        differ = bits(got) != bits(expected)
        assert not differ.any(), (
            f"{np.count_nonzero(differ)} elements differ, the first at "
            f"{tuple(np.argwhere(differ)[0])}: {bits(got)[differ][0]:#x}, on the GPU "
            f"{bits(expected)[differ][0]:#x}"
        )
        return
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    scale = np.abs(expected[np.isfinite(expected)]).max()
    assert np.abs(got - expected).max() <= rtol * scale
