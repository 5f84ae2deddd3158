"""Times attention of depth 512 beside FFPA's Hopper kernel, in turn in one run.

    python benchmarks/depth512.py FFPA.so --json FILE.json [--sizes 512,1k] [--rounds 5]

FFPA.so is what ``benchmarks/ffpa/build.py`` makes of FFPA's kernels. They are timed alone: without
the zeroes that FFPA's own function writes into the output before a causal kernel.
"""

from __future__ import annotations

import argparse
import ctypes
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.bench.attention_family import ATTENTION
from fa4gen.bench.machine import describe_gpu, describe_versions
from fa4gen.bench.peers import AttentionOperands, LeftOutError, Peer
from fa4gen.bench.report import results_data
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.callables import compile_config
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.masks import Causal
from fa4gen.overriding import override
from fa4gen.runtime.device import require_device
from fa4gen.runtime.timing import TimingProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan

CONFIGS = ("d512_dense_bf16", "d512_causal_bf16")
ROWS = "512,1k,2k,4k,8k,16k"


@dataclass(frozen=True)
class FfpaPeer(Peer):
    """FFPA's kernels in a library of ``ffpa/build.py``."""

    library: Any
    name: str = "ffpa"

    @override
    def prepare(self, plan: AttentionPlan, operands: AttentionOperands) -> Callable[[], Any]:
        import torch

        query, key, value = operands.query, operands.key, operands.value
        if operands.sequences is not None or plan.depth != 512 or query.shape != key.shape:
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
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("ffpa", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--sizes", default=ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    device = require_device("sm_90a")
    sizes = ATTENTION.parse_sizes(arguments.sizes)
    protocol = TimingProtocol(budget_s=0.06)
    options = BenchOptions(sizes, arguments.rounds, protocol=protocol, family="attention")
    bench = Bench(options, (load_ffpa(arguments.ffpa),))
    results = []
    for name in CONFIGS:
        loaded = load_config(find_configs([name])[0])
        chosen = compile_config(loaded)
        result = bench.time_kernel(chosen.plan, chosen.kernel, chosen.plan.name)
        results.append(result)
        for size in result.sizes:
            print(name, size.size.word, size.ours, dict(size.peers), dict(size.left_out))
    document = results_data(
        results,
        options,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        gpu=describe_gpu(device),
        versions=describe_versions(),
        notes=("ffpa is the kernel of ffpa-attn 0.2.4 alone",),
    )
    arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
