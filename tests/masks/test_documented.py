"""The conditions in docs/reference/masks-and-scores.md: each is accepted and means what is said."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fa4gen.masks import mask_of

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/masks-and-scores.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("### Conditions")[2].partition("\n## ")[0]
TABLE = dict(re.findall(r'^\| ([^|`]+) \| `"([^"]+)"` \|$', SECTION, re.MULTILINE))
MEANT = {
    "causal": lambda q, k: k <= q,
    "sliding window": lambda q, k: (k <= q) & (k > q - 512),
    "prefix, in which all see all, then causal": lambda q, k: (k <= q) | (k < 256),
    "window with the first keys always visible": lambda q, k: (k <= q) & ((k > q - 1024) | (k < 4)),
    "chunks, causal within": lambda q, k: (k <= q) & (k >= q // 512 * 512),
    "chunks, all before as a whole": lambda q, k: k < (q // 512 + 1) * 512,
    "every fourth key": lambda q, k: (k <= q) & ((q & 3) == (k & 3)),
    "a window and every 64th key": lambda q, k: (k <= q) & ((k > q - 256) | ((k & 63) == 0)),
    "two sides, of other widths": lambda q, k: (k >= q - 128) & (k <= q + 32),
    "no key of its own": lambda q, k: k < q,
}


def test_the_table_is_what_is_tested() -> None:
    assert TABLE.keys() == MEANT.keys()


@pytest.mark.parametrize("name", MEANT)
def test_a_condition_of_the_page_means_what_it_says(name) -> None:
    mask = mask_of(TABLE[name])
    query, key = np.arange(-64, 2112)[:, None], np.arange(2048)[None, :]
    first, end = mask.bounds(query, 2048)
    seen = (key >= first) & (key < end) & mask.sees_within(query, key, np)
    assert (seen == MEANT[name](query, key)).all()
