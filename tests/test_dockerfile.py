"""The Dockerfile: what it runs is there, and its image gets what the README's commands need.

The image is not built here. Its steps are those of a fresh clone, which tests of ./run cover.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = re.findall(r"^([A-Z]+) (.*(?:\\\n.*)*)", TEXT, re.MULTILINE)


def steps(name: str) -> list[str]:
    return [" ".join(text.replace("\\\n", " ").split()) for kind, text in STEPS if kind == name]


def test_its_python_is_one_that_the_package_supports() -> None:
    (image,) = steps("FROM")
    version = re.fullmatch(r"python:(3\.\d+)-slim", image)
    assert version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Programming Language :: Python :: {version[1]}" in project["classifiers"]


def test_it_installs_by_the_readme_s_script_where_the_script_looks() -> None:
    assert steps("RUN")[-1] == "./run test --version"  # with what the tests need
    (folder,) = steps("WORKDIR")
    assert steps("COPY") == [f"--chown=fa4gen . {folder}"]
    assert steps("ENV") == [f'PATH="{folder}/.venv/bin:$PATH"']
    assert steps("CMD") == ['["./run", "demo"]']
    assert steps("USER") == ["fa4gen"]  # files of a mounted folder should not belong to root


def test_no_environment_of_the_host_gets_into_the_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".venv", "build", "**/__pycache__"} <= {*ignored}
    needed = {"run", "pyproject.toml", "hatch_build.py", "README.md", "configs", "templates"}
    assert needed.isdisjoint(ignored)
