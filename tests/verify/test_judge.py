"""A failure's message: the element, what was expected, what was found."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.attention import make_reference
from fa4gen.verify.cases import Case
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.judge import judge
from fa4gen.verify.memory import place

CASE = Case("c", 2, 2, 1, 40, 50, "bhsd")


class Judged:
    """A correct result of CASE that a test can change before it is checked."""

    def __init__(self, make_plan, make_kernel, case: Case = CASE) -> None:
        plan = make_plan(mask="causal")
        rng = make_rng(1, case.name)
        inputs = make_inputs(case, plan.depth, plan.dtype, rng)
        self.memory = place(case, inputs, plan.dtype, lse=True)
        self.reference = make_reference(plan, inputs, rng, np)
        self.after = make_kernel(plan).run(self.memory)
        self.again = {name: image.copy() for name, image in self.after.items()}

    def bits(self, name: str, *, both: bool = True):
        """The elements of ``name`` after the first run; written ones go to the second run, too."""
        view = self.memory.views[name]
        if both:
            self.again[view.buffer] = self.after[view.buffer]
        return view.bits(self.after[view.buffer])

    def failures(self) -> dict[str, str]:
        found, _ = judge(self.memory, self.after, self.again, self.reference)
        return {failure.check: failure.message for failure in found}


@pytest.fixture
def judged(make_plan, numpy_backend) -> Judged:
    return Judged(make_plan, lambda plan: numpy_backend().load(plan, None))


def test_a_right_result(judged) -> None:
    assert judged.failures() == {}


def test_a_wrong_element_is_named_by_its_logical_place(judged) -> None:
    judged.bits("out")[1, 0, 17, 5] = 0x4700  # 32768; the axes are batch, head, row, column
    message = judged.failures()["numbers"]
    assert "out[batch 1, row 17, head 0, column 5]: expected " in message
    assert "got 32768" in message
    assert "relative Frobenius error" in message
    assert "at most" in message


def test_a_wrong_row_that_the_norm_hides_is_named(judged) -> None:
    out = judged.bits("out")
    out[0, 1, 39] ^= 4  # 4 units in the last place of each element: 2 % of one row
    message = judged.failures()["numbers"]
    assert message.startswith("relative error of the worst row")
    assert "out[batch 0, row 39, head 1, column" in message


def test_a_wrong_lse(judged) -> None:
    judged.bits("lse").view(np.float32)[0, 1, 3] += 0.01
    message = judged.failures()["numbers"]
    assert message.startswith("largest error of the log-sum-exp 0.01")
    assert "lse[batch 0, head 1, row 3]: expected " in message


def test_unwritten_elements(judged) -> None:
    judged.bits("out")[0, 1, 4, 60:] = judged.memory.views["out"].bits(
        judged.memory.buffers["out"]
    )[0, 1, 4, 60:]
    message = judged.failures()["unwritten"]
    assert message == (
        f"4 of {2 * 2 * 40 * 64} elements of out were never written, "
        "the first at out[batch 0, row 4, head 1, column 60]"
    )


def test_a_computed_nan_is_wrong_but_not_unwritten(judged) -> None:
    judged.bits("out")[0, 0, 0, 0] = 0x7FC0
    failures = judged.failures()
    assert set(failures) == {"numbers"}
    assert "got nan" in failures["numbers"]


def test_runs_that_differ(judged) -> None:
    judged.bits("out", both=False)[1, 1, 2, 3] ^= 1
    assert judged.failures()["repeat"] == (
        "two runs on the same inputs differ in 1 elements of out, "
        "the first at out[batch 1, row 2, head 1, column 3]"
    )


def test_bytes_beside_an_output(judged) -> None:
    view = judged.memory.views["lse"]
    judged.bits("lse")
    judged.after["lse"][view.offset - 3] = 0
    judged.after["lse"][view.offset + 2 * 2 * 40 * 4] = 0
    assert judged.failures()["guard"] == (
        "2 bytes that are not lse's were written, the first 3 bytes before its first element"
    )


def test_an_input_that_changed(judged) -> None:
    judged.bits("value")[1, 0, 7, 9] ^= 1
    assert judged.failures()["inputs"] == (
        "the input buffer of value was written to: value[1, 0, 7, 9]"
    )


def test_memory_beside_an_input_that_changed(judged) -> None:
    judged.after["key"][5] ^= 1
    assert judged.failures()["inputs"].endswith("written to: memory beside its elements")


def test_everything_wrong_is_said_at_once(judged) -> None:
    judged.bits("out", both=False)[...] = 0
    judged.after["query"][0] ^= 1
    judged.after["out"][0] = 0
    assert set(judged.failures()) == {"numbers", "inputs", "guard", "repeat"}
