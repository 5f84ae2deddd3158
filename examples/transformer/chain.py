# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of captured steps of decoding, with dependent launches and without.

python chain.py [--sequences 16] [--prompt 1024] [--new 64] [--seed 0] [--eager] [--overlap]
    [--small] [--json FILE]

It needs fa4gen and PyTorch alone. Every variant is one CUDA graph of a step of a model of the shape
of Llama 8B, with random weights, and random keys of sequences of any lengths:

    pytorch                 products and scaled_dot_product_attention of PyTorch
    attention               products of PyTorch, attention of fa4gen
    apart                   products and attention of fa4gen
    dependent               the same kernels with dependent_launch
    dependent, short rings  with room for the next kernel's CTA on each multiprocessor
    ..., steps too          Inductor's kernels have dependent launches, too: with --overlap

Norms and rotation are compiled by torch.compile, with --eager they are PyTorch's operators. Replays
are timed in turn. Then the logits after given tokens are compared with those of PyTorch in float32:
the error of a variant must be at most 1.5 times that of ``pytorch``, and two runs of fa4gen's
products must give the same bits. The exit status is 1 where they do not. --json writes what
`benchmarks/measured.py` makes lines of benchmarks/results of.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from blocks import Kernels, Paged, compiled, eager, inductor_overlaps
from cache import PagedCache
from decoder import LLAMA_8B, SMALL, Decoder, Shape, Weights
from peers import Sdpa
from reference import Reference
from step_kernels import loaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attention import Attention
    from blocks import Steps
    from decoder import Blocks

WARM_UP = 2
"""Steps before a capture: libraries compile, allocate and choose in them."""
ROUNDS = 5
"""Of each variant, in turn, after one that is not timed; the median counts."""
PAGE_SIZE = 64
JUDGED = 8
"""Steps of which the logits are compared."""
ERRORS = 1.5
"""The most that the error of a variant may be, times that of PyTorch's."""
PEER = "pytorch"
PRODUCTS_OF_PYTORCH = (PEER, "attention")
"""Variants that may have other bits in another run."""


@dataclass(frozen=True)
class Caches:
    """The same keys and values in pages anywhere, and in one page for each sequence."""

    lengths: torch.Tensor
    """Keys of each sequence before the first step, int32."""
    paged: PagedCache
    whole: PagedCache

    @classmethod
    def random(
        cls, shape: Shape, lengths: Sequence[int], new: int, seed: int, like: torch.Tensor
    ) -> Caches:
        """Draw keys of these lengths, of the type of ``like``, with room for ``new`` more."""
        count, device = len(lengths), str(like.device)
        capacity = -(-(max(lengths) + max(new, WARM_UP)) // PAGE_SIZE) * PAGE_SIZE
        order = list(range(count * capacity // PAGE_SIZE))
        random.Random(seed).shuffle(order)

        def cache(page_size: int, order: Sequence[int] | None = None) -> PagedCache:
            more = {"page_size": page_size, "dtype": like.dtype, "device": device, "order": order}
            made = PagedCache(shape, count, capacity, **more)
            for sequence in range(count):
                made.reserve(sequence, capacity)
            return made

        paged, whole = cache(PAGE_SIZE, order), cache(capacity)
        torch.manual_seed(seed)
        for pages, one in ((paged.keys, whole.keys), (paged.values, whole.values)):
            pages.normal_()
            for layer, filled in zip(pages, one, strict=True):
                filled.copy_(layer[paged.page_table.long()].flatten(1, 2))
        return cls(torch.tensor(lengths, dtype=torch.int32, device=device), paged, whole)

    def rewind(self) -> None:
        """Forget the keys of all steps; later ones are written before they are read."""
        for cache in (self.paged, self.whole):
            cache.lengths.copy_(self.lengths)


@dataclass(frozen=True)
class Model:
    """What all variants share."""

    shape: Shape
    weights: Weights
    caches: Caches

    def decoder(
        self, blocks: Blocks, attention: Attention, dtype: torch.dtype | None = None
    ) -> Decoder:
        """Return a decoder over the cache that its attention takes."""
        paged = not isinstance(attention, Sdpa)
        cache = self.caches.paged if paged else self.caches.whole
        return Decoder(self.shape, self.weights, blocks, attention, cache, dtype)


class Variant:
    """A decoder that captures its step, on a GPU, once it has run."""

    def __init__(self, decoder: Decoder, caches: Caches) -> None:
        """Warm up and capture a step."""
        self._decoder, self._caches = decoder, caches
        self._graph: torch.cuda.CUDAGraph | None = None
        caches.rewind()
        if not decoder.tokens.is_cuda:
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                decoder.step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = decoder.step()

    def step(self) -> torch.Tensor:
        """Return the logits of a step, which the next one overwrites."""
        if self._graph is None:
            return self._decoder.step()
        self._graph.replay()
        return self._logits

    def seconds(self, steps: int) -> float:
        """Return the time of as many steps, from the first token on."""
        self._caches.rewind()
        self._decoder.tokens.zero_()
        start = _now()
        for _ in range(steps):
            self.step()
        return _now() - start

    def after(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits after given tokens, (steps, sequences), in float32 on the CPU."""
        self._caches.rewind()
        found = []
        for given in tokens:
            self._decoder.tokens.copy_(given)
            found.append(self.step().float().cpu())
        return torch.stack(found)


@dataclass(frozen=True)
class Figures:
    """What was seen of a variant."""

    tokens_per_s: float
    us_a_step: list[float]
    """Of each round."""
    times_pytorch: float
    error: float
    """Relative, of the logits."""
    same_bits: bool
    """Whether two runs gave the same."""
    holds: bool


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def lengths_of(sequences: int, typical: int, seed: int) -> list[int]:
    """Return log-normal lengths around ``typical``."""
    rng = random.Random(seed)
    drawn = [int(rng.lognormvariate(0, 0.6) * typical) for _ in range(sequences)]
    return [min(max(length, 1), 4 * typical) for length in drawn]


def variants(model: Model, *, plain: bool = False, overlap: bool = False) -> dict[str, Variant]:
    """Return those of a GPU by name; ``plain`` has no torch.compile, ``overlap`` also of steps."""
    steps = eager(model.shape) if plain else compiled(model.shape)
    apart = loaded(dependent=False)
    found = {
        PEER: Variant(model.decoder(steps, Sdpa()), model.caches),
        "attention": Variant(model.decoder(steps, Paged(apart)), model.caches),
    }

    def add(name: str, kernels: dict[str, Any], steps: Steps) -> None:
        decoder = model.decoder(Kernels(steps, kernels), Paged(kernels))
        found[name] = Variant(decoder, model.caches)

    add("apart", apart, steps)
    dependent = {
        "dependent": loaded(dependent=True),
        "dependent, short rings": loaded(dependent=True, short=True),
    }
    for name, kernels in dependent.items():
        add(name, kernels, steps)
    if overlap:
        overlapped = compiled(model.shape, dependent=True)
        for name, kernels in dependent.items():
            add(f"{name}, steps too", kernels, overlapped)
    return found


def small_variants(model: Model) -> dict[str, Variant]:
    """Return those that need neither a GPU nor kernels."""
    blocks = eager(model.shape)
    attentions = {PEER: Sdpa(), "reference": Reference()}
    return {
        name: Variant(model.decoder(blocks, attention), model.caches)
        for name, attention in attentions.items()
    }


def measured(model: Model, kinds: dict[str, Variant], new: int, seed: int) -> dict[str, Figures]:
    """Time all variants in turn and judge their logits."""
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(1 + ROUNDS):
        for name, one in kinds.items():
            times[name].append(one.seconds(new))
    device = model.weights.embedding.device
    generator = torch.Generator(device).manual_seed(seed + 1)
    size = (min(JUDGED, new), len(model.caches.lengths))
    words = model.shape.vocab_size
    tokens = torch.randint(words, size, generator=generator, device=device)
    exact = Exact(model).after(tokens)
    runs = {name: [one.after(tokens) for _ in range(2)] for name, one in kinds.items()}
    errors = {
        name: float((first - exact).norm() / exact.norm()) for name, (first, _) in runs.items()
    }
    median = {name: statistics.median(each[1:]) for name, each in times.items()}
    found = {}
    for name, (first, second) in runs.items():
        same = torch.equal(first, second)
        near = errors[name] <= ERRORS * errors[PEER] + 1e-6
        holds = near and (same or name in PRODUCTS_OF_PYTORCH)
        found[name] = Figures(
            len(model.caches.lengths) * new / median[name],
            [round(1e6 * each / new, 2) for each in times[name][1:]],
            median[PEER] / median[name],
            errors[name],
            same,
            holds,
        )
    return found


class Exact(Variant):
    """PyTorch in float32, never captured: it reads lengths on the host."""

    def __init__(self, model: Model) -> None:
        """Take the weights; each is raised to float32 where it is used."""
        self._decoder = model.decoder(eager(model.shape), Reference(), torch.float32)
        self._caches, self._graph = model.caches, None


def main() -> int:
    """Measure and judge; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=16, choices=range(1, 17))
    parser.add_argument("--prompt", type=int, default=1024, help="typical keys of a sequence")
    parser.add_argument("--new", type=int, default=64, help="steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eager", action="store_true", help="no torch.compile")
    parser.add_argument("--overlap", action="store_true", help="Inductor's kernels overlap, too")
    parser.add_argument("--small", action="store_true", help="a small model on the CPU, no kernels")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    if not options.small and not torch.cuda.is_available():
        sys.exit("chain.py: no GPU to run on; --small needs none")
    if options.overlap and (options.eager or not inductor_overlaps()):
        sys.exit("chain.py: --overlap needs torch.compile, and an Inductor with triton.enable_pdl")
    torch.backends.cuda.matmul.allow_tf32 = False
    shape = SMALL if options.small else LLAMA_8B
    dtype, device = (torch.float32, "cpu") if options.small else (torch.bfloat16, "cuda")
    weights = Weights.random(shape, options.seed, dtype, device)
    lengths = lengths_of(options.sequences, options.prompt, options.seed)
    caches = Caches.random(shape, lengths, options.new, options.seed, weights.embedding)
    model = Model(shape, weights, caches)
    gpu = {"plain": options.eager, "overlap": options.overlap}
    kinds = small_variants(model) if options.small else variants(model, **gpu)
    found = measured(model, kinds, options.new, options.seed)
    for name, one in found.items():
        print(
            f"{name:36} {one.tokens_per_s:8.0f} tokens/s, {one.times_pytorch:.3f} x PyTorch; "
            f"error {one.error:.2e}, {'same' if one.same_bits else 'other'} bits in a second run: "
            f"{'holds' if one.holds else 'DOES NOT HOLD'}"
        )
    if options.json is not None:
        name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        steps = "eager" if options.eager or options.small else "compiled"
        problem = f"{len(lengths)} sequences, {'overlapping' if options.overlap else steps}"
        date = datetime.now(UTC).date().isoformat()
        data = {"device": name, "date": date, "torch": torch.__version__, "keys": lengths}
        data["found"] = [
            {"problem": problem, "kernel": name, **asdict(one)} for name, one in found.items()
        ]
        options.json.write_text(json.dumps(data, indent=2) + "\n")
    return 0 if all(one.holds for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
