from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small templates in mine/."""
    for name in ("attention_sm90/kernel.cu.j2", "device/rings/barriers.h.j2"):
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True)
        path.write_text("// {{ plan.name }}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path
