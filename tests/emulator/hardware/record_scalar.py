"""Run the scalar probes on the GPU of this machine and store what they give.

python -m tests.emulator.hardware.record_scalar FILE.npz
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.emulator.hardware import scalar_probes


def run_all() -> dict[str, np.ndarray]:
    """Results by probe name."""
    import cupy

    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probes.ptx"
        path.write_text(scalar_probes.module())
        module = cupy.RawModule(path=str(path))
        module.compile()
    for probe in scalar_probes.probes():
        inputs = [cupy.asarray(array) for array in scalar_probes.inputs(probe)]
        out = cupy.asarray(scalar_probes.output(probe))
        kernel = module.get_function(scalar_probes.entry_name(probe))
        kernel((1,), (scalar_probes.THREADS,), (*inputs, out))
        results[probe.name] = cupy.asnumpy(out)
    return results


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **run_all())
