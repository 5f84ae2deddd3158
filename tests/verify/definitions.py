"""Definitions of reference, bounds and inputs, as simple as possible: pair by pair, bit by bit.

Each check is given a module of ``fa4gen/verify``, or a mutant of it, and fails where it is wrong.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.designs.common.gemm_scales import OperandScales
from fa4gen.epilogues import residual_of
from fa4gen.epilogues.activation import parse_activation
from fa4gen.expressions.tensors import Tensor
from fa4gen.masks import Causal, NoMask
from fa4gen.masks.expression import parse_mask
from fa4gen.masks.sliding_window import SlidingWindow
from fa4gen.scales import restore
from fa4gen.scores import Score, Softcap
from fa4gen.verify.cases import Case
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.inputs import GemmInputs
from fa4gen.verify.input_kinds import Draft
from fa4gen.verify.reference import AttentionProblem, AttentionResult
from fa4gen.verify.rounding import UNIT_ROUNDOFF, Precision, round_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

BATCHES, ROWS, KEYS, HEADS, KEY_HEADS, DEPTH, VALUE_DEPTH = 2, 7, 9, 4, 2, 5, 3
FINE = Precision("fp16", "fp16")
COARSE = (
    Precision("fp8_e4m3", "fp16", 2.0, 6),
    Precision("fp8_e4m3", "fp16", 8.0, 0),
    Precision("bf16", "bf16", 8.0),
    Precision("fp16", "fp16", 8.0),
)
DOCUMENTS = Tensor("document", "int32", ("batch", "keys"))
SEEN: list[tuple[Any, Callable[..., bool]]] = [
    (Causal(), lambda b, h, i, j: j <= i + KEYS - ROWS),
    (SlidingWindow(2, 1), lambda b, h, i, j: -2 <= j - (i + KEYS - ROWS) <= 1),
    (
        parse_mask("document[batch, key] == document[batch, row]"),
        lambda b, h, i, j: documents()[b, j] == documents()[b, i],
    ),
    (parse_mask("key < query - 4"), lambda b, h, i, j: j < i + KEYS - ROWS - 4),
    (parse_mask("key + key_head < query - head"), lambda b, h, i, j: j + h // 2 < i + 2 - h),
]
"""Masks, and whether row i of batch b and head h sees key j."""
FIRST_BATCH = 1


def documents() -> Any:
    """Documents of the keys of FIRST_BATCH + BATCHES batches."""
    return np.array([[0] * 9, [0, 0, 1, 1, 1, 2, 2, 2, 2], [3, 3, 3, 3, 4, 4, 5, 5, 5]], np.int32)


def drawn(seed: int = 1) -> tuple[Any, Any, Any]:
    """Query, key and value of fp8's numbers."""
    rng = np.random.default_rng(seed)
    shapes = (
        (BATCHES, ROWS, HEADS, DEPTH), (BATCHES, KEYS, KEY_HEADS, DEPTH),
        (BATCHES, KEYS, KEY_HEADS, VALUE_DEPTH),
    )  # fmt: skip
    query, key, value = (round_to(rng.standard_normal(s).astype("f4"), "fp8_e4m3") for s in shapes)
    return query, key, value


def scales(*shape: int) -> dict[str, Any]:
    """Scales of query, key and value that are not equal anywhere."""
    rng = np.random.default_rng(2)
    drawn = rng.uniform(0.5, 2, (3, *shape)).astype(np.float32)
    return dict(zip(("query", "key", "value"), drawn, strict=True))


def attend(
    problem: Any, sees: Any, arrays: Any, descales: Any = MappingProxyType({}), sinks: Any = None
) -> tuple[Any, Any]:
    """Return output and log-sum-exp of query, key and value, number by number."""
    query, key, value = (x.astype(np.float64) for x in arrays)
    batches, rows, heads, _ = query.shape
    keys, key_heads = key.shape[1:3]
    out = np.zeros((batches, rows, heads, value.shape[3]))
    lse = np.full((batches, heads, rows), -math.inf)

    def scale(name: str, b: int, j: int, h: int) -> float:
        if name not in descales:
            return 1.0
        return float(descales[name][(b, j, h) if descales[name].ndim == 3 else (b, h)])

    for b in range(batches):
        for h in range(heads):
            kh = h // (heads // key_heads)
            for i in range(rows):
                weights = {}
                for j in range(keys):
                    x = float(query[b, i, h] @ key[b, j, kh]) * problem.softmax_scale
                    x *= scale("query", b, 0, kh) * scale("key", b, j, kh)
                    cap = problem.score.numbers().get("softcap")
                    x = cap * math.tanh(x / cap) if cap else x
                    if sees(b + FIRST_BATCH, h, i, j):
                        weights[j] = math.exp(x)
                total = sum(weights.values()) + (0.0 if sinks is None else math.exp(sinks[h]))
                if total:
                    lse[b, h, i] = math.log(total)
                for j, weight in weights.items():
                    out[b, i, h] += weight / total * value[b, j, kh] * scale("value", b, j, kh)
    return out, lse


@cache
def problems() -> list[tuple[Any, Any, Any, Any, Any]]:
    """Problems with descales and sinks, and their output and log-sum-exp by definition."""
    sinks = np.array([0.5, -np.inf, 1.5, -1.0], np.float32)
    of_heads, of_pages = scales(BATCHES, KEY_HEADS), scales(BATCHES, KEYS, KEY_HEADS)
    of_pages.pop("query")
    of_key = {"key": of_heads["key"]}
    found = []
    for number, (mask, sees) in enumerate(SEEN):
        score = Softcap(2.0) if number == 1 else Score()
        problem = AttentionProblem(mask, score, 0.7)
        for descales, own in (({}, None), (of_key, None), (of_heads, sinks), (of_pages, None)):
            found.append((problem, descales, own, *attend(problem, sees, drawn(), descales, own)))
    return found


def call(compute: Any, problem: Any, *between: Any, descales: Any, sinks: Any, **more: Any) -> Any:
    """Call ``exact_attention`` or ``rounded_attention`` of a module on ``drawn``."""
    tensors = {"document": documents()}
    return compute(
        problem, *drawn(), *between, descales=descales, sinks=sinks, tensors=tensors,
        first_batch=FIRST_BATCH, **more,
    )  # fmt: skip


def check_exact(module: ModuleType) -> None:
    """The float64 reference is the definition, whatever is computed at a time."""
    for chunk in (KEYS, 1 << 18):
        module.CPU_CHUNK = chunk
        for problem, descales, sinks, out, lse in problems():
            mine = module.AttentionProblem(problem.mask, problem.score, problem.softmax_scale)
            found = call(module.exact_attention, mine, descales=descales, sinks=sinks)
            np.testing.assert_allclose(found.out, out, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(found.lse, lse, rtol=1e-12, atol=1e-12)


def check_rounded(module: ModuleType) -> None:
    """The rounded reference is near the definition, and as far from it as its roundings."""
    for problem, descales, sinks, out, lse in problems():
        mine = module.AttentionProblem(problem.mask, problem.score, problem.softmax_scale)
        rng = np.random.default_rng(3)
        found = call(module.rounded_attention, mine, FINE, rng, descales=descales, sinks=sinks)
        np.testing.assert_allclose(found.out, out, atol=2e-3 * np.abs(out).max())
        np.testing.assert_allclose(found.lse, lse, atol=1e-5)
        for coarse in COARSE:
            found = call(
                module.rounded_attention, mine, coarse, rng, descales=descales, sinks=sinks
            )
            error = np.linalg.norm(found.out - out) / np.linalg.norm(out)
            unit = UNIT_ROUNDOFF[coarse.dtype]
            assert 0.2 * unit < error < unit, (error, unit)
            np.testing.assert_allclose(found.lse, lse, atol=1e-5)
            np.testing.assert_array_equal(found.out, round_to(found.out, coarse.out_dtype))
            assert (found.out != round_to(found.out, "fp8_e4m3")).any()
    query = key = np.zeros((1, 50, 1, 4), np.float32)
    value = np.ones((1, 50, 1, 4), np.float32)
    problem = module.AttentionProblem(Causal(), Score(), 1.0)
    lagging = Precision("bf16", "fp16", 8.0)  # the maximum lags, and probabilities are rounded
    found = module.rounded_attention(problem, query, key, value, lagging, np.random.default_rng(4))
    assert np.unique(found.out).size > 5
    in_time = replace(lagging, rescale_threshold=0.0)
    found = module.rounded_attention(problem, query, key, value, in_time, np.random.default_rng(4))
    assert (found.out == 1).all()
    # One key above many that weigh 2^-12 of it each, and half of the whole together.
    query, key, value = np.ones((1, 1, 1, 1)), np.zeros((1, 4097, 1, 1)), np.ones((1, 4097, 1, 1))
    key[0, 0] = 12
    arrays = [array.astype(np.float32) for array in (query, key, value)]
    problem = module.AttentionProblem(NoMask(), Score(), math.log(2))
    for shift, out in ((0, 0.5), (8, 1.0)):  # without a shift the many are lost
        precision = Precision("fp8_e4m3", "bf16", 0.0, shift)
        found = module.rounded_attention(problem, *arrays, precision, np.random.default_rng(1))
        assert found.out[0, 0, 0, 0] == out


def check_ends(module: ModuleType) -> None:
    """Weights that are rounded are within their room, and those of powers of two have none."""
    for precision in (FINE, Precision("bf16", "bf16"), Precision("fp8_e4m3", "bf16", 0.0, 8)):
        weights = np.exp2(np.random.default_rng(1).uniform(-15, 0, (3, 500)))
        weights[1] = np.exp2(np.rint(np.log2(weights[1])))
        weights[2] **= 2  # some are below the least number
        weights[:, 0] = 1
        room, _ = module.weight_room(weights, 0.0, precision, np)
        scale = np.float32(2.0**precision.probability_shift)
        rounded = round_to(weights.astype(np.float32) * scale, precision.dtype) / scale
        off = np.abs(rounded - weights)
        assert (off <= room).all()
        assert (room[1] == 0).all()
        least = np.maximum(weights[0], 2.0**-14)  # fp8's numbers below are not normal
        assert (room[0] < 1.1 * least * UNIT_ROUNDOFF[precision.dtype]).all()
        moved, own = module.weight_room(weights, 0.01, precision, np)
        assert (moved[0] > 0.01 * weights[0]).all()
        assert 0.01 < own < 0.011
        least = np.array([[1.0, 2.0**-27]])
        vanishing, _ = module.weight_room(least, 0.0, Precision("fp16", "fp16"), np)
        assert vanishing[0, 1] == least[0, 1]
    values = np.array([[3.0], [1.0], [5.0]])
    weights, of_sink = np.array([[1.0, 0.5, 0.25]]), 0.25
    found = module.WeightedSums(weights, None, values, weights @ values, weights.sum() + of_sink)
    low, high = module.output_ends(found, 0.0, Precision("bf16", "bf16"), np)
    exact = (3 + 0.5 + 1.25) / 2
    assert exact * (1 - 1e-5) < low < exact < high < exact * (1 + 1e-5)
    low, high = module.output_ends(found, 0.01, Precision("bf16", "bf16"), np)
    of_total = 1 + 0.01 * 1.75 / 2
    np.testing.assert_allclose(low, exact * (1 - 0.01 - 2.0**-8) / of_total, rtol=1e-3)
    np.testing.assert_allclose(high, exact * (1 + 0.01 + 2.0**-8) * of_total, rtol=1e-3)


def check_tolerance(module: ModuleType) -> None:
    """Errors are what they are called, and bounds what the documentation says."""
    rng = np.random.default_rng(1)
    exact = AttentionResult(rng.standard_normal((1, 40, 1, 8)), rng.standard_normal((1, 1, 40)))
    got = exact.out.copy()
    got[0, 3] += 0.5 * np.linalg.norm(exact.out[0, 3]) / math.sqrt(8)
    lse = exact.lse.copy()
    lse[0, 0, 5] += 0.125
    errors = module.measure(AttentionResult(got, lse), exact)
    distance = np.linalg.norm(got - exact.out)
    np.testing.assert_allclose(errors.frobenius, distance / np.linalg.norm(exact.out))
    np.testing.assert_allclose([errors.row, errors.lse], [0.5, 0.125])
    np.testing.assert_allclose(errors.element, np.abs(got - exact.out).max())
    assert list(dict(errors)) == ["frobenius", "row", "element", "lse", "share", "max_logit"]
    for bad in (np.nan, np.inf, -np.inf):
        got[0, 0, 0, 0] = bad
        found = module.measure(AttentionResult(got, lse * bad), exact)
        assert found.row == found.element == found.frobenius == found.lse == math.inf
    one = AttentionResult(exact.out, exact.lse, None, exact.out, exact.out * 1.0)
    assert module.measure(AttentionResult(exact.out, lse), one).share == 0
    assert module.measure(AttentionResult(exact.out * 1.001, lse), one).share > 1
    problem = AttentionProblem(Causal(), Score(), 0.25)
    query = key = rng.standard_normal((1, 40, 1, 64), dtype=np.float32)
    own = module.Errors(0.01, 0.02, 0.03, 1e-3)
    for dtype, unit in (("bf16", 2.0**-8), ("fp16", 2.0**-11)):
        found = module.bounds(own, exact, problem, query, key, Precision(dtype, dtype))
        check_bounds(found, unit, np.abs(exact.out).max())


def check_bounds(found: Any, unit: float, largest: float) -> None:
    """Bounds of 40 rows follow from their own errors, and from roundings by ``unit``."""
    np.testing.assert_allclose(found.frobenius, 1.25 * 0.01 + 1.5 * unit / math.sqrt(40))
    np.testing.assert_allclose(found.row, 1.5 * 0.02 + 1.5 * unit)
    np.testing.assert_allclose(found.element, 2.5 * 0.03 + unit * largest)
    assert found.share == 1
    assert 4e-3 < found.lse < 4.03e-3


def check_rounding(module: ModuleType) -> None:
    """Numbers become the nearest of their type, even ones where two are as near."""
    import ml_dtypes

    types = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp8_e4m3": ml_dtypes.float8_e4m3fn}
    rng = np.random.default_rng(1)
    values = (rng.standard_normal(4000) * np.exp2(rng.uniform(-20, 8, 4000))).astype(np.float32)
    for name, dtype in types.items():
        values = values if name != "fp8_e4m3" else np.clip(values, -448, 448)
        bits = np.arange(0x200, 0x300, dtype=np.uint16) if name != "fp8_e4m3" else np.arange(99)
        width = np.dtype(dtype).itemsize
        numbers = bits.astype(f"u{width}").view(dtype).astype(np.float32)
        ties = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
        for array in (values, numbers, ties):
            nearest = array.astype(dtype)
            np.testing.assert_array_equal(
                module.round_to(array.copy(), name), nearest.astype(np.float32)
            )
            np.testing.assert_array_equal(module.to_bits(array, name), nearest.view(f"u{width}"))
            back = module.from_bits(nearest.view(f"u{width}"), name)
            np.testing.assert_array_equal(back, nearest.astype(np.float32))
        poison = np.array([module.POISON_BITS[name]]).astype(f"u{width}").view(dtype)
        assert np.isnan(poison.astype(np.float32)).all()
        with np.errstate(invalid="ignore"):
            made = (np.float32(np.inf) - np.float32(np.inf)).astype(dtype).view(f"u{width}")
        assert name == "fp8_e4m3" or made & 0x7FFF != module.POISON_BITS[name]
        assert module.UNIT_ROUNDOFF[name] == 2.0 ** -(ml_dtypes.finfo(dtype).nmant + 1)
    assert (module.round_to(np.float32([1e6, -1e6]), "fp8_e4m3") == [448, -448]).all()
    assert np.isinf(module.round_to(np.float32([1e6]), "fp16")).all()


def check_inputs(module: ModuleType) -> None:
    """Numbers are those of a seed and a name, of their type, and scales are of each head."""
    case = Case("c", 2, 4, 2, 50, 60)
    names = ("query", "key", "value")

    def make(seed: int, name: str = "c") -> Any:
        rng = module.make_rng(seed, name)
        return module.make_inputs(case, 32, "bf16", rng, descaled=names, has_sinks=True)

    one, other = make(1), make(2)
    for name in names:
        array = getattr(one, name)
        np.testing.assert_array_equal(array, getattr(make(1), name))
        np.testing.assert_array_equal(array, round_to(array, "bf16"))
        assert (array != getattr(other, name)).mean() > 0.9
        assert (array != getattr(make(1, "d"), name)).mean() > 0.9
        assert 0.9 < array.std() < 1.1
        assert abs(array.mean()) < 0.1
        for axis in range(4):
            assert (np.diff(array, axis=axis) != 0).mean() > 0.9
        assert one.descales[name].shape == (2, 2)
        assert np.unique(one.descales[name]).size == 4
    assert one.softmax_scale == 32**-0.5
    assert np.unique(one.sinks).size > 1
    assert one.sinks.shape == (4,)
    scaled = module.make_inputs(Case("c", 1, 1, 1, 5, 5, softmax_scale=0.5), 32, "bf16",
                                module.make_rng(1, "c"))  # fmt: skip
    assert scaled.softmax_scale == 0.5
    assert one.scale_is_default
    assert not scaled.scale_is_default
    assert scaled.sinks is None
    document = module.draw_tensor(DOCUMENTS, case, module.make_rng(1, "c"))
    assert document.shape == (2, 60)
    assert np.unique(document).size > 1


def check_counting(module: ModuleType) -> None:
    """Logits are whole, values are and none is negative; neighbours differ."""
    shapes = ((2, 30, 4, 64), (2, 200, 2, 64), (2, 200, 2, 32))
    for kind, change in module.COUNTING_KINDS.items():
        arrays = [np.zeros(shape, np.float32) for shape in shapes]
        rng = np.random.default_rng(1)
        draft = Draft(rng, "fp8_e4m3", "fp8_e4m3", *arrays, 0.125, raised=(0, 50))
        change(draft)
        assert draft.scale == np.float32(math.log(2))
        key = np.repeat(draft.key, 2, axis=2)
        logits = np.einsum("bqhd,bkhd->bqhk", draft.query, key)
        if kind == "counting_raised":
            logits[..., :50] -= 11.375  # of the other keys
            assert not draft.value[:, :50, :, 16:].any()
            assert draft.value[:, :50, :, :16].any(axis=(0, 1, 2)).all()
            assert draft.value[:, 50:].any(axis=(0, 1, 2)).all()
        np.testing.assert_array_equal(logits, np.rint(logits))
        np.testing.assert_array_equal(draft.value, np.rint(draft.value))
        assert draft.value.min() == 0
        assert draft.value.max() > 10
        for axis in range(4):
            assert (np.diff(logits, axis=axis) != 0).mean() > 0.3
        for axis in range(3):
            assert (np.diff(draft.value, axis=axis) != 0).any(axis=3).mean() > 0.9
            for array in (draft.value, draft.key[..., :-1]):
                assert np.diff(array != 0, axis=axis).any(axis=3).mean() > 0.9
        assert (draft.query != 0).mean(axis=(0, 1, 2))[:-1].min() > 0.3
        assert (draft.key != 0).any(axis=(0, 1, 2))[:-1].all()
        spread = logits.max(axis=3) - logits.min(axis=3)
        assert spread.min() >= 12 if kind == "counting_rising" else spread.max() <= 3


def gemm_problem(**more: Any) -> tuple[SimpleNamespace, GemmInputs]:
    """A small product with everything: a batch, a shared B, a C, factors."""
    rng = np.random.default_rng(1)
    a, b, c = (
        round_to(rng.standard_normal(shape).astype("f4"), "bf16")
        for shape in ((3, 9, 33), (1, 33, 7), (3, 9, 7))
    )
    problem = SimpleNamespace(
        out_dtype="fp16",
        residual=residual_of("matrix"),
        activation=parse_activation("relu(x)"),
        accumulation=SimpleNamespace(products_per_step=16, alignment_bits=25),
        scales=(),
        gate=None,
        c_is_added_last=False,
    )
    vars(problem).update(more)
    return problem, GemmInputs(a, b, c, -0.75, 0.5)


def check_gemm(module: ModuleType) -> None:
    """Products are the definition, in intervals a little wider than the output's rounding."""
    for chunk in (8, 1 << 18):
        module.CPU_CHUNK = chunk
        problem, inputs = gemm_problem()
        found = module.compute(problem, inputs)
        for batch in range(3):
            for i in range(9):
                for j in range(7):
                    x = sum(
                        float(inputs.a[batch, i, k]) * float(inputs.b[0, k, j]) for k in range(33)
                    )
                    x = -0.75 * x + 0.5 * float(inputs.c[batch, i, j])
                    at = (batch, i, j)
                    np.testing.assert_allclose(found.exact[at], max(x, 0), rtol=1e-12, atol=1e-14)
        right = round_to(found.exact.astype(np.float32), "fp16")
        assert ((found.low <= right) & (right <= found.high)).all()
        np.testing.assert_allclose(found.own, right, rtol=2.0**-10, atol=1e-5)
        assert (found.high - found.low).max() < 2.0**-9 * right.max()
        assert (found.low == found.high).mean() > 0.9
        np.testing.assert_array_equal(found.own, round_to(found.own, "fp16"))
        _check_gated(module)
        coarse = SimpleNamespace(products_per_step=16, alignment_bits=6)
        found = module.compute(*gemm_problem(accumulation=coarse))
        positive = found.exact > 0
        assert (found.low < found.exact)[positive].all()
        assert (found.exact < found.high)[positive].all()


def _check_gated(module: ModuleType) -> None:
    """Columns in turn are gate's and up's; a matrix C is added to what they give."""
    expression = parse_activation("silu(gate) * up")
    problem, inputs = gemm_problem(activation=expression, gate="interleaved", c_is_added_last=True)
    inputs = replace(inputs, b=inputs.b[..., :6], c=inputs.c[..., :3])
    found = module.compute(problem, inputs)
    x = -0.75 * (inputs.a.astype("f8") @ inputs.b.astype("f8"))
    gate, up = x[..., ::2], x[..., 1::2]
    exact = gate / (1 + np.exp(-gate)) * up + 0.5 * inputs.c
    np.testing.assert_allclose(found.exact, exact, rtol=1e-12, atol=1e-14)
    right = round_to(exact.astype(np.float32), "fp16")
    assert ((found.low <= right) & (right <= found.high)).all()
    np.testing.assert_allclose(found.own, right, rtol=2.0**-10, atol=1e-5)
    assert (found.high - found.low).max() < 2.0**-9 * np.abs(right).max()


def check_gemm_tolerance(module: ModuleType) -> None:
    """Sums by the rules of the hardware are inside, whole numbers exact, bounds as documented."""
    rng = np.random.default_rng(1)
    for bits, width in ((25, 16), (13, 32)):
        how = module.Accumulation(width, bits)
        a, b = (rng.standard_normal(s).astype("f4") for s in ((8, 96), (96, 8)))
        exact, error = module.sum_products(how, a, b)
        np.testing.assert_allclose(exact, a.astype("f8") @ b.astype("f8"), rtol=1e-12, atol=1e-12)
        largest = np.abs(a).astype("f8") @ np.abs(b)
        assert (error > largest / 10 * 2.0**-bits).all()
        assert (error < largest * 40 * 2.0**-bits).all()
        whole, none = module.sum_products(how, np.rint(a), np.rint(b))
        np.testing.assert_array_equal(whole, np.rint(a) @ np.rint(b))
        assert not none.any()
        assert module.sum_products(how, a, np.rint(b))[1].all()
        assert module.sum_products(how, np.rint(a * 2.0**14), np.rint(b * 2.0**4))[1].all()
    # Sums that grow, of products of both signs: what is cut off of them adds up.
    long, ends = np.full((1, 16000), 1.5, np.float32), np.tile([[1.5], [-1.0]], (8000, 1))
    total, error = module.sum_products(module.Accumulation(16, 25), long, ends.astype("f4"))
    assert 1000 < error[0, 0] / (total[0, 0] * 2.0**-25) < 5000
    exact = rng.standard_normal((1, 8, 8))
    rounded = round_to(exact.astype(np.float32), "bf16")
    result = SimpleNamespace(
        exact=exact, low=rounded, high=rounded, own=rounded, slack=np.zeros_like(exact)
    )
    right = module.measure(rounded, result, "bf16")
    limits = module.bounds(result, "bf16")
    assert all(getattr(right, name) <= getattr(limits, name) for name in right.names())
    wrong = rounded.copy()
    wrong[0, 3, 4] *= 1 + 2.0**-7
    assert module.measure(wrong, result, "bf16").element > 1
    scaled = module.measure(rounded * np.float32(1.01), result, "bf16")
    assert scaled.row > 1
    assert scaled.frobenius > limits.frobenius
    np.testing.assert_allclose(limits.frobenius, 1.25 * right.frobenius + 2.0**-8, rtol=0.5)
    wrong[0, 3, 4] = np.nan
    assert module.measure(wrong, result, "bf16").element == math.inf


PLAIN = {
    "config": SimpleNamespace(groups=None),
    "groups": None,
    "gathers_rows": False,
    "sums_by_group": False,
    "scatters_rows": False,
    "gated": False,
    "output_scales": None,
    "columns_of_b": lambda columns: columns,
}
"""The properties of a product without groups, gathered rows, a gate and scales of its output."""


def check_gemm_inputs(module: ModuleType) -> None:
    """Numbers follow seed and type; factors and shared tensors are those of the case."""
    plan = SimpleNamespace(
        dtype="bf16",
        b_dtype="bf16",
        out_dtype="fp16",
        c_dtype="fp16",
        activation=None,
        c=residual_of("matrix"),
        c_extents=residual_of("matrix").extents,
        scales=(),
        **PLAIN,
    )
    case = GemmCase("c", 30, 40, 50, batch=3, alpha=0.7, beta=0.3, shared=("b",))
    one, other = (module.make_inputs(case, plan, np.random.default_rng(i)) for i in (1, 2))
    for name, dtype in (("a", "bf16"), ("b", "bf16"), ("c", "fp16")):
        array = getattr(one, name)
        np.testing.assert_array_equal(array, round_to(array.copy(), dtype))
        assert (array != getattr(other, name)).mean() > 0.9
        assert 0.9 < array.std() < 1.1
    assert (one.a.shape, one.b.shape, one.c.shape) == ((3, 30, 50), (1, 50, 40), (3, 30, 40))
    assert (one.alpha, one.beta) == (float(np.float32(0.7)), float(np.float32(0.3)))


def check_gemm_scales(module: ModuleType) -> None:
    """Sums with scales are the definition; scales follow their form, and count in whole numbers."""
    rng = np.random.default_rng(1)
    how = SimpleNamespace(products_per_step=32, alignment_bits=13)
    of_a = OperandScales("a", "1x128", "fp32", 1, 128)
    of_b = OperandScales("b", "128x128", "ue8m0", 128, 128)
    plan = SimpleNamespace(
        out_dtype="bf16",
        activation=None,
        scales=(of_a, of_b),
        c=residual_of("none"),
        c_extents=residual_of("none").extents,
        **PLAIN,
    )
    case = GemmCase("c", 5, 200, 300, batch=2, shared=("b",))
    scales_a, scales_b = module.draw_scales(case, plan, rng)
    assert (scales_a.shape, scales_b.shape) == ((2, 5, 3), (1, 3, 2))
    assert (np.frexp(scales_b)[0] == 0.5).all()
    assert (np.frexp(scales_a)[0] != 0.5).mean() > 0.9
    a, b = (rng.standard_normal(s).astype("f4") for s in ((5, 300), (300, 200)))
    each = module.of_each_line(of_b, scales_b[0], 200, np)
    total, error = module.sum_scaled(how, a, b, (scales_a[1], each), 128)
    for i, j in ((0, 0), (4, 127), (2, 128), (3, 199)):
        terms = [
            float(a[i, k]) * float(b[k, j]) * float(scales_a[1, i, k // 128])
            * float(scales_b[0, k // 128, j // 128])
            for k in range(300)
        ]  # fmt: skip
        np.testing.assert_allclose(total[i, j], sum(terms), rtol=1e-12, atol=1e-12)
        largest = sum(map(abs, terms))
        assert largest * 2.0**-24 < error[i, j] < largest * 2.0**-8
    whole = np.rint(a), np.rint(b)
    counted = tuple(
        values[0] for values in module.draw_scales(replace(case, data="counting"), plan, rng)
    )
    counted = counted[0], module.of_each_line(of_b, counted[1], 200, np)
    assert not module.sum_scaled(how, *whole, counted, 128)[1].any()
    assert module.sum_scaled(how, *whole, (scales_a[1], counted[1]), 128)[1].any()
    assert module.sum_scaled(how, whole[0] * 2.0**20, whole[1], counted, 128)[1].any()
    np.testing.assert_array_equal(
        module.scaled(a, scales_a[1], -1, 128, np), a * scales_a[1].repeat(128, axis=1)[:, :300]
    )
    np.testing.assert_array_equal(module.scaled(b, each, -2, 128, np)[299], b[299] * each[2])
    apart = module.draw_scales(replace(case, data="blocks_apart", k=4000), plan, rng)[0]
    assert {float(value) for value in np.unique(apart)} == {2.0**-30, 2.0**30}
    for row in (
        OperandScales("a", "mxfp8", "ue8m0", 1, 32, in_atoms=True),
        OperandScales("b", "mxfp8", "ue8m0", 1, 32, in_atoms=True),
    ):
        powers = np.exp2(rng.integers(-9, 9, (2, 300, 7))).astype("f4")
        atoms = module.scale_bits(
            row, powers if row.operand == "a" else powers.swapaxes(1, 2), None
        )
        np.testing.assert_array_equal(np.exp2(restore(atoms, 300, 7) - 127.0), powers)
    np.testing.assert_array_equal(module.scale_bits(of_a, scales_a, None).view("f4"), scales_a)
    missing = module.draw_scales(replace(case, data="nan_scales", k=40000), plan, rng)[0]
    assert 0 < np.isnan(missing).mean() < 0.1


def check_judge(module: ModuleType) -> None:
    """Bytes of inputs, of guards and of outputs are compared, and two runs with each other."""
    image = np.arange(64, dtype=np.uint8)

    def bits(array: Any) -> Any:
        return array[8:24].view(np.uint16)

    poisoned = image.copy()
    bits(poisoned)[:] = 0x7FA5
    view = SimpleNamespace(buffer="out", offset=8, dtype="bf16", bits=bits)
    of_input = SimpleNamespace(buffer="key", offset=8, dtype="bf16", bits=bits)
    outside = np.ones(64, np.bool_)
    outside[8:24] = False
    memory = SimpleNamespace(
        buffers={"out": poisoned, "key": image}, outputs={"out": view},
        views={"out": view, "key": of_input}, outside=lambda name: outside,
        place_of=lambda name, index: f"{name}{index}",
    )  # fmt: skip
    reference = SimpleNamespace(compare=lambda memory, after, xp: (None, ()))

    def found(buffer: str = "", at: int = 0, *, both: bool = True, value: int = 77) -> set[str]:
        after = {"out": image.copy(), "key": image.copy()}
        again = {name: array.copy() for name, array in after.items()}
        for run in (after, again) if both else (after,):
            if buffer:
                run[buffer][at] = value
        return {one.check for one in module.judge(memory, after, again, reference)[0]}

    written = bits(image)[0]
    assert written != 0x7FA5
    assert found() == set()
    assert found("key", 10) == {"inputs"}
    assert found("key", 60) == {"inputs"}
    for at in (7, 24, 0, 63):
        assert found("out", at) == {"guard"}
    assert found("out", 12, both=False) == {"repeat"}
    bits(image)[3] = 0x7FA5
    assert found() == {"unwritten"}
