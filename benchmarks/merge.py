"""Times kernels that merge partial results on a GPU, next to copies of as many bytes.

    python benchmarks/merge.py OUT.json [--arch sm_90a]

Each kernel takes turns with a copy in the GPU's memory that reads and writes as many bytes in all,
L2 cold each time: the floor of a kernel that memory bounds. Outputs are checked against CuPy's
float64 first. The share is the copy's time over the kernel's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import fa4gen  # noqa: E402
from fa4gen.counts import counted  # noqa: E402
from fa4gen.runtime.device import load_cupy, require_device  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402

ROWS, HEADS = 16384, 32
CASES = (
    *(("bf16", "bf16", 128, parts) for parts in (1, 2, 3, 4, 8, 16)),
    ("bf16", "fp32", 128, 2), ("fp32", "bf16", 128, 8), ("fp32", "fp32", 128, 4),
    ("bf16", "bf16", 64, 2), ("bf16", "bf16", 256, 2), ("fp16", "fp16", 512, 2),
    ("bf16", "bf16", 96, 2),
)  # fmt: skip
"""Types of parts and of the output, depth, parts."""
ROWS_IN_FLIGHT = (1, 2, 4)
DEFAULT_ROWS = "2"
MOST_ERROR = 2.0**-7
NUMPY = {"fp16": "float16", "fp32": "float32"}
PROTOCOL = TimingProtocol(warmup_s=0.005, budget_s=0.1, min_samples=20)


def main() -> int:
    """Write the results; 1 where a kernel is wrong."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("out", type=Path)
    options.add_argument("--arch", default="sm_90a")
    arguments = options.parse_args()
    device = require_device(arguments.arch)
    results = [measured(arguments.arch, *case) for case in CASES]
    document = {
        "device": device.name,
        "date": datetime.now(UTC).date().isoformat(),
        "rows": ROWS,
        "heads": HEADS,
        "results": results,
    }
    arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for row in results:
        shares = ", ".join(f"{n} rows {share:.3f}" for n, share in row["share"].items())
        print(f"{row['dtype']:>4} to {row['out_dtype']:>4}, depth {row['depth']:>3}, "
              f"{row['parts']:>2} parts: {shares}; error {row['error']:.2g}")  # fmt: skip
    return int(any(not row["error"] < MOST_ERROR for row in results))


def measured(arch: str, dtype: str, out_dtype: str, depth: int, parts: int) -> dict[str, Any]:
    """Return the times of a case, in microseconds, and the shares of the copy's speed."""
    cupy = load_cupy()
    inputs, lse = cupy.random.default_rng(1), cupy.random.default_rng(2)
    floats = inputs.standard_normal((parts, ROWS, HEADS, depth), dtype=cupy.float32)
    array = _of_type(floats, dtype)
    part_lse = lse.standard_normal((parts, HEADS, ROWS), dtype=cupy.float32)
    config = {"kernel": "merge", "arch": arch, "dtype": dtype, "out_dtype": out_dtype}
    runs, error = {}, 0.0
    for count in ROWS_IN_FLIGHT:
        try:
            kernel = fa4gen.load({**config, "depth": depth, "rows_in_flight": count})
        except fa4gen.CompileError as problem:  # its registers are spilled
            print(f"{config}, {count} rows left out: {problem.problems[0].message}")
            continue
        out, _ = kernel(array, part_lse)
        error = max(error, _error(_as_floats(out), floats, part_lse))
        runs[str(count)] = kernel.prepare(array, part_lse)
    size = int(array.nbytes) + int(out.nbytes) + part_lse.nbytes + part_lse.nbytes // parts
    source = cupy.zeros(size // 2, cupy.uint8)
    target = cupy.empty_like(source)

    def copy() -> None:
        stream = cupy.cuda.get_current_stream()
        target.data.copy_from_device_async(source.data, source.nbytes, stream)

    timings = time_in_turn({**runs, "copy": copy}, PROTOCOL)
    us = {name: 1e3 * statistics.median(t.median_ms for t in own) for name, own in timings.items()}
    words = f"{counted(parts, 'part')}, {dtype}{'' if out_dtype == dtype else f' to {out_dtype}'}"
    return {
        "problem": f"{words}, depth {depth}, {ROWS} rows, {HEADS} heads", "kernel": "merge",
        "rounds_us": {"merge": [round(us[DEFAULT_ROWS], 2)], "copy": [round(us["copy"], 2)]},
        "dtype": dtype, "out_dtype": out_dtype, "depth": depth, "parts": parts, "bytes": size,
        "us": us, "share": {name: us["copy"] / us[name] for name in runs}, "error": error,
    }  # fmt: skip


def _of_type(floats: Any, dtype: str) -> Any:
    """Return the array in the kernel's type, in place rounded to it; of bf16, torch's."""
    if dtype != "bf16":
        floats[...] = floats.astype(NUMPY[dtype])
        return floats.astype(NUMPY[dtype])
    import torch

    rounded = torch.from_dlpack(floats).to(torch.bfloat16)
    torch.from_dlpack(floats).copy_(rounded)
    return rounded


def _as_floats(out: Any) -> Any:
    """Return an output, of torch or of CuPy, as a CuPy array of float32."""
    cupy = load_cupy()
    return cupy.from_dlpack(out.float()) if hasattr(out, "float") else out.astype(cupy.float32)


def _error(out: Any, floats: Any, lse: Any) -> float:
    """Return the largest error on some rows."""
    cupy = load_cupy()
    rows = slice(0, ROWS, ROWS // 64)
    weights = cupy.exp(lse[:, :, rows].astype("f8")).swapaxes(1, 2)[..., None]
    exact = (weights * floats[:, rows]).sum(axis=0) / weights.sum(axis=0)
    return float(abs(out[rows].astype("f8") - exact).max() / abs(exact).max())


if __name__ == "__main__":
    sys.exit(main())
