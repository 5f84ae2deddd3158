"""The results of scalar instructions in the emulator, against an H200's for the same inputs.

``scalar_h200.npz`` was recorded there by record_scalar.py. NaN payloads are not compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fa4gen.emulator import Program
from tests.emulator.hardware import scalar_probes
from tests.emulator.hardware.compare import distance

RECORDED = Path(__file__).with_name("scalar_h200.npz")
HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"


@pytest.fixture(scope="module")
def recorded():
    with np.load(RECORDED) as data:
        return dict(data)


@pytest.mark.parametrize("probe", scalar_probes.probes(), ids=lambda probe: probe.name)
def test_as_on_the_gpu(probe, recorded) -> None:
    out = scalar_probes.output(probe)
    inputs = scalar_probes.inputs(probe)
    program = Program(HEAD + scalar_probes.source(probe))
    program.launch(block=scalar_probes.THREADS, args=[*inputs, out], checks=False)
    far = distance(probe.output, out, recorded[probe.name]) > probe.ulps
    if far.any():
        at = int(np.flatnonzero(far)[0]) // (len(far) // scalar_probes.THREADS)
        shown = ", ".join(repr(array[at]) for array in inputs)
        raise AssertionError(
            f"{probe.line} of {shown}: {out[at]!r}, on the GPU {recorded[probe.name][at]!r} "
            f"({np.count_nonzero(far)} differ)"
        )
