"""Times attention with and without ``max_logits``: it should cost at most 1 % on a GPU.

    python benchmarks/max_logits.py OUT.json [--arch sm_90a]

Both kernels of a config take turns on the same arrays, L2 cold each time.
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
from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402

TYPES = (("bf16", 64), ("bf16", 128), ("bf16", 256), ("bf16", 512), ("fp8_e4m3", 128))
CONFIGS: tuple[dict[str, Any], ...] = tuple(
    {"dtype": dtype, "depth": depth, "mask": mask, **({"cta_group": 2} if depth == 512 else {})}
    for dtype, depth in TYPES
    for mask in ("none", "causal")
)
ROWS = (1024, 4096, 16384)
TOKENS, COLUMNS = 16384, 2048
PROTOCOL = TimingProtocol(warmup_s=0.01, budget_s=0.2, min_samples=20)


def main() -> int:
    """Write the results, and print them."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("out", type=Path)
    options.add_argument("--arch", default="sm_90a")
    arguments = options.parse_args()
    device = require_device(arguments.arch)
    results = [measured(arguments.arch, keys, rows) for keys in CONFIGS for rows in ROWS]
    document = {"device": device.name, "date": datetime.now(UTC).date().isoformat()}
    text = json.dumps({**document, "results": results}, indent=1) + "\n"
    arguments.out.write_text(text, encoding="utf-8")
    for row in results:
        words = " ".join(f"{key} {value}" for key, value in row["config"].items())
        print(f"{words}, {row['rows']} rows: with / without {row['ratio']:.4f}")
    return 0


def measured(arch: str, keys: dict[str, Any], rows: int) -> dict[str, Any]:
    """Return the times of both kernels in microseconds, and their ratio."""
    import torch

    heads = COLUMNS // keys["depth"]
    shape = (TOKENS // rows, rows, heads, keys["depth"])
    dtype = torch.float8_e4m3fn if keys["dtype"] == "fp8_e4m3" else torch.bfloat16
    arrays = [torch.randn(shape, device="cuda").to(dtype) for _ in range(3)]
    max_logits = torch.full((heads,), -torch.inf, device="cuda")
    config = {"kernel": "attention", "arch": arch, **keys}
    runs = {
        "without": fa4gen.load(config).prepare(*arrays),
        "with": fa4gen.load({**config, "max_logits": True}).prepare(*arrays, max_logits=max_logits),
    }
    timings = time_in_turn(runs, PROTOCOL, rounds=5)
    us = {name: 1e3 * statistics.median(t.median_ms for t in own) for name, own in timings.items()}
    return {"config": keys, "rows": rows, "us": us, "ratio": us["with"] / us["without"]}


if __name__ == "__main__":
    sys.exit(main())
