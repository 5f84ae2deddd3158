"""The package as users get it: a wheel with templates and configs, installed without a checkout.

Nothing is downloaded: the wheel is built with the installed hatchling, and the fresh environment
borrows the dependencies of this one.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import fa4gen
from fa4gen.cli.main import COMMANDS
from fa4gen.version import __version__
from tests.wheel import build, install, run

ROOT = Path(__file__).resolve().parent.parent
CONFIG = "d128_causal_bf16"


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def requirements(wheel: Path) -> list[str]:
    text = contents(wheel)[f"fa4gen-{__version__}.dist-info/METADATA"].decode()
    lines = text.partition("\n\n")[0].splitlines()
    return [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-")]


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment that has the wheel."""
    return install(wheel, tmp_path_factory.mktemp("environment") / "venv")


@pytest.mark.package
def test_the_wheel_holds_every_template_and_config(wheel) -> None:
    packed = contents(wheel)
    for folder in ("templates", "configs"):
        wanted = files_in(ROOT / folder)
        data = f"fa4gen/data/{folder}/"
        found = {name.removeprefix(data): text for name, text in packed.items() if data in name}
        assert found == wanted
        assert len(found) > 10
    assert "fa4gen/py.typed" in packed
    assert f"fa4gen-{__version__}.dist-info/licenses/LICENSE" in packed
    assert packed["fa4gen/data/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    stray = {name.split("/")[0] for name in packed} - {"fa4gen", f"fa4gen-{__version__}.dist-info"}
    assert not stray


@pytest.mark.package
def test_a_source_archive_builds_the_same_wheel(wheel, tmp_path) -> None:
    archive = build("sdist", tmp_path / "sdist")
    assert run("tar", "-xzf", archive, cwd=tmp_path).returncode == 0
    source = tmp_path / f"fa4gen-{__version__}"
    assert (source / "run").stat().st_mode & 0o111
    again = build("wheel", tmp_path / "wheel", source)
    assert contents(again) == contents(wheel)


def cuda_packages(wheel: Path) -> set[str]:
    lines = [line for line in requirements(wheel) if "extra ==" not in line]
    names = {re.split(r"[^\w-]", line)[0] for line in lines}
    return {name for name in names if name.startswith(("cupy", "nvidia"))}


@pytest.mark.package
def test_macos_which_has_no_cuda_is_asked_for_nothing_of_it(wheel) -> None:
    lines = [line for line in requirements(wheel) if re.match("cuda|cupy|nvidia", line)]
    lines = [line for line in lines if "extra ==" not in line]
    assert len(lines) == 3
    assert all("sys_platform != 'darwin'" in line.replace('"', "'") for line in lines)


@pytest.mark.package
def test_exactly_one_cupy_is_asked_for(wheel, tmp_path) -> None:
    assert cuda_packages(wheel) == {"cupy-cuda13x", "nvidia-cuda-nvrtc"}
    twelve = build("wheel", tmp_path / "twelve", FA4GEN_CUDA="12")
    assert cuda_packages(twelve) == {"cupy-cuda12x", "nvidia-cuda-nvrtc-cu12"}


@pytest.mark.package
def test_an_unknown_cuda_version_is_refused(wheel, tmp_path) -> None:
    done = run(
        *(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path),
        cwd=ROOT,
        FA4GEN_CUDA="11",
    )
    assert done.returncode != 0
    assert "FA4GEN_CUDA is '11'; it can be 12 or 13" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.package
def test_the_installed_command_lists_and_renders_elsewhere(installed, tmp_path) -> None:
    where = run(installed / "python", "-c", "import fa4gen; print(fa4gen.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(installed.parent)

    listed = run(installed / "fa4gen", "list", "--format", "json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    names = {item["name"] for item in json.loads(listed.stdout)}
    here = run(sys.executable, "-m", "fa4gen", "list", "--format", "json", cwd=ROOT)
    assert names == {item["name"] for item in json.loads(here.stdout)}
    assert "attention/sm_90a/d64_causal_bf16" in names  # a case of a sweep

    rendered = run(installed / "fa4gen", "render", CONFIG, "-o", "out", cwd=tmp_path)
    assert rendered.returncode == 0, rendered.stderr
    here = run(
        *(sys.executable, "-m", "fa4gen", "render", CONFIG, "-o", tmp_path / "here"),
        cwd=ROOT,
    )
    assert here.returncode == 0, here.stderr
    files = files_in(tmp_path / "out")
    assert files == files_in(tmp_path / "here")
    assert {Path(name).name for name in files} == {
        f"{CONFIG}.cu",
        f"{CONFIG}_barriers.h",
        f"{CONFIG}_device.cuh",
        f"{CONFIG}.json",
    }


@pytest.mark.package
def test_the_installed_schema_is_the_committed_one(installed, tmp_path) -> None:
    shown = run(installed / "fa4gen", "schema", cwd=tmp_path)
    assert json.loads(shown.stdout) == json.loads((ROOT / "configs/schema.json").read_text())


def test_the_package_under_test_is_the_installed_one() -> None:
    """Tests that import the checkout would not notice files missing in the installed package."""
    expected = ROOT / "fa4gen" / "__init__.py"
    try:
        distribution = metadata.distribution("fa4gen")
    except metadata.PackageNotFoundError:
        pass  # run from the checkout
    else:
        packed = Path(str(distribution.locate_file("fa4gen/__init__.py")))
        expected = packed if packed.exists() else expected  # an editable install holds no files
    assert Path(fa4gen.__file__).resolve() == expected.resolve()


def test_the_release_script_finds_every_command_in_the_help(tmp_path) -> None:
    script = (ROOT / ".ci" / "release").read_text(encoding="utf-8")
    words = re.search(r"\$\(fa4gen --help \| (sed .*)\); do", script)
    assert words
    shown = run(sys.executable, "-m", "fa4gen", "--help", cwd=ROOT).stdout
    (tmp_path / "help").write_text(shown)
    found = run("sh", "-c", f"{words[1]} <help", cwd=tmp_path).stdout.split()
    assert found == [*COMMANDS]
    assert (ROOT / ".ci" / "release").stat().st_mode & 0o111
