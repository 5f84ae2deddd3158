from __future__ import annotations

import pytest

from fa4gen.tune.model.agreement import Figure, compare


def test_order_and_choice() -> None:
    problem = [Figure(10, 10), Figure(9, 12), Figure(20, 10.4), Figure(30, 40)]
    found = compare([problem, [Figure(1, 5)]])
    # 10 and 10.4 are equal; (10, 12) and (10.4, 12) are the wrong way round
    assert (found.pairs, found.pairs_right) == (5, 3)
    assert found.choices == (pytest.approx(10 / 12),)
    assert found.figures == 4
    assert "order right in 60.0% of 5 pairs" in str(found)


def test_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="two kernels"):
        compare([[Figure(1, 1)]])
