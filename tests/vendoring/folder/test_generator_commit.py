from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import fa4gen
from fa4gen.vendoring.generator_commit import generator_commit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a package of one file, which stands for fa4gen."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    (tmp_path / "fa4gen").mkdir()
    (tmp_path / "fa4gen/__init__.py").write_text("")
    (tmp_path / "templates").mkdir()
    monkeypatch.setattr(fa4gen, "__file__", str(tmp_path / "fa4gen/__init__.py"))
    return tmp_path


def git(checkout: Path, *arguments: str) -> str:
    options = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(checkout), *options, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_the_commit_of_a_checkout(checkout: Path) -> None:
    git(checkout, "init", "-q")
    assert generator_commit() is None  # no commit yet
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "one")
    head = git(checkout, "rev-parse", "HEAD")
    assert generator_commit() == head
    (checkout / "untracked.txt").write_text("x")
    assert generator_commit() == head
    (checkout / "fa4gen/__init__.py").write_text("changed = 1\n")
    assert generator_commit() == f"{head}+"


def test_an_installed_package_has_none(checkout: Path) -> None:
    assert generator_commit() is None


def test_a_repository_around_an_environment_is_not_fa4gens(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "one")
    packages = checkout / "venv/lib/site-packages/fa4gen"
    packages.mkdir(parents=True)
    monkeypatch.setattr(fa4gen, "__file__", str(packages / "__init__.py"))
    assert generator_commit() is None
