"""examples/transformer/chain.py: its decoder against transformers, its judge, its calls."""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[2] / "examples/transformer"
MODULES = ("blocks", "cache", "chain", "decoder", "peers", "reference", "step_kernels")
torch = pytest.importorskip("torch", minversion="2.9", reason="needs PyTorch: the extra examples")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """The modules, by name."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


class Functions:
    """The functions of the kernels, by PyTorch; notes what is called, and with what."""

    def __init__(self, example: Any) -> None:
        self._reference = example.reference.Reference()
        self.called: list[str] = []
        names = ("qkv", "residual", "gate_up", "head", "decode")
        self.by_name = {name: getattr(self, name) for name in names}

    def qkv(self, a: Any, b: Any) -> Any:
        return self._product("qkv", a, b)

    def head(self, a: Any, b: Any) -> Any:
        return self._product("head", a, b)

    def residual(self, a: Any, b: Any, c: Any) -> Any:
        return self._product("residual", a, b) + c

    def gate_up(self, a: Any, b: Any) -> Any:
        gate, up = self._product("gate_up", a, b).chunk(2, -1)
        return torch.nn.functional.silu(gate) * up

    def decode(
        self, query: Any, keys: Any, values: Any, *, softmax_scale: float, **where: Any
    ) -> Any:
        self.called.append("decode")
        lengths, table = where.pop("key_lengths"), where.pop("page_table")
        assert not where
        return self._reference.decode(query, keys, values, lengths, table, softmax_scale)

    def _product(self, name: str, a: Any, b: Any) -> Any:
        assert b.stride(0) == 1  # the weight itself, transposed
        assert a.is_contiguous()
        self.called.append(name)
        return a @ b


def model_of(example: Any, seed: int = 1) -> Any:
    shape = example.decoder.SMALL
    weights = example.decoder.Weights.random(shape, seed, torch.float32, "cpu")
    caches = example.chain.Caches.random(shape, [3, 64, 70], 6, seed, weights.embedding)
    return example.chain.Model(shape, weights, caches)


def test_the_kernels_are_called_in_the_order_of_a_step(example: Any) -> None:
    model, functions = model_of(example), Functions(example)
    blocks = example.blocks.Kernels(example.blocks.eager(model.shape), functions.by_name)
    paged = example.blocks.Paged(functions.by_name)
    ours = example.chain.Variant(model.decoder(blocks, paged), model.caches)
    plain = example.chain.small_variants(model)["pytorch"]
    tokens = torch.randint(256, (6, 3), generator=torch.Generator().manual_seed(2))
    found, expected = ours.after(tokens), plain.after(tokens)
    assert (found - expected).norm() < 1e-5 * expected.norm()
    layer = ["qkv", "decode", "residual", "gate_up", "residual"]
    assert functions.called == [*layer * model.shape.num_hidden_layers, "head"] * 6
    assert functions.by_name.keys() == example.step_kernels.CONFIGS.keys()


def test_nothing_is_launched_between_attention_and_its_product(example: Any) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    model, functions = model_of(example), Functions(example)
    events: list[str] = []

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if not func.is_view and noted:
                events.append(str(func))
            return func(*args, **kwargs or {})

    noted = True

    def ours(name: str) -> Any:
        def call(*arrays: Any, **more: Any) -> Any:
            nonlocal noted
            events.append(name)
            noted = False
            try:
                return functions.by_name[name](*arrays, **more).contiguous()
            finally:
                noted = True

        return call

    kernels = {name: ours(name) for name in functions.by_name}
    blocks = example.blocks.Kernels(example.blocks.eager(model.shape), kernels)
    decoder = model.decoder(blocks, example.blocks.Paged(kernels))
    model.caches.rewind()
    with Noting():
        decoder.step()
    followers = {
        name: {after for one, after in pairwise(events) if one == name}
        for name in ("decode", "gate_up")
    }
    assert followers == {"decode": {"residual"}, "gate_up": {"residual"}}


def test_compiled_steps_give_the_same(example: Any) -> None:
    model = model_of(example)
    tokens = torch.randint(256, (2, 3), generator=torch.Generator().manual_seed(2))
    plain, compiled = (
        example.chain.Variant(model.decoder(steps, example.peers.Sdpa()), model.caches)
        for steps in (example.blocks.eager(model.shape), example.blocks.compiled(model.shape))
    )
    torch._dynamo.reset()
    expected, found = plain.after(tokens), compiled.after(tokens)
    assert (found - expected).norm() < 1e-5 * expected.norm()
    counters = torch._dynamo.utils.counters
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 4  # one of each step, for all layers


def test_the_decoder_gives_the_tokens_of_transformers(example: Any) -> None:
    pytest.importorskip(
        "transformers", minversion="5.0", reason="needs transformers: the extra examples"
    )
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(4)
    extents = example.decoder.SMALL
    names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
             "num_attention_heads", "num_key_value_heads", "head_dim", "rms_norm_eps")  # fmt: skip
    config = LlamaConfig(
        **{name: getattr(extents, name) for name in names},
        rope_parameters={"rope_type": "default", "rope_theta": extents.rope_theta},
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    prompts = torch.randint(256, (2, 9))
    model.generation_config.eos_token_id = None
    options = {"do_sample": False, "max_new_tokens": 12}
    mask = torch.ones_like(prompts)
    expected = model.generate(prompts, attention_mask=mask, **options)[:, 9:]
    more = {"page_size": 64, "dtype": torch.float32, "device": "cpu"}
    cache = example.cache.PagedCache(extents, 2, 64, **more)
    for sequence in range(2):
        cache.reserve(sequence, 64)
    weights, blocks = example.decoder.Weights.of(model), example.blocks.eager(extents)
    decoder = example.decoder.Decoder(
        extents, weights, blocks, example.reference.Reference(), cache
    )
    for given in prompts.T:
        decoder.tokens.copy_(given)
        decoder.step()
    found = []
    for _ in range(12):
        found.append(decoder.tokens.clone())
        decoder.step()
    assert torch.stack(found, 1).tolist() == expected.tolist()
    assert len(set(expected.flatten().tolist())) > 2


def test_the_benchmark_runs_without_a_gpu(
    example: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    written = tmp_path / "figures.json"
    words = ["chain.py", "--small", "--prompt", "30", "--new", "3", "--json", str(written)]
    monkeypatch.setattr(sys, "argv", words)
    assert example.chain.main() == 0
    assert "reference" in capsys.readouterr().out
    found = json.loads(written.read_text())["found"]
    assert [one["kernel"] for one in found] == ["pytorch", "reference"]
    assert {one["problem"] for one in found} == {"16 sequences, eager"}
    assert found[0]["times_pytorch"] == 1
    assert all(one["holds"] and len(one["us_a_step"]) == 5 for one in found)


class Recorded:
    """A decoder on a GPU that is not there, and a graph that replays what it captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = self.captured = self.replays = 0
        self.tokens = SimpleNamespace(is_cuda=True, zero_=lambda: None, copy_=lambda given: None)
        nothing = SimpleNamespace(wait_stream=lambda other: None)
        named = {
            "Stream": lambda: nothing,
            "current_stream": lambda: nothing,
            "stream": lambda one: nullcontext(),
            "synchronize": lambda: None,
            "CUDAGraph": lambda: self,
            "graph": self.capture,
        }
        for name, function in named.items():
            monkeypatch.setattr(torch.cuda, name, function)

    def capture(self, graph: Any) -> Any:
        assert graph is self
        assert self.steps == 2  # the warm-up
        self.captured += 1
        return nullcontext()

    def step(self) -> Any:
        self.steps += 1
        return torch.full((3, 4), float(self.steps))

    def replay(self) -> None:
        self.replays += 1


def test_a_step_is_captured_once_and_replayed(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder, caches = Recorded(monkeypatch), model_of(example).caches
    variant = example.chain.Variant(decoder, caches)
    assert (decoder.steps, decoder.captured) == (3, 1)
    assert variant.seconds(5) >= 0
    assert variant.after(torch.zeros(2, 3)).tolist() == [[[3.0] * 4] * 3] * 2
    assert (decoder.steps, decoder.replays) == (3, 7)
    assert caches.paged.lengths.tolist() == caches.lengths.tolist()


@pytest.mark.parametrize("mistake", ["residual", "lengths", "bits"])
def test_a_mistake_does_not_hold(example: Any, mistake: str) -> None:
    model, functions = model_of(example), Functions(example)
    kernels = dict(functions.by_name)
    if mistake == "residual":
        kernels["residual"] = lambda a, b, c: functions.residual(a, b, 0.99 * c)
    if mistake == "bits":
        kernels["head"] = lambda a, b: a @ b * (1 + 1e-7 * torch.randn(()))
    if mistake == "lengths":
        kernels["decode"] = lambda *arrays, key_lengths, **more: functions.decode(
            *arrays, key_lengths=(key_lengths - 1).clamp(min=1), **more
        )
    blocks = example.blocks.Kernels(example.blocks.eager(model.shape), kernels)
    wrong = model.decoder(blocks, example.blocks.Paged(kernels))
    kinds = example.chain.small_variants(model)
    kinds["wrong"] = example.chain.Variant(wrong, model.caches)
    found = example.chain.measured(model, kinds, 4, seed=0)
    assert [one.holds for one in found.values()] == [True, True, False]
    assert found["wrong"].same_bits is (mistake != "bits")


def test_all_variants_of_a_gpu_are_made(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, bool]] = []

    def loaded(**options: bool) -> Any:
        made.append(options)
        return Functions(example).by_name

    monkeypatch.setattr(example.chain, "loaded", loaded)
    model = model_of(example)
    for options in ({"plain": True}, {}, {"overlap": True}):
        made.clear()
        found = example.chain.variants(model, **options)
        assert len(found) == 5 + 2 * options.get("overlap", False)
        assert made == [
            {"dependent": False},
            {"dependent": True},
            {"dependent": True, "short": True},
        ]
        tokens = torch.zeros(1, 3, dtype=torch.int64)
        expected = found["pytorch"].after(tokens)
        for name, one in found.items():
            assert (one.after(tokens) - expected).norm() < 1e-5 * expected.norm(), name
