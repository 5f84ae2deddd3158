from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.errors import ConfigError, NotCurrentError
from fa4gen.render.check import kernel_verdicts
from fa4gen.render.manifest import read_manifest, sealed, sha256
from fa4gen.render.write import plan_writes, prune
from tests.render.written import check_generated, write_kernel

OTHER = "kernel: attention\narch: sm_90a\ndtype: fp16\ndepth: 64\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "generated"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def actions(outcomes) -> list[str]:
    return [outcome.action for outcome in outcomes]


def test_first_write_creates_just_the_files(render_small, out: Path) -> None:
    kernel = render_small()
    assert actions(write_kernel(kernel, out)) == ["created"] * 4
    assert tree(out) == {f"sm_90a/small/{name}": t.encode() for name, t in kernel.files.items()}


def test_identical_bytes_are_not_rewritten(render_small, out: Path) -> None:
    write_kernel(render_small(), out)
    before = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in out.rglob("*")}
    assert actions(write_kernel(render_small(), out)) == ["unchanged"] * 4
    assert {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in out.rglob("*")} == before


def test_stale_files_are_updated_without_force(render_small, write_template, out: Path) -> None:
    write_kernel(render_small(), out)
    write_template("device/rings/barriers.h.j2", "// new\n")
    kernel = render_small()
    assert actions(write_kernel(kernel, out)) == ["unchanged", "updated", "unchanged", "updated"]
    assert {v.verdict for v in check_generated([kernel], out)} == {"current"}


def test_an_edited_file_is_refused_and_nothing_is_written(
    render_small, write_template, out: Path
) -> None:
    write_kernel(render_small(), out)
    (out / "sm_90a/small/small.cu").write_text("// mine\n")
    write_template("device/rings/barriers.h.j2", "// new\n")
    before = tree(out)
    with pytest.raises(NotCurrentError) as caught:
        write_kernel(render_small(), out)
    assert tree(out) == before
    assert caught.value.exit_status == 3
    (problem,) = caught.value.problems
    assert problem.file.endswith("sm_90a/small/small.cu")
    assert "changed since fa4gen wrote it" in problem.message
    assert "--force" in problem.remedy
    assert actions(write_kernel(render_small(), out, force=True)) == [
        *("updated", "updated", "unchanged", "updated")
    ]
    assert {v.verdict for v in kernel_verdicts(render_small(), out)} == {"current"}


def test_a_foreign_file_is_not_overwritten(render_small, out: Path) -> None:
    (out / "sm_90a/small").mkdir(parents=True)
    (out / "sm_90a/small/small.cu").write_text("// hand written\n")
    with pytest.raises(NotCurrentError):
        write_kernel(render_small(), out)
    assert tree(out) == {"sm_90a/small/small.cu": b"// hand written\n"}


def test_planning_writes_nothing(render_small, out: Path) -> None:
    assert actions(plan_writes([render_small()], out)[0]) == ["created"] * 4
    assert not out.exists()


def test_an_output_folder_that_cannot_be_made(render_small, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError) as caught:
        write_kernel(render_small(), tmp_path / "file" / "generated")
    assert caught.value.exit_status == 2
    (problem,) = caught.value.problems
    assert "cannot write" in problem.message
    assert "--out" in problem.remedy
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(render_small, out: Path) -> None:
    out.mkdir(mode=0o555)
    with pytest.raises(ConfigError, match="cannot write: Permission denied"):
        write_kernel(render_small(), out)


def test_a_failure_in_the_middle_leaves_everything_as_it_was(
    render_small, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes = Path.write_bytes
    written: list[Path] = []

    def full_disk(path: Path, data: bytes) -> int:
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(path))
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(ConfigError, match="cannot write: No space left on device"):
        write_kernel(render_small(), out)
    assert len(written) == 3
    assert not out.exists()


def test_files_get_the_permissions_of_the_umask(render_small, out: Path) -> None:
    old = os.umask(0o027)
    try:
        write_kernel(render_small(), out)
    finally:
        os.umask(old)
    assert (out / "sm_90a/small/small.cu").stat().st_mode & 0o777 == 0o640


def test_prune_deletes_what_a_manifest_recorded_and_empty_folders(render_small, out: Path) -> None:
    kernel = render_small()
    write_kernel(kernel, out)
    write_kernel(render_small(OTHER, "gone"), out)
    outcomes = prune(v for v in check_generated([kernel], out) if v.verdict == "orphan")
    assert actions(outcomes) == ["pruned"] * 4
    assert not (out / "sm_90a/gone").exists()
    assert {v.verdict for v in check_generated([kernel], out)} == {"current"}


def test_prune_keeps_the_users_files_that_a_manifest_lists(render_small, out: Path) -> None:
    kernel = render_small(OTHER, "gone")
    write_kernel(kernel, out)
    folder = out / "sm_90a/gone"
    (folder / "notes.txt").write_text("mine\n")
    manifest = json.loads((folder / "gone.json").read_text())
    manifest["files"]["notes.txt"] = sha256("mine\n")
    (folder / "gone.json").write_text(json.dumps(sealed(manifest)))
    prune(check_generated([], out))
    assert tree(out) == {"sm_90a/gone/notes.txt": b"mine\n"}
    manifest["files"]["../../notes.txt"] = sha256("mine\n")
    (folder / "gone.json").write_text(json.dumps(sealed(manifest)))
    assert read_manifest(folder / "gone.json") is None


def test_prune_keeps_the_users_files(render_small, out: Path) -> None:
    write_kernel(render_small(OTHER, "gone"), out)
    (out / "sm_90a/gone/gone.cu").write_text("// mine\n")
    (out / "sm_90a/gone/notes.txt").write_text("mine\n")
    prune(check_generated([], out))
    assert set(tree(out)) == {f"sm_90a/gone/{n}" for n in ("gone.cu", "gone.json", "notes.txt")}
    prune(check_generated([], out))
    assert len(tree(out)) == 3


State = st.sampled_from(["absent", "current", "as recorded", "edited"])


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(states=st.tuples(State, State), force=st.booleans(), manifest=st.booleans())
def test_writing_refuses_exactly_what_is_edited_and_ends_current(
    render_small, write_template, tmp_path_factory, states, force: bool, manifest: bool
) -> None:
    out = tmp_path_factory.mktemp("generated")
    write_template("attention_sm90/kernel.cu.j2", "// old\n")
    write_template("device/rings/barriers.h.j2", "// old\n")
    write_kernel(render_small(), out)
    write_template("attention_sm90/kernel.cu.j2", "// new\n")
    write_template("device/rings/barriers.h.j2", "// new\n")
    kernel = render_small()
    folder = out / kernel.folder
    if not manifest:
        (folder / "small.json").unlink()
    texts = {"current": "// new\n", "as recorded": "// old\n", "edited": "// mine\n"}
    wanted = {"absent": "missing", "current": "current", "edited": "edited"}
    wanted["as recorded"] = "stale" if manifest else "edited"
    for name, state in zip(["small.cu", "small_barriers.h"], states, strict=True):
        (folder / name).unlink()
        if state != "absent":
            (folder / name).write_text(texts[state])
    verdicts = [v.verdict for v in kernel_verdicts(kernel, out)]
    assert verdicts[:2] == [wanted[state] for state in states]
    assert verdicts[2:] == ["current", "stale" if manifest else "missing"]
    before = tree(out)
    if "edited" in verdicts and not force:
        with pytest.raises(NotCurrentError):
            write_kernel(kernel, out)
        assert tree(out) == before
    else:
        write_kernel(kernel, out, force)
        assert tree(out) == {f"{kernel.folder}/{n}": t.encode() for n, t in kernel.files.items()}
