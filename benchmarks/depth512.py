"""Times attention of depth 512 beside FFPA's Hopper kernel, in turn in one run.

    python benchmarks/depth512.py FFPA.so --json FILE.json [--sizes 512,1k] [--rounds 5]

FFPA.so is what ``benchmarks/ffpa/build.py`` makes of FFPA's kernels. They are timed alone: without
the zeroes that FFPA's own function writes into the output before a causal kernel.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.bench.attention_family import ATTENTION
from fa4gen.bench.machine import describe_gpu, describe_versions
from fa4gen.bench.peers import LeftOutError
from fa4gen.bench.report import results_data
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.callables import compile_config
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.masks import Causal
from fa4gen.runtime.device import require_device
from fa4gen.runtime.timing import TimingProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.bench.peers import Sequences
    from fa4gen.bench.results import ConfigResult
    from fa4gen.designs.common.attention_model import AttentionPlan

CONFIGS = ("d512_dense_bf16", "d512_causal_bf16")
ROWS = "512,1k,2k,4k,8k,16k"


@dataclass(frozen=True)
class FfpaPeer:
    """FFPA's kernels in a library of ``ffpa/build.py``; a Peer."""

    library: Any
    name: str = "ffpa"

    def prepare(
        self,
        plan: AttentionPlan,
        query: Any,
        key: Any,
        value: Any,
        sequences: Sequences | None = None,
    ) -> Callable[[], Any]:
        """See Peer."""
        import torch

        if sequences is not None or plan.depth != 512 or query.shape != key.shape:
            raise LeftOutError("only depth 512, with as many keys and key heads, was compiled")
        batch, rows, heads, depth = query.shape
        out = torch.zeros_like(query)
        lse = torch.full((batch, heads, rows), -torch.inf, device=query.device)
        tensors = (query, key, value, out, lse)
        addresses = (ctypes.c_void_p * 5)(*(tensor.data_ptr() for tensor in tensors))
        causal = int(isinstance(plan.mask, Causal))
        scale = depth**-0.5

        def run() -> Any:
            if self.library.ffpa_forward(causal, addresses, batch, rows, heads, depth, scale, None):
                raise RuntimeError(self.library.ffpa_error().decode())
            return tensors[3]

        return run


def load_ffpa(path: Path) -> FfpaPeer:
    """Load the library."""
    library = ctypes.CDLL(str(path.resolve()))
    sizes = [ctypes.c_int64] * 4
    library.ffpa_forward.argtypes = [
        *(ctypes.c_int, ctypes.c_void_p),
        *sizes,
        *(ctypes.c_double, ctypes.c_void_p),
    ]
    library.ffpa_error.restype = ctypes.c_char_p
    return FfpaPeer(library)


def main() -> None:
    """Measure size by size; the file is written again after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("ffpa", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--sizes", default=ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    device = require_device("sm_90a")
    loaded = [load_config(find_configs([name])[0]) for name in CONFIGS]
    built = [(one, build_plan(one.config)) for one in loaded]
    compiled = [compile_config(one, plan) for one, plan in built]
    protocol = TimingProtocol(budget_s=0.06)
    found: dict[str, ConfigResult] = {}
    peers = (load_ffpa(arguments.ffpa),)
    for size in ATTENTION.parse_sizes(arguments.sizes):
        options = BenchOptions((size,), arguments.rounds, protocol=protocol, family="attention")
        timer = Bench(options, peers)
        for (_, plan), kernel in zip(built, compiled, strict=True):
            if time.monotonic() > end:
                print("time is up", flush=True)
                return
            result = timer.time_kernel(plan, kernel, plan.name)
            (one,) = result.sizes
            earlier = found.get(plan.name, replace(result, sizes=()))
            found[plan.name] = replace(result, sizes=(*earlier.sizes, one))
            print(plan.name, one.word, one.ours, dict(one.peers), dict(one.left_out), flush=True)
            document = results_data(
                list(found.values()),
                options,
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                gpu=describe_gpu(device),
                versions=describe_versions(),
                notes=("ffpa is the kernel of ffpa-attn 0.2.4 alone",),
            )
            arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
