from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from fa4gen.verify.intervals import element_shares


def test_shares_of_intervals() -> None:
    exact = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 1.0])
    low = np.array([0.5, 0.5, 0.5, 0.0, 0.0, 2.0, 1.0])
    high = np.array([2.0, 2.0, 2.0, 0.0, 0.0, 2.0, 1.0])
    got = np.array([1.5, 0.25, 1.0, 0.0, 1e-30, 2.0, np.nan], np.float32)
    result = SimpleNamespace(exact=exact, low=low, high=high)
    np.testing.assert_array_equal(
        element_shares(got, result), [0.5, 1.5, 0.0, 0.0, np.inf, 0.0, np.inf]
    )
