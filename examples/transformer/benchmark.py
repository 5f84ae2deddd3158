# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of a model shaped like Llama 8B, by whose kernels its attention is computed.

python benchmark.py [--sequences 16] [--new 128] [--seed 0] [--fa3 LIBRARY [--cudart LIBRARY]]
                    [--small] [--json FILE]

Every attention continues the same prompts greedily: a ragged prefill, then captured steps. Their
tokens are then judged by logits with attention in float32: a token that is not the best there must
be as close to it as those of PyTorch's attention, or as PyTorch's errors are large. The exit status
is 1 where one is not.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from attention import Kernels
from cache import PagedCache
from generate import Generator, logits_of
from model import LLAMA_8B, SMALL, random_model
from peers import Fa3, Sdpa, Upcast
from reference import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attention import Attention
    from transformers import LlamaConfig, PreTrainedModel

ROUNDS = 3
"""Of each attention, in turn, after one that is not timed; the median counts."""
PAGE_SIZE = 64
JUDGED = 4
"""Sequences whose logits are compared: those of a whole batch take as long as all the rest."""


@dataclass(frozen=True)
class Speed:
    """What one attention took."""

    prefill_tokens_per_s: float
    decode_tokens_per_s: float


@dataclass(frozen=True)
class Judgement:
    """How tokens compare with those that logits in float32 choose."""

    tokens: int
    same: int
    worst_gap: float
    """The most that a chosen token's logit is below the best."""
    error: float
    """The most that a logit of PyTorch's attention differs."""

    def holds_beside(self, pytorch: Judgement) -> bool:
        """Whether every token is as good as PyTorch's own, or as its errors allow."""
        return self.worst_gap <= max(2 * self.error, pytorch.worst_gap)


class Timed:
    """A model with one attention, and the rounds that it ran."""

    def __init__(
        self,
        model: PreTrainedModel,
        attention: Attention,
        prompts: Sequence[Sequence[int]],
        new: int,
    ) -> None:
        """Make the cache; one page a sequence where the attention knows no pages."""
        capacity = max(map(len, prompts)) + new
        capacity = -(-capacity // PAGE_SIZE) * PAGE_SIZE
        self._cache = PagedCache(
            model.config,
            len(prompts),
            capacity,
            page_size=capacity if isinstance(attention, Sdpa) else PAGE_SIZE,
            dtype=model.dtype,
            device=str(model.device),
        )
        self._model, self._attention = model, attention
        self._generator = Generator(model, attention, self._cache)
        self._prompts, self._new = prompts, new
        self._seconds: list[tuple[float, float]] = []
        self.tokens = torch.empty(0)

    def run(self) -> None:
        """Continue the prompts once."""
        start = _now()
        first = self._generator.prefill(self._prompts)
        middle = _now()
        rest = self._generator.decode(self._new - 1)
        self._seconds.append((middle - start, _now() - middle))
        self.tokens = torch.cat([first[:, None], rest], dim=1)

    def speed(self) -> Speed:
        """Return the median of all rounds but the first, which loads and captures."""
        prefill, decode = (statistics.median(part) for part in zip(*self._seconds[1:], strict=True))
        tokens = sum(map(len, self._prompts))
        return Speed(tokens / prefill, len(self._prompts) * (self._new - 1) / decode)


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def prompts_of(config: LlamaConfig, sequences: int, typical: int, seed: int) -> list[list[int]]:
    """Return prompts of random tokens, of log-normal lengths around ``typical``."""
    rng = random.Random(seed)
    lengths = [
        min(max(int(rng.lognormvariate(0, 0.6) * typical), 1), 4 * typical)
        for _ in range(sequences)
    ]
    return [[rng.randrange(config.vocab_size) for _ in range(length)] for length in lengths]


def judged(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    tokens: torch.Tensor,
    rounded: Attention,
    exact: Attention,
) -> Judgement:
    """Compare the tokens after prompts with logits of ``exact``; ``rounded`` shows their errors."""
    new = tokens.shape[1]
    same, worst, error = 0, 0.0, 0.0
    for prompt, after in zip(prompts, tokens.tolist(), strict=True):
        text = [[*prompt, *after[:-1]]]
        logits, near = (logits_of(model, a, text, new)[0].float() for a in (exact, rounded))
        chosen = torch.tensor(after, device=logits.device)
        gaps = logits.max(-1).values - logits.gather(-1, chosen[:, None])[:, 0]
        same += int((gaps == 0).sum())
        worst = max(worst, gaps.max().item())
        error = max(error, (near - logits).abs().max().item())
    return Judgement(tokens.numel(), same, worst, error)


def measured(
    model: PreTrainedModel,
    attentions: Mapping[str, Attention],
    prompts: Sequence[Sequence[int]],
    new: int,
) -> dict[str, Timed]:
    """Run every attention in turn."""
    timed = {name: Timed(model, a, prompts, new) for name, a in attentions.items()}
    for _ in range(1 + ROUNDS):
        for one in timed.values():
            one.run()
    return timed


def main() -> int:
    """Measure and judge; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=1024, help="typical tokens of a prompt")
    parser.add_argument("--new", type=int, default=128, help="tokens to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fa3", type=Path, help="library of FlashAttention-3")
    parser.add_argument("--cudart", type=Path, help="CUDA runtime that the library needs")
    parser.add_argument(
        "--small", action="store_true", help="a small model on the CPU, with the reference"
    )
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    if not options.small and not torch.cuda.is_available():
        sys.exit("benchmark.py: no GPU to run on; --small needs none")
    torch.backends.cuda.matmul.allow_tf32 = False
    config = SMALL if options.small else LLAMA_8B
    dtype, device = (torch.float32, "cpu") if options.small else (torch.bfloat16, "cuda")
    model = random_model(config, seed=options.seed, dtype=dtype, device=device)
    first = {"reference": Reference()} if options.small else {"fa4gen": Kernels()}
    attentions: dict[str, Attention] = {**first, "sdpa": Sdpa()}
    if options.fa3 is not None:
        attentions["fa3"] = Fa3(options.fa3, options.cudart)
    prompts = prompts_of(config, options.sequences, options.prompt, options.seed)
    timed = measured(model, attentions, prompts, options.new)
    exact = Reference() if options.small else Upcast()
    judgements = {
        name: judged(model, prompts[:JUDGED], one.tokens[:JUDGED], Sdpa(), exact)
        for name, one in timed.items()
    }
    found = {}
    for name, one in timed.items():
        speed, judgement = one.speed(), judgements[name]
        holds = judgement.holds_beside(judgements["sdpa"])
        found[name] = {**asdict(speed), **asdict(judgement), "holds": holds}
        print(
            f"{name:10} prefill {speed.prefill_tokens_per_s:9.0f} tokens/s, decode "
            f"{speed.decode_tokens_per_s:8.0f} tokens/s; {judgement.same} of {judgement.tokens} "
            f"tokens are the best in float32, the others at most {judgement.worst_gap:.2g} below "
            f"it, where PyTorch's logits differ by {judgement.error:.2g}: "
            f"{'holds' if holds else 'DOES NOT HOLD'}"
        )
    if options.json is not None:
        name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
        lengths = list(map(len, prompts))
        data = {"device": name, "torch": torch.__version__, "prompts": lengths, "found": found}
        options.json.write_text(json.dumps(data, indent=2) + "\n")
    return 0 if all(one["holds"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
