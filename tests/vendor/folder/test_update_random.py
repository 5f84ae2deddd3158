"""Updates of random folders that were edited at random: whatever happens, nothing is lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.errors import NotCurrentError
from fa4gen.render.manifest import sha256
from fa4gen.vendor.assemble import Assembled
from fa4gen.vendor.lock import Generator, Lock, LockedImage, LockedKernel, read_lock
from fa4gen.vendor.merge import has_conflict
from fa4gen.vendor.originals import ORIGINALS, pack_originals
from fa4gen.vendor.update import plan_update
from fa4gen.vendor.write import apply_plan, plan_write
from tests.vendor.folder.conftest import files_in

PATHS = ("include/a.h", "src/b.c", "src/c.c", "README.md", "cubins/d.c")
KERNEL = LockedKernel(
    name="none",
    symbol="acme_none",
    arch="sm_90a",
    family="gemm",
    source="none.yaml",
    config_text="",
    config={},
    config_sha256="0" * 64,
    compiler="nvrtc",
    compiler_version="1",
    options=(),
    image=LockedImage(sha256="0" * 64, cubin_bytes=1, packed_bytes=1),
    proofs=(),
)
LINES = st.lists(st.sampled_from([b"x\n", b"y\n", b"\n", b"}\n", b"z"]), max_size=8)


@dataclass(frozen=True)
class Story:
    """A folder as it was written, what the user made of it, and what is to be there today."""

    written: dict[str, bytes]
    disk: dict[str, bytes]
    today: dict[str, bytes]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    written, disk, today = {}, {}, {}
    for number, path in enumerate(PATHS):
        text = b"".join(draw(LINES))
        others = st.one_of(st.just(text), LINES.map(b"".join))
        if draw(st.integers(0, 4)):
            written[path] = text
            state = draw(st.sampled_from(["left", "edited", "deleted"]))
        else:
            state = draw(st.sampled_from(["absent", "added"]))
        if state == "left":
            disk[path] = text
        elif state in ("edited", "added"):
            lines = draw(others).splitlines(keepends=True)
            place = draw(st.integers(0, len(lines)))
            disk[path] = b"".join([*lines[:place], b"mine %d\n" % number, *lines[place:]])
        if draw(st.integers(0, 4)):
            today[path] = draw(others)
    disk["notes.txt"] = b"mine alone\n"
    return Story(written, disk, today)


def assembled(files: dict[str, bytes]) -> Assembled:
    files = files | {ORIGINALS: pack_originals(files)}
    lock = Lock(
        generator=Generator(version="1", commit=None),
        license="Apache-2.0",
        prefix="acme",
        adapters=(),
        templates_sha256="0" * 64,
        kernels=(KERNEL,),
        files={path: sha256(data) for path, data in files.items()},
    )
    return Assembled(lock, files)


@settings(max_examples=60)
@given(stories(), st.booleans())
def test_nothing_of_the_users_is_lost(story: Story, force: bool) -> None:
    folder = Path(tempfile.mkdtemp()) / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # a hundred folders, none of which need last
        try:
            _play(story, folder, force)
        finally:
            shutil.rmtree(folder.parent)


def _play(story: Story, folder: Path, force: bool) -> None:
    apply_plan(plan_write(assembled(story.written), folder))
    for path in story.written.keys() - story.disk.keys():
        (folder / path).unlink()
    for path, data in story.disk.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    in_the_way = [
        path
        for path in story.disk.keys() - story.written.keys()
        if path in story.today and story.today[path] != story.disk[path]
    ]
    before = files_in(folder)
    if in_the_way and not force:
        with pytest.raises(NotCurrentError, match="a file of yours is where"):
            plan_update(assembled(story.today), folder, read_lock(folder))
        assert files_in(folder) == before
        return
    plan = plan_update(assembled(story.today), folder, read_lock(folder), force)
    assert files_in(folder) == before  # planning writes nothing
    apply_plan(plan)
    after = files_in(folder)
    _judge(story, after, force)
    conflicts = {outcome.path for outcome in plan.conflicts}
    assert {path for path in after if has_conflict(after[path])} <= conflicts
    if not conflicts:
        again = plan_update(assembled(story.today), folder, read_lock(folder), force)
        assert not again.changes


def _judge(story: Story, after: dict[str, bytes], force: bool) -> None:
    assert after["notes.txt"] == b"mine alone\n"
    assert not [path for path in after if "pending" in path]
    everything = b"\n".join(after.values())
    for path in PATHS:
        written, disk = story.written.get(path), story.disk.get(path)
        today = story.today.get(path)
        if disk is not None and disk != written:  # edited or added
            mine = b"mine %d\n" % PATHS.index(path)
            assert mine in everything, path
        elif disk is not None:  # left alone
            assert after.get(path) == today, path
        elif written is not None:  # deleted
            assert after.get(path) == (today if force else None), path
        else:
            assert after.get(path) == today, path
        aside = after.get(f"{path}.orig")
        assert aside is None or aside == disk
