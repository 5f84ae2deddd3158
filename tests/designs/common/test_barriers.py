from __future__ import annotations

from fa4gen.designs.common.model import Barrier
from fa4gen.designs.common.shared_memory import lay_out_barriers


def row(name: str, slots: int) -> Barrier:
    return Barrier(name, slots, 1, "thread", "", "", "", 0, 0, "own", 0)


def test_rows_lie_one_behind_the_other() -> None:
    rows = lay_out_barriers([row("a", 3), row("b_full", 1), row("c", 2)], 4096)
    assert [(r.name, r.offset, r.bytes) for r in rows] == [
        ("a", 4096, 24),
        ("b_full", 4120, 8),
        ("c", 4128, 16),
    ]


def test_the_constant_of_a_row() -> None:
    assert row("kv_full", 1).constant == "kKvFull"
    assert row("query", 1).constant == "kQuery"
