"""examples/transformer: the same tokens as transformers' own attention, without a GPU.

Kernels are replaced by the float32 reference, which has their interface: what is proved is
how the registry is used, positions, offsets, the cache, its slots and its page table.
"""

from __future__ import annotations

import importlib
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/transformer"
MODULES = ("attention", "benchmark", "cache", "generate", "model", "peers", "reference")
torch = pytest.importorskip("torch", minversion="2.9", reason="needs PyTorch: the extra examples")
pytest.importorskip(
    "transformers", minversion="5.0", reason="needs transformers: the extra examples"
)
pytestmark = pytest.mark.filterwarnings("default")
NEW = 40
PAGE = 16


@pytest.fixture(scope="module")
def example() -> Any:
    """The example's modules, by name."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def model(example: Any) -> Any:
    return example.model.random_model(
        example.model.SMALL, seed=3, dtype=torch.float32, device="cpu"
    )


def prompts_of(lengths: list[int], seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(257) for _ in range(length)] for length in lengths]


LENGTHS = [1, 16, 5, 33, 15, 17, 100]


@pytest.fixture(scope="module")
def expected(model: Any) -> list[list[int]]:
    """Return the continuation of each prompt by transformers' eager attention, on its own."""
    model.set_attn_implementation("eager")
    model.generation_config.eos_token_id = None  # random models mean nothing by it
    found = []
    for prompt in prompts_of(LENGTHS):
        text = torch.tensor([prompt])
        options = {"do_sample": False, "max_new_tokens": NEW}
        whole = model.generate(text, attention_mask=torch.ones_like(text), **options)
        found.append(whole[0, len(prompt) :].tolist())
    return found


def cache_of(example: Any, sequences: int, seed: int = 0, **options: Any) -> Any:
    capacity = max(LENGTHS) + NEW
    order = list(range(sequences * -(-capacity // PAGE)))
    random.Random(seed).shuffle(order)
    settings = {"page_size": PAGE, "dtype": torch.float32, "device": "cpu", "order": order}
    return example.cache.PagedCache(
        example.model.SMALL, sequences, capacity, **{**settings, **options}
    )


def continued(generator: Any, prompts: list[list[int]]) -> list[list[int]]:
    first = generator.prefill(prompts)
    rest = generator.decode(NEW - 1)
    return torch.cat([first[:, None], rest], dim=1).tolist()


def test_a_batch_gives_the_tokens_of_each_prompt_alone(
    example: Any, model: Any, expected: list[list[int]]
) -> None:
    cache = cache_of(example, len(LENGTHS))
    generator = example.generate.Generator(model, example.reference.Reference(), cache)
    assert continued(generator, prompts_of(LENGTHS)) == expected
    assert cache.lengths.tolist() == [length + NEW - 1 for length in LENGTHS]
    assert len(set(map(tuple, expected))) > 1  # a model that always says the same shows nothing


def test_pages_that_were_given_back_serve_other_prompts(
    example: Any, model: Any, expected: list[list[int]]
) -> None:
    cache = cache_of(example, len(LENGTHS), seed=1)
    generator = example.generate.Generator(model, example.reference.Reference(), cache)
    continued(generator, prompts_of(LENGTHS[::-1], seed=5))
    assert continued(generator, prompts_of(LENGTHS)) == expected


def test_logits_of_a_text_are_those_of_eager_attention(example: Any, model: Any) -> None:
    texts = prompts_of([40, 64, 51])
    ours = example.generate.logits_of(model, example.reference.Reference(), texts, 30)
    model.set_attn_implementation("eager")
    for text, found in zip(texts, ours, strict=True):
        with torch.no_grad():
            wanted = model(input_ids=torch.tensor([text])).logits[0, -30:]
        assert (found - wanted).abs().max() < 1e-4 * wanted.abs().max()


MISTAKES = ["page table", "lengths", "positions", "slots", "offsets"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_other_tokens(
    example: Any,
    model: Any,
    expected: list[list[int]],
    mistake: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference, cache = example.reference.Reference(), cache_of(example, len(LENGTHS))
    decode, prefill, slots = reference.decode, reference.prefill, cache.slots

    def wrong_decode(
        query: Any, keys: Any, values: Any, lengths: Any, pages: Any, scale: Any
    ) -> Any:
        if mistake == "page table":
            pages = pages.roll(1, dims=0)
        if mistake == "lengths":
            lengths = lengths - 1  # the new row does not see itself
        return decode(query, keys, values, lengths, pages, scale)

    def wrong_prefill(query: Any, key: Any, value: Any, offsets: Any, scale: Any) -> Any:
        if mistake == "offsets":  # one sequence
            offsets = example.attention.Offsets((0, offsets.host[-1]), offsets.device)
        return prefill(query, key, value, offsets, scale)

    def wrong_slots(which: Any, positions: Any) -> Any:
        return slots(which, (positions - 1).clamp(min=0) if mistake == "slots" else positions)

    def wrong_places(lengths: Any, device: Any) -> Any:
        which, positions = places(lengths, device)
        return which, torch.arange(len(positions)) if mistake == "positions" else positions

    places = example.generate._places
    monkeypatch.setattr(example.generate, "_places", wrong_places)
    monkeypatch.setattr(reference, "decode", wrong_decode)
    monkeypatch.setattr(reference, "prefill", wrong_prefill)
    monkeypatch.setattr(cache, "slots", wrong_slots)
    generator = example.generate.Generator(model, reference, cache)
    try:
        found = continued(generator, prompts_of(LENGTHS))
    except (IndexError, RuntimeError):
        assert mistake == "positions"  # which are also the cache's
    else:
        assert found != expected


def test_pages_are_given_until_there_are_none_left(example: Any) -> None:
    cache = example.cache.PagedCache(
        example.model.SMALL, 2, 3 * PAGE, page_size=PAGE, dtype=torch.float32, device="cpu"
    )
    assert cache.free_pages == 6
    cache.reserve(0, 1)
    cache.reserve(1, PAGE)
    cache.reserve(0, PAGE)
    assert cache.free_pages == 4
    cache.reserve(0, PAGE + 1)
    assert cache.page_table.tolist() == [[0, 2, 0], [1, 0, 0]]
    with pytest.raises(RuntimeError, match="no room for 49 keys of sequence 0"):
        cache.reserve(0, 3 * PAGE + 1)
    cache.lengths[0] = 9
    cache.release(0)
    assert (cache.free_pages, cache.lengths[0].item()) == (5, 0)
    cache.reserve(1, 3 * PAGE)
    assert cache.page_table[1].tolist() == [1, 0, 2]  # in the order in which they had been taken
    which, positions = torch.tensor([1, 1, 1]), torch.tensor([0, PAGE, 2 * PAGE + 5])
    assert cache.slots(which, positions).tolist() == [PAGE, 0, 2 * PAGE + 5]


def test_a_mask_or_dropout_is_refused(example: Any, model: Any) -> None:
    query = torch.zeros(1, 4, 3, 16)
    for mask, dropout in ((torch.zeros(3, 3), 0.0), (None, 0.1)):
        with pytest.raises(ValueError, match="without mask"):
            example.attention.attend(model, query, query, query, mask, 1.0, dropout, step=None)


def test_the_benchmark_judges_tokens(example: Any, model: Any) -> None:
    benchmark, reference = example.benchmark, example.reference.Reference()
    prompts = benchmark.prompts_of(example.model.SMALL, 3, 20, seed=1)
    attentions = {"reference": reference, "sdpa": example.peers.Sdpa()}
    timed = benchmark.measured(model, attentions, prompts, 6)
    assert timed["reference"].tokens.tolist() == timed["sdpa"].tokens.tolist()
    assert timed["sdpa"].speed().decode_tokens_per_s > 0

    def judged(tokens: Any) -> Any:
        return benchmark.judged(model, prompts, tokens, example.peers.Sdpa(), reference)

    tokens = timed["reference"].tokens
    right = judged(tokens)
    assert (right.tokens, right.same, right.worst_gap) == (18, 18, 0)
    assert right.holds_beside(right)
    other = tokens.clone()
    other[1, 5] = (other[1, 5] + 1) % 257
    wrong = judged(other)
    assert (wrong.same, wrong.holds_beside(right)) == (17, False)


def test_pytorch_needs_one_page_a_sequence(example: Any) -> None:
    table = torch.zeros(2, 3, dtype=torch.int32)
    with pytest.raises(ValueError, match="one page"):
        example.peers.Sdpa().decode(*(torch.zeros(2, 1, 4, 16),) * 3, table[:, 0], table, 1.0)


def test_the_kernels_that_it_vendors_are_those_that_it_calls() -> None:
    import tomllib

    (entry,) = tomllib.loads((EXAMPLE / "fa4gen.toml").read_text())["vendor"]
    text = (EXAMPLE / "attention.py").read_text()
    assert all(f"{entry['prefix']}_torch.{name}" in text for name in entry["configs"])
    assert entry["into"] in text


@pytest.mark.compile
def test_the_vendored_kernels_take_what_they_are_given(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from fa4gen.cli.main import main

    shutil.copy(EXAMPLE / "fa4gen.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["vendor", "update"]) == 0
    vendored = tmp_path / example.attention.VENDORED.relative_to(EXAMPLE)
    monkeypatch.syspath_prepend(vendored)
    import llama_torch

    monkeypatch.setattr(example.attention, "VENDORED", vendored)
    kernels = example.attention.Kernels()
    assert kernels._decode is llama_torch.decode_d128_paged64_bf16
    with FakeTensorMode():
        query, key = (torch.zeros(1, h, 50, 128, dtype=torch.bfloat16) for h in (32, 8))
        offsets = example.attention.Offsets((0, 20, 50), torch.zeros(3, dtype=torch.int32))
        rows_first = (x.transpose(1, 2)[0] for x in (query, key, key))
        out = kernels.prefill(*rows_first, offsets, 0.1)
        assert out.shape == (50, 32, 128)
        query = torch.zeros(3, 1, 32, 128, dtype=torch.bfloat16)
        pages = torch.zeros(7, 64, 8, 128, dtype=torch.bfloat16)
        lengths, table = (torch.zeros(*shape, dtype=torch.int32) for shape in ((3,), (3, 4)))
        out = kernels.decode(query, pages, pages, lengths, table, 0.1)
        assert out.shape == (3, 1, 32, 128)
