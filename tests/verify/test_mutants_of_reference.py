"""The reference, its bounds and its inputs may be wrong, too: single mistakes in them are refused.

Each mutant is one edit of a module's text, which the module's check by definition must fail on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import fa4gen.verify
from tests.verify import definitions

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.numbers

FOLDER = Path(fa4gen.verify.__file__).parent
CHECKS: dict[str, tuple[Callable[[ModuleType], None], ...]] = {
    "reference.py": (definitions.check_exact, definitions.check_rounded),
    "weight_ends.py": (definitions.check_ends,),
    "tolerance.py": (definitions.check_tolerance,),
    "rounding.py": (definitions.check_rounding,),
    "inputs.py": (definitions.check_inputs,),
    "input_kinds.py": (definitions.check_counting,),
    "judge.py": (definitions.check_judge,),
    "gemm/reference.py": (definitions.check_gemm,),
    "gemm/tolerance.py": (definitions.check_gemm_tolerance,),
    "gemm/inputs.py": (definitions.check_gemm_inputs,),
    "gemm/scales.py": (definitions.check_gemm_scales,),
}
MUTANTS: dict[str, tuple[tuple[str, str], ...]] = {
    "reference.py": (
        # the last key, the first, and ends of masks
        ("low, high = int(first[rows.start]), int(end[rows.stop - 1])",
         "low, high = int(first[rows.start]), int(end[rows.stop - 1]) - 1"),
        ("low, high = int(first[rows.start])", "low, high = int(first[rows.start]) + 1"),
        ("(columns < xp", "(columns <= xp"),
        ("columns >= xp", "columns > xp"),
        ("np.int64) + (key_rows - query_rows)", "np.int64)"),
        ("[:, None] + (key_rows - query_rows)", "[:, None]"),
        ("int(seeing[-1]) + 1", "int(seeing[-1])"),
        ("first_batch + batch, tensors", "batch, tensors"),
        ("hidden = outside | xp.logical_not(problem.mask.sees_at(places, xp))", "hidden = outside"),
        ("position, columns, row, head, key_head", "position, columns, row, key_head, key_head"),
        ("position, columns, row, head, key_head", "position, columns, position, head, key_head"),
        ("head * key_heads // query_heads", "head % key_heads"),
        ("head * key_heads // query_heads", "min(1 + head, key_heads - 1)"),
        ("xp.ascontiguousarray(value[batch, low:high, key_head])",
         "xp.ascontiguousarray(value[0, low:high, key_head])"),
        # scales
        ("(problem.softmax_scale * block.score_descale)", "(1.001 * block.score_descale)"),
        ("(problem.softmax_scale * block.score_descale)", "problem.softmax_scale"),
        ("float(descales[name][batch, key_head])", "float(descales[name][batch, 0])"),
        ("float(descales[name][batch, key_head])", "float(descales[name][0, key_head])"),
        ("_nonzero(total, xp) * block.value_descale", "_nonzero(total, xp)"),
        ("sums = times(weights, block.value_scales) @ v", "sums = weights @ v"),
        ("times(q @ k.T, block.key_scales)", "(q @ k.T)"),
        ("array[batch, low:high, key_head]", "array[batch, low:high, 0]"),
        ('own.get("value"),', 'own.get("key"),'),
        # the softmax's sum
        ("(largest + xp.log(total))[:, 0]", "(largest + xp.log(weights.sum(axis=1, keepdims=True)))"
         "[:, 0]"),
        ("keepdims=True) + xp.exp(sink - largest)", "keepdims=True)"),
        ("float(sinks[block.head])", "float(sinks[0])"),
        ("lse[:] = xp.asarray(sinks, dtype=dtype)[None, :, None]", "pass"),
        ("-xp.inf, dtype=dtype)", "0, dtype=dtype)"),
        # with a kernel's roundings
        ("(block_out, precision.out_dtype, xp)", "(block_out, precision.dtype, xp)"),
        ("round_to(block_out, precision.out_dtype, xp)", "block_out"),
        ("round_to(weights * factors, precision.dtype, xp)", "weights * factors"),
        ("round_to(weights * factors, precision.dtype, xp)",
         "round_to(weights * factors, precision.out_dtype, xp)"),
        ("rng.uniform(0, precision.rescale_threshold", "rng.uniform(0, 0"),
        ("stale -= shift", "stale += shift"),
        ("(total_log2 * np.float32(math.log(2)))", "total_log2"),
        ("np.float32(scale * log2_e)", "np.float32(scale)"),
        ("xp.logaddexp2(total_log2, sink)", "total_log2"),
        ("1 + xp.exp2(sink - total_log2)", "1"),
        ("block_out *= np.float32(block.value_descale)", "pass"),
        ("(weights * xp.exp2(-powers)).sum", "weights.sum"),
    ),
    "weight_ends.py": (
        ("mantissa - 0.5 <= own / 2", "mantissa - 0.5 <= own * 1e6"),
        (".all(axis=1, keepdims=True)", ".any(axis=1, keepdims=True)"),
        ("xp.where(exact, 0.0, own * relative + ", "xp.where(exact, 0.0, "),
        ("roundoff * relative, least / 2", "roundoff * relative / 2, least / 2"),
        ("roundoff * relative, least / 2", "10 * roundoff * relative, least / 2"),
        ("roundoff * relative, least / 2", "roundoff * relative, 0"),
        ("xp.where(relative < least, relative, room)", "room"),
        ("precision.maximum_above - precision.probability_shift", "precision.maximum_above"),
        ("xp.expm1(xp.asarray(errors))", "xp.asarray(0.0)"),
        ("DIVISION_ERROR = 2.0**-20", "DIVISION_ERROR = 2.0**-10"),
        ("1 + (weights * own).sum(axis=1, keepdims=True) / total + rest", "1 + rest"),
        ("moved = room @ block.values if room.any() else 0.0", "moved = 0.0"),
        ("(block.sums + moved) / total", "block.sums / total"),
    ),
    "tolerance.py": (
        ("FROBENIUS_FACTOR = 1.25", "FROBENIUS_FACTOR = 12.5"),
        ("ROW_FACTOR = 1.5", "ROW_FACTOR = 15"),
        ("ELEMENT_FACTOR = 2.5", "ELEMENT_FACTOR = 25"),
        ("LSE_FACTOR = 4.0", "LSE_FACTOR = 40.0"),
        ("floor / math.sqrt(rows)", "floor"),
        ("max(probability, output) + precision.exp2_error", "1.0"),
        ("+ 2 + bool(descales)", "+ 200"),
        ("return math.sqrt(float(ratios.max()))", "return math.sqrt(float(ratios.mean()))"),
        ("float(distance.max()) if distance.size", "float(distance.mean()) if distance.size"),
        ("distance = xp.where(xp.isnan(distance), xp.inf, distance)\n    lse",
         "distance = xp.where(xp.isnan(distance), 0.0, distance)\n    lse"),
        ("float(xp.where(xp.isnan(distance), xp.inf, distance).max())", "float(distance.min())"),
        ("float(element_shares(got, exact, xp).max())", "0.0"),
        ("share=1.0,", "share=2.0,"),
        ("if exact.low is None or not", "if exact.low is not None or not"),
    ),
    "rounding.py": (
        ('"bf16": 2.0**-8, "fp16": 2.0**-11', '"bf16": 2.0**-7, "fp16": 2.0**-11'),
        ('"fp8_e4m3": 2.0**-4,', '"fp8_e4m3": 2.0**-3,'),
        ('"bf16": 0x7FA5', '"bf16": 0x3F80'),  # the number 1
        ('"fp16": 0x7DA5', '"fp16": 0x7E00'),  # a NaN that arithmetic makes
        ("_round_by_adding(values, 3, 2.0**-6", "_round_by_adding(values, 2, 2.0**-6"),
        ("_round_by_adding(values, 3, 2.0**-6", "_round_by_adding(values, 3, 2.0**-9"),
        ("_round_by_adding(values, 10, 2.0**-14", "_round_by_adding(values, 11, 2.0**-14"),
        ("np.float32(1.5 * 2 **", "np.float32(1.0 * 2 **"),
        ("too_large = xp.abs(rounded) > LARGEST", "too_large = xp.abs(rounded) > 1e9 + LARGEST"),
        ("return xp.clip(rounded, np.float32(-LARGEST[dtype])",
         "return xp.clip(rounded, np.float32(0)"),
        ("return values.astype(numpy_dtype(dtype)).astype(np.float32)", "return values"),
    ),
    "inputs.py": (
        ("np.random.default_rng([seed, ", "np.random.default_rng([0, "),
        ("zlib.crc32(case_name.encode())", "0"),
        ("rng.standard_normal(shape, dtype=np.float32)", "np.zeros(shape, np.float32)"),
        ("rng.standard_normal(shape, dtype=np.float32)", "np.ones(shape, np.float32)"),
        ("rng.standard_normal(shape, dtype=np.float32)",
         "np.random.default_rng(7).standard_normal(shape, dtype=np.float32)"),
        ("round_to(draft.query, dtype)", "draft.query"),
        ("key = round_to(draft.key, draft.kv_dtype)", "key = draft.key"),
        ("rng.uniform(*DESCALE_RANGE, shape)", "np.ones(shape)"),
        ("(case.batch, case.key_heads), rng", "(1, case.key_heads), rng"),
        ("default if case.softmax_scale is None else case.softmax_scale", "default"),
        ("scale_is_default=draft.scale == default", "scale_is_default=True"),
        ("draw_sinks(draft) if has_sinks else None", "np.zeros(case.query_heads)"),
        ("np.cumsum(begins, axis=-1).astype(np.int32)", "np.zeros(shape, np.int32)"),
    ),
    "input_kinds.py": (
        ("draft.query[:] = rng.integers(0, 2, draft.query.shape)", "draft.query[:] = 1"),
        ("draft.scale = LN2", "pass"),
        ("math.log(2)", "1 / math.log(2)"),
        ("VALUE_SHARE = 1 / 8", "VALUE_SHARE = 0"),
        ("MOST = 15", "MOST = 1"),
        ("draft.value.shape, np.float32) < VALUE", "draft.value.shape[:1] + (1, 1, 32)) < VALUE"),
        ("rng.integers(-LOWEST_LOGIT, 0, column.shape)", "rng.uniform(-3, 0, column.shape)"),
        ("(*draft.key.shape[:3], 1))", "(*draft.key.shape[:2], 1, 1)).repeat(2, axis=2)"),
        ("rng.integers(first, draft.depth - 1", "rng.integers(first, draft.depth // 2"),
        ("RAMP_STEPS = 8", "RAMP_STEPS = 1"),
        ("np.rint(draft.key_positions() * RAMP_STEPS)", "draft.key_positions() * RAMP_STEPS"),
        ("RAISED_QUERY, RAISED_KEY = 1.625, 7.0", "RAISED_QUERY, RAISED_KEY = 1.0, 7.0"),
        ("draft.key[:, raised, :, -1] = RAISED_KEY", "draft.key[..., -1] = RAISED_KEY"),
        ("draft.value[:, raised, :, draft.value.shape[3] // 2 :]", "draft.value[:, raised, :, :0]"),
    ),
    "judge.py": (
        ("*_changed_inputs(memory, after),", ""),
        ("*_broken_guards(memory, after),", ""),
        ("*_differing_runs(memory, after, again),", ""),
        ("*_unwritten(memory, after),", ""),
        ("& memory.outside(name)", "& ~memory.outside(name)"),
        ("poisoned = view.bits(", "poisoned = 1 + view.bits("),
        ("view.bits(again[view.buffer])", "view.bits(after[view.buffer])"),
    ),
    "gemm/reference.py": (
        ("scaled = inputs.alpha * total", "scaled = total"),
        ("added = inputs.beta * c", "added = c"),
        ("x = scaled + added", "x = scaled - added"),
        ("inputs.a[part.batch % inputs.a.shape[0], rows, of_part]", "inputs.a[0, rows, of_part]"),
        ("c = inputs.c[matrix % len(inputs.c)]", "c = inputs.c[0]"),
        ("ends = apply(x, error, xp)", "ends = x, x - error, x + error"),
        ("operands.product(problem, xp) * np.float32(inputs.alpha)",
         "operands.product(problem, xp)"),
        ("else c * np.float32(inputs.beta)", "else c"),
        ("return values if dtype == \"fp32\" else round_to(values, dtype, xp)", "return values"),
        ("high[at] = _round(highest.astype(xp.float32)", "high[at] = _round((2 * highest).astype("
         "xp.float32)"),
        ("low[at] = _round(lowest.astype", "low[at] = _round(highest.astype"),
        ("for start in range(0, part.rows, most)", "for start in range(most, part.rows, most)"),
        ("problem.residual.rows_of(c, rows)", "problem.residual.rows_of(c, slice(0, len(c)))"),
        # gate and up
        ("before, after = (None, c) if problem.c_is_added_last",
         "before, after = (c, None) if True"),
        ("found = exact + added", "found = exact - added"),
        ("lowest + added - error, highest", "lowest, highest"),
        ("GatedError(problem.activation, problem.gate)",
         "GatedError(problem.activation, 'halves')"),
        ("halves(problem.gate, x)", "halves('halves', x)"),
    ),
    "gemm/tolerance.py": (
        ("FROBENIUS_FACTOR = 1.25", "FROBENIUS_FACTOR = 12.5"),
        ("ROW_FACTOR = 1.5", "ROW_FACTOR = 15"),
        ("total += products", "total = products"),
        ("DEVIATIONS * xp.sqrt(squares)", "400 * xp.sqrt(squares)"),
        ("return total, cut", "return total, 0 * cut"),
        ("min(how.alignment_bits, MANTISSA_BITS) - 1", "99"),
        ("2.0**-how.alignment_bits", "2.0**-20"),
        ("element=float(element_shares(got, result, xp).max())", "element=0.0"),
        ("return ROW_FACTOR * own + slack + floor", "return ROW_FACTOR * own + slack + floor + 1"),
        ("if not all(bool(", "if not any(bool("),
    ),
    "gemm/inputs.py": (
        ("rng.standard_normal(shapes[name], dtype=np.float32)", "np.zeros(shapes[name], 'f4')"),
        ("_rounded(draft.b, plan.b_dtype)", "draft.b"),
        ("float(np.float32(draft.alpha))", "1.0"),
        ("float(np.float32(case.beta))", "float(np.float32(case.alpha))"),
        ("_rounded(draft.c, plan.c_dtype)", "draft.c"),
    ),
    "gemm/scales.py": (
        ("of_a[:, index, None] * of_b[index]", "of_a[:, index, None] * of_b[0]"),
        ("of_a[:, index, None] * of_b[index]", "of_a[:, 0, None] * of_b[index]"),
        ("total += added", "total += products"),
        ("part = slice(start, start + block)", "part = slice(start, start + block - 1)"),
        ("xp.abs(factor) * wrong + ", ""),
        ("if _adds_exactly(", "if not _adds_exactly("),
        ("2.0 ** (MANTISSA_BITS - 1)", "2.0**60"),
        ("rng.integers(1, largest, shape, endpoint=True)", "rng.uniform(1, largest, shape)"),
        ("np.round(powers) if scales.dtype == \"ue8m0\" else powers", "powers"),
        ("xp.repeat(values, scales.rows, axis=axis)", "xp.tile(values, scales.rows)"),
        ("drawn[rng.random(shape) < NAN_SHARE] = np.nan", "pass"),
        ("each[..., :extent] if axis == -1", "each[..., -extent:] if axis == -1"),
        ("to_bits(values, scales.dtype)", "to_bits(values, \"fp8_e4m3\")"),
    ),
}  # fmt: skip


def load(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> ModuleType:
    """Return a module of this text, which may differ from that of the file."""
    module = ModuleType(f"fa4gen.verify.mutant_of_{name.removesuffix('.py').replace('/', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look there
    exec(compile(text, name, "exec"), vars(module))
    return module


def refused(name: str, module: ModuleType) -> bool:
    """Whether a check of the module fails."""
    try:
        for check in CHECKS[name]:
            check(module)
    except Exception:  # a crash is as good as a number that is wrong
        return True
    return False


@pytest.mark.parametrize("name", CHECKS)
def test_what_is_right_passes(monkeypatch, name) -> None:
    module = load(monkeypatch, name, (FOLDER / name).read_text())
    for check in CHECKS[name]:
        check(module)


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_single_mistakes_are_refused(monkeypatch, name) -> None:
    text, passing = (FOLDER / name).read_text(), []
    for old, new in MUTANTS[name]:
        assert old in text, f"{name} has changed: give the mutant of {old!r} its new text"
        with monkeypatch.context() as patch:
            if not refused(name, load(patch, name, text.replace(old, new))):
                passing.append(f"{new!r} instead of {old!r}")
    assert not passing
