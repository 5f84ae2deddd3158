"""Times attention in fp8 and bf16 with other libraries on a GPU, and measures errors by keys.

    python benchmarks/fp8_attention.py speed OUT.jsonl [--depth D ...] [--drawn COUNT --seed SEED]
                                             [--fa3 LIBRARY] [--set KEY=VALUE ...]
    python benchmarks/fp8_attention.py errors OUT.jsonl [--keys N ...] [--fa3 LIBRARY]
                                             [--set KEY=VALUE ...]
    python benchmarks/fp8_attention.py model OUT.jsonl [--keys N ...]
    python benchmarks/fp8_attention.py plot OUT.svg FILE.jsonl ...

``model`` needs no GPU: it is verify's model of sums that keep 13 bits. ``plot`` draws the errors
that ``model`` or ``errors`` wrote. The others need PyTorch; cuDNN takes part where its Python
frontend is installed, FlashAttention-3 where flash_attn_interface is, or with ``--fa3`` by the
library flash_ops of sglang-kernel. Each line says what was left out and why. fa4gen's kernels are
fp8 with the default promotion, without any, and with values with contiguous keys. Inputs are drawn
from N(0, 1) and rounded to e4m3 with one scale a tensor. Kernels of a problem take turns, each call
with a cold L2. Errors are relative Frobenius errors against float64 on the same rounded inputs,
with values from N(0, 1), where sums of few bits show nothing, and from N(1, 1), where they lose
what is small compared with the sum so far.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import random
import statistics
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
for _folder in (ROOT / "benchmarks", ROOT / "benchmarks/reports", ROOT):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from fp8_errors_picture import MODEL, errors_picture  # noqa: E402
from measured import read_lines  # noqa: E402

from fa4gen.callables import as_callable, compile_config  # noqa: E402
from fa4gen.config.load import load_mapping  # noqa: E402
from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402
from fa4gen.verify.cut_sums import CutSums  # noqa: E402
from fa4gen.verify.rounding import round_to  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ARCH = "sm_90a"
ROWS = (2048, 4096, 8192, 16384, 32768)
KEYS = (4096, 8192, 16384, 32768, 65536, 131072)
OURS: Mapping[str, Mapping[str, object]] = {
    "fp8": {},
    "fp8, never promoted": {"promote_every": "never"},
    "fp8, contiguous keys": {"value_major": "keys"},
}
"""The keys of fa4gen's kernels that are timed."""
PROMOTIONS: tuple[int | str, ...] = ("never", "auto", 1, 4, 16, 64)
"""The values of ``promote_every`` for which errors are measured."""
CHECKED_ROWS = 256
MODEL_ROWS, MODEL_COLUMNS = 32, 32
PROTOCOL = TimingProtocol(warmup_s=0.01, budget_s=0.05, min_samples=11)
ROUNDS = 3


@dataclass(frozen=True)
class Shape:
    """A dense batch; as many keys as query rows."""

    batch: int
    rows: int
    heads: int
    key_heads: int
    depth: int
    causal: bool

    @property
    def words(self) -> str:
        """The shape in words, as in results."""
        mask = "causal" if self.causal else "dense"
        heads = f"{self.heads}/{self.key_heads}"
        return f"{self.batch}x{self.rows}, heads {heads}, depth {self.depth}, {mask}"

    @property
    def operations(self) -> float:
        """Operations by the usual count: half of all pairs where the mask is causal."""
        whole = 4.0 * self.batch * self.heads * self.rows**2 * self.depth
        return whole / 2 if self.causal else whole


def kernel_of(shape: Shape, dtype: str, keys: Mapping[str, object]) -> Any:
    """Return the kernel for a shape, compiled."""
    config = {
        "kernel": "attention",
        "arch": ARCH,
        "dtype": dtype,
        "depth": shape.depth,
        "mask": "causal" if shape.causal else "none",
        **keys,
    }
    chosen = compile_config(load_mapping(config, f"fp8_attention_{dtype}"))
    return as_callable(chosen.plan, chosen.kernel.cubin)


@dataclass(frozen=True)
class Inputs:
    """Query, key and value in e4m3 with a scale each, and the same numbers in bf16."""

    narrow: tuple[Any, ...]
    scales: tuple[float, ...]
    wide: tuple[Any, ...]

    @classmethod
    def draw(cls, shape: Shape, rows: int, mean: float) -> Inputs:
        """Draw ``rows`` queries; values have this mean."""
        import torch

        torch.manual_seed(shape.rows)
        of_key = shape.rows, shape.key_heads
        sizes = ((rows, shape.heads, 0.0), (*of_key, 0.0), (*of_key, mean))
        drawn = [
            torch.randn(shape.batch, n, heads, shape.depth, device="cuda") + offset
            for n, heads, offset in sizes
        ]
        scales = tuple(float(x.abs().max()) / 448 for x in drawn)
        narrow = tuple(
            (x / scale).to(torch.float8_e4m3fn) for x, scale in zip(drawn, scales, strict=True)
        )
        wide = tuple(
            (x.float() * scale).to(torch.bfloat16) for x, scale in zip(narrow, scales, strict=True)
        )
        return cls(narrow, scales, wide)

    def head(self, batch: int, head: int, shape: Shape) -> tuple[Any, ...]:
        """Return query, key and value of a query head in float64."""
        of_key = head * shape.key_heads // shape.heads
        return tuple(
            x[batch, :, at].double() * scale
            for x, scale, at in zip(self.narrow, self.scales, (head, of_key, of_key), strict=True)
        )


def exact(inputs: Inputs, shape: Shape, rows: Any) -> Any:
    """Return the output of some rows of the last head in float64."""
    import torch

    query, key, value = inputs.head(shape.batch - 1, shape.heads - 1, shape)
    scores = query[rows] @ key.T * shape.depth**-0.5
    if shape.causal:
        place = torch.arange(shape.rows, device="cuda")
        scores = scores.masked_fill(place[None] > rows[:, None], -math.inf)
    return torch.softmax(scores, 1) @ value


def error(out: Any, wanted: Any, rows: Any) -> float:
    """Return the relative Frobenius error of these rows of the last head."""
    return float((out[-1, rows, -1].double() - wanted).norm() / wanted.norm())


def ours(kernel: Any, inputs: Inputs, out: Any, *, narrow: bool) -> Callable[[], Any]:
    """Return a launch of one of fa4gen's kernels."""
    import torch

    if not narrow:
        return kernel.prepare(*inputs.wide, out=out)  # type: ignore[no-any-return]
    shape = (inputs.narrow[1].shape[0], inputs.narrow[1].shape[2])
    scales = {
        f"{name}_descale": torch.full(shape, scale, device="cuda")
        for name, scale in zip(("query", "key", "value"), inputs.scales, strict=True)
    }
    query, key, value = (x.view(torch.uint8) for x in inputs.narrow)
    if kernel.plan.has_lines_of_keys:
        value = with_contiguous_keys(value)
    return kernel.prepare(query, key, value, out=out, **scales)  # type: ignore[no-any-return]


def with_contiguous_keys(value: Any) -> Any:
    """Return values (batch, keys, heads, depth) in memory with keys contiguous, 16 bytes a step."""
    import torch

    batch, keys, heads, depth = value.shape
    lines = torch.zeros(batch, heads, depth, -(-keys // 16) * 16, device="cuda", dtype=value.dtype)
    transposed = lines[..., :keys].permute(0, 3, 1, 2)
    transposed.copy_(value)
    return transposed


def flash_attention_3(library: Path | None) -> Callable[..., Any]:
    """Return FlashAttention-3's forward for e4m3: (query, key, value, scales, causal) to output."""
    import torch

    if library is None:
        import flash_attn_interface

        def call(query: Any, key: Any, value: Any, scales: Any, causal: bool) -> Any:
            names = ("q_descale", "k_descale", "v_descale")
            given = dict(zip(names, scales, strict=True))
            out = flash_attn_interface.flash_attn_func(query, key, value, causal=causal, **given)
            return out[0] if isinstance(out, tuple) else out

        return call
    for place in Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/libnvrtc.so.1?"):
        ctypes.CDLL(str(place), mode=ctypes.RTLD_GLOBAL)  # the library does not find it
    torch.ops.load_library(str(library))
    forward = torch.ops.sgl_kernel.fwd

    def call_library(query: Any, key: Any, value: Any, scales: Any, causal: bool) -> Any:
        nothing = (None,) * 17  # new keys, lengths, tables, rotary embedding
        scale = query.shape[-1] ** -0.5
        rest = (scale, causal, -1, -1, 0, 0.0, True, None, 1, None, 0, None)
        return forward(query, key, value, *nothing, *scales, *rest)[0]

    return call_library


def fa3(shape: Shape, inputs: Inputs, library: Path | None) -> Callable[[], Any]:
    """Return a launch of FlashAttention-3's attention in fp8, which returns its output."""
    import torch

    forward = flash_attention_3(library)
    heads = (shape.batch, shape.key_heads)
    scales = tuple(torch.full(heads, scale, device="cuda") for scale in inputs.scales)
    return lambda: forward(*inputs.narrow, scales, shape.causal)


def cudnn(shape: Shape, inputs: Inputs, out: Any, out_scale: float) -> Callable[[], Any]:
    """Return a launch of cuDNN's attention in fp8; its output is e4m3, too."""
    import cudnn as library
    import torch

    types, handle = library.data_type, library.create_handle()
    stream = torch.cuda.current_stream().cuda_stream
    library.set_stream(handle=handle, stream=stream)
    graph = library.pygraph(
        io_data_type=types.FP8_E4M3,
        intermediate_data_type=types.FLOAT,
        compute_data_type=types.FLOAT,
        handle=handle,
    )

    def operand(name: str, x: Any) -> Any:
        batch, rows, heads, depth = x.shape
        strides = [rows * heads * depth, depth, heads * depth, 1]
        return graph.tensor(
            name=name, dim=[batch, heads, rows, depth], stride=strides, data_type=types.FP8_E4M3
        )

    names = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
    numbers = {
        name: graph.tensor(name=name, dim=[1] * 4, stride=[1] * 4, data_type=types.FLOAT)
        for name in names
    }
    operands = dict(zip("qkv", map(operand, "qkv", inputs.narrow), strict=True))
    result, _, largest_s, largest_o = graph.sdpa_fp8(
        **operands,
        **numbers,
        attn_scale=shape.depth**-0.5,
        use_causal_mask=shape.causal,
        generate_stats=False,
    )
    extents, strides = (operand("out", out).get_dim(), operand("out", out).get_stride())
    result.set_output(True).set_dim(extents).set_stride(strides).set_data_type(types.FP8_E4M3)
    for number in (largest_s, largest_o):
        number.set_output(True).set_dim([1] * 4).set_stride([1] * 4).set_data_type(types.FLOAT)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(16, graph.get_workspace_size()), dtype=torch.uint8, device="cuda")
    given = (*inputs.scales, 1 / 256, 256.0, out_scale)
    held = [torch.full((1,), number, device="cuda") for number in given]
    held += [torch.zeros(1, device="cuda") for _ in range(2)]
    tensors = (*operands.values(), result, *numbers.values(), largest_s, largest_o)
    addresses = [x.data_ptr() for x in (*inputs.narrow, out, *held)]
    pack = dict(zip(tensors, addresses, strict=True))

    def launch() -> None:
        assert held  # alive as long as the launch
        graph.execute(pack, workspace, handle=handle)

    return launch


@dataclass(frozen=True)
class Peers:
    """Launches of other libraries, their outputs with what each is multiplied by, and refusals."""

    runs: dict[str, Callable[[], Any]]
    results: dict[str, tuple[Any, float]]
    left_out: dict[str, str]


def peers_of(shape: Shape, inputs: Inputs, wanted: Any, library: Path | None) -> Peers:
    """Return the libraries that run, and why the others do not."""
    import torch

    batch, rows = inputs.narrow[0].shape[:2]
    size = (batch, rows, shape.heads, shape.depth)
    narrow = torch.zeros(size, device="cuda", dtype=torch.uint8).view(torch.float8_e4m3fn)
    out_scale = 224 / float(wanted.abs().max())
    peers = Peers({}, {}, {})

    def cudnn_fp8() -> tuple[Callable[[], Any], tuple[Any, float]]:
        launch = cudnn(shape, inputs, narrow, out_scale)
        launch()
        return launch, (narrow, 1 / out_scale)

    def fa3_fp8() -> tuple[Callable[[], Any], tuple[Any, float]]:
        launch = fa3(shape, inputs, library)
        return launch, (launch(), 1.0)

    for name, make in (("cudnn fp8", cudnn_fp8), ("fa3 fp8", fa3_fp8)):
        try:
            peers.runs[name], peers.results[name] = make()
        except Exception as problem:  # whatever a library raises, it does not take part
            peers.left_out[name] = f"{type(problem).__name__}: {str(problem)[:200]}"
            print(f"{name} left out: {peers.left_out[name]}")
    return peers


def measure_speed(shape: Shape, keys: Mapping[str, object], library: Path | None) -> dict[str, Any]:
    """Return a line of results of one shape."""
    import torch

    inputs = Inputs.draw(shape, shape.rows, 0.0)
    rows = torch.arange(shape.rows - min(shape.rows, CHECKED_ROWS), shape.rows, device="cuda")
    wanted = exact(inputs, shape, rows)
    size = (shape.batch, shape.rows, shape.heads, shape.depth)
    peers = peers_of(shape, inputs, wanted, library)
    runs, results = dict(peers.runs), dict(peers.results)
    kernels = {name: ("fp8_e4m3", {**keys, **own}) for name, own in OURS.items()}
    for name, (dtype, own) in {**kernels, "bf16": ("bf16", {})}.items():
        out = torch.full(size, math.nan, device="cuda", dtype=torch.bfloat16)
        kernel = kernel_of(shape, dtype, own)
        runs[name] = ours(kernel, inputs, out, narrow=dtype != "bf16")
        results[name] = (out, 1.0)
    for run in runs.values():
        run()
    torch.cuda.synchronize()
    errors = {
        name: error(out.float() * scale, wanted, rows) for name, (out, scale) in results.items()
    }
    taken = time_in_turn(
        runs, PROTOCOL, rounds=ROUNDS, stream=torch.cuda.current_stream().cuda_stream
    )
    times = {
        name: statistics.median(one.median_ms for one in timings) for name, timings in taken.items()
    }
    return {
        "problem": shape.words,
        **about(keys),
        "times_us": {name: round(1e3 * time, 2) for name, time in times.items()},
        "tflops": {name: round(shape.operations / time / 1e9, 1) for name, time in times.items()},
        "errors": {name: round(found, 5) for name, found in errors.items()},
        "left_out": peers.left_out,
    }


def measure_errors(
    keys_of_row: int, keys: Mapping[str, object], library: Path | None
) -> Iterator[dict[str, Any]]:
    """Yield lines of results for one number of keys: each way to promote, and other libraries."""
    import torch

    shape = Shape(1, keys_of_row, 2, 1, 128, causal=False)
    rows = torch.arange(CHECKED_ROWS, device="cuda")
    kernels = {
        f"promote_every {every}": kernel_of(shape, "fp8_e4m3", {**keys, "promote_every": every})
        for every in PROMOTIONS
    }
    for mean in (0.0, 1.0):
        inputs = Inputs.draw(shape, CHECKED_ROWS, mean)
        wanted = exact(inputs, shape, rows)
        size = (1, CHECKED_ROWS, shape.heads, shape.depth)
        peers = peers_of(shape, inputs, wanted, library)
        results = dict(peers.results)
        for name, kernel in kernels.items():
            out = torch.full(size, math.nan, device="cuda", dtype=torch.bfloat16)
            ours(kernel, inputs, out, narrow=True)()
            results[name] = (out, 1.0)
        yield {
            "problem": f"{keys_of_row} keys, values from N({mean:g}, 1)",
            **about(keys),
            "errors": {
                name: round(error(out.float() * scale, wanted, rows), 5)
                for name, (out, scale) in results.items()
            },
            "left_out": peers.left_out,
        }


def model_errors(keys_of_row: int) -> Iterator[dict[str, Any]]:
    """Yield lines of what sums of 13 bits do by verify's model of them, without a GPU."""
    rng = np.random.default_rng(keys_of_row)
    weights = np.exp(rng.standard_normal((MODEL_ROWS, keys_of_row)))
    weights = np.ldexp(weights / weights.max(axis=1, keepdims=True), 6)
    rounded = round_to(weights.astype(np.float32), "fp8_e4m3").astype(np.float64)
    for mean in (0.0, 1.0):
        drawn = rng.standard_normal((keys_of_row, MODEL_COLUMNS), np.float32) + np.float32(mean)
        values = round_to(drawn, "fp8_e4m3").astype(np.float64)
        wanted = weights @ values
        errors = {}
        for every in (None, 64, 16, 8, 4, 1):
            part = None if every is None else 128 * every
            got = CutSums().products(rounded, values, np, part=part)
            found = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
            errors[f"promote_every {every or 'never'}"] = round(float(found), 5)
        problem = f"{keys_of_row} keys, values from N({mean:g}, 1)"
        yield {"problem": problem, "chip": MODEL, "errors": errors}


def about(keys: Mapping[str, object]) -> dict[str, Any]:
    """Return what a line says of where it was measured."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "chip": require_device(ARCH).name,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": done.stdout.strip(),
        "keys": dict(keys),
    }


def shapes_of(options: argparse.Namespace) -> Iterator[Shape]:
    """Yield the shapes to time: those drawn, or a table."""
    if options.drawn:
        rng = random.Random(options.seed)
        for _ in range(options.drawn):
            rows = round(2 ** rng.uniform(6, 14))
            key_heads = rng.choice((1, 2, 4, 8))
            heads = key_heads * rng.choice((1, 2, 4, 8))
            batch = max(1, min(16, 32768 // rows))
            yield Shape(batch, rows, heads, key_heads, 128, rng.random() < 0.5)
        return
    for depth in options.depth or (128, 64, 256):
        for causal in (False, True):
            if depth == 128:
                yield from (Shape(1, rows, 64, 8, depth, causal) for rows in ROWS)
            else:
                heads = 2048 // depth
                for rows in (1024, 2048, 4096, 8192, 16384):
                    yield Shape(16384 // rows, rows, heads, heads, depth, causal)


def main() -> None:
    """Measure, and append a line of JSON a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "errors", "model", "plot"))
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="*", help="plot: what model or errors wrote")
    parser.add_argument("--fa3", type=Path, help="the library flash_ops of sglang-kernel")
    parser.add_argument("--depth", type=int, action="append", default=[])
    parser.add_argument("--keys", type=int, action="append", default=[])
    parser.add_argument("--drawn", type=int, default=0, help="shapes to draw, in place of a table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of our fp8 kernel")
    options = parser.parse_args()
    pairs = (text.partition("=") for text in options.set)
    keys = {key: yaml.safe_load(value) for key, _, value in pairs}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.what == "plot":
        known = [line for file in options.files for line in read_lines(file)]
        options.out.write_text(errors_picture(known), encoding="utf-8")
        return
    with options.out.open("a") as file:
        lines: Iterator[dict[str, Any]]
        if options.what == "speed":
            lines = (measure_speed(shape, keys, options.fa3) for shape in shapes_of(options))
        elif options.what == "model":
            lines = (line for n in options.keys or KEYS for line in model_errors(n))
        else:
            lines = (
                line for n in options.keys or KEYS for line in measure_errors(n, keys, options.fa3)
            )
        for line in lines:
            print(json.dumps(line), flush=True)
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
