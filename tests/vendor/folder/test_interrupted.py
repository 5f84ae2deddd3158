"""Commands that are killed while they write, and those that come after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen
from fa4gen.cli.main import main
from fa4gen.resources import data_root
from tests.vendor.folder.conftest import CONFIG, Vendored, files_in

pytestmark = pytest.mark.compile

KILLED = """
import os, signal, sys
from pathlib import Path
from fa4gen.cli.main import main
left = int(sys.argv[1])
replace = Path.replace
def counted(self, target):
    global left
    if ".fa4gen" in (self.parts + Path(target).parts) and "attn" in str(target) + str(self):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = counted
sys.exit(main(sys.argv[2:]))
"""


def killed(renames: int, *arguments: str) -> None:
    """Run ``fa4gen vendor``, killed after so many renames of the folder's files."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(renames), "vendor", *arguments],
        env=os.environ | {"PYTHONPATH": str(Path(fa4gen.__file__).parent.parent)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.fixture
def new_templates(vendored: Vendored) -> list[str]:
    for name in ("vendor/src/status.c.j2", "vendor/build/README.md.j2"):
        path = Path("mine") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((data_root("templates") / name).read_text() + "\n/* new */\n")
    return ["--templates", "mine"]


def test_an_update_that_was_killed_is_finished_by_the_next(
    vendored: Vendored,
    new_templates: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    killed(3, "--update", "attn", *new_templates)
    half = vendored.files()
    capsys.readouterr()
    assert main(["vendor", "--check", "attn", *new_templates]) == 3
    assert "fa4gen vendor --update attn finishes it" in capsys.readouterr().err
    assert main(["vendor", "--update", "attn", *new_templates, "--dry-run"]) == 3
    assert vendored.files() == half  # neither writes anything
    assert main(["vendor", "--update", "attn", *new_templates]) == 0
    assert "an earlier run was interrupted; made good now." in capsys.readouterr().err
    assert main(["vendor", "--check", "attn", *new_templates]) == 0
    assert vendored.files()["README.md"].endswith(b"/* new */\n")
    assert not (vendored.folder / ".fa4gen/pending").exists()


def test_an_update_killed_before_its_journal_changed_nothing(
    vendored: Vendored, new_templates: list[str]
) -> None:
    before = vendored.files()
    killed(0, "--update", "attn", *new_templates)
    files = vendored.files()
    assert {path: files[path] for path in before} == before
    assert main(["vendor", "--update", "attn"]) == 0
    assert vendored.files() == before


def test_a_first_writing_that_was_killed(vendored: Vendored) -> None:
    written = vendored.files()
    Path("attn").rename("other")
    arguments = [CONFIG, "--into", "attn", "--prefix", "acme"]
    killed(5, *arguments)
    assert main(["vendor", *arguments]) == 0
    assert files_in(Path("attn")) == written


def test_a_folder_that_cannot_be_written_says_so(
    vendored: Vendored, new_templates: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = vendored.files()
    write = Path.open

    def full(self: Path, mode: str = "r", *arguments: object, **options: object) -> object:
        if "w" in mode and self.name == "2":  # the third file has no room
            return write(Path("/dev/full"), mode, *arguments, **options)
        return write(self, mode, *arguments, **options)

    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        capsys.readouterr()
        assert main(["vendor", "--update", "attn", *new_templates, "--format", "json"]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert "no space left on device; every file is as it was" in problem["message"]
    assert vendored.files() == before
    assert main(["vendor", "--update", "attn", *new_templates]) == 0
