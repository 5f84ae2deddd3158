"""Proofs in manifests: what render and check keep of them, and for how long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import NotCurrentError
from fa4gen.render.check import kernel_verdicts
from fa4gen.render.recorded_proof import RecordedProof, record_proof
from tests.render.written import write_kernel

if TYPE_CHECKING:
    from pathlib import Path

EMULATED = RecordedProof("emulated", "2026-11-29", 71, 35)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "generated"


def manifest(out: Path) -> dict:
    return json.loads((out / "sm_90a/small/small.json").read_text("utf-8"))


def verdicts(kernel, out: Path) -> dict[str, str]:
    return {one.path.name: one.verdict for one in kernel_verdicts(kernel, out)}


def test_a_recorded_proof_stays_and_the_files_are_current(render_small, out) -> None:
    kernel = render_small()
    write_kernel(kernel, out)
    rendered = manifest(out)
    assert rendered["proof"] == "rendered"
    record_proof(kernel, out, EMULATED)
    found = manifest(out)
    assert found["proof"] == "emulated"
    assert found["verified"] == {"date": "2026-11-29", "seed": 71, "cases": 35}
    assert {k: v for k, v in found.items() if rendered.get(k) != v}.keys() == {
        "proof", "verified", "manifest_sha256",
    }  # fmt: skip
    assert list(found)[-1] == "manifest_sha256"
    assert verdicts(kernel, out) == dict.fromkeys(kernel.files, "current")
    assert {one.action for one in write_kernel(kernel, out)} == {"unchanged"}
    assert manifest(out) == found


def test_it_is_gone_when_a_file_of_the_kernel_is_another(render_small, write_template, out) -> None:
    write_kernel(render_small(), out)
    record_proof(render_small(), out, EMULATED)
    write_template("device/rings/barriers.h.j2", "// new\n")
    assert verdicts(render_small(), out)["small.json"] == "stale"
    write_kernel(render_small(), out)
    assert manifest(out)["proof"] == "rendered"
    assert "verified" not in manifest(out)


def test_it_stays_where_only_a_template_changed(render_small, write_template, out) -> None:
    write_kernel(render_small(), out)
    record_proof(render_small(), out, EMULATED)
    write_template(
        "device/rings/barriers.h.j2", "{# a remark #}// {{ plan.num_kv_stages }} stages\n"
    )
    kernel = render_small()
    assert verdicts(kernel, out) == dict.fromkeys(kernel.files, "current") | {"small.json": "stale"}
    write_kernel(kernel, out)
    assert manifest(out)["verified"]["seed"] == 71
    assert verdicts(kernel, out)["small.json"] == "current"


def test_a_manifest_edited_by_hand_proves_nothing(render_small, out) -> None:
    kernel = render_small()
    write_kernel(kernel, out)
    record_proof(kernel, out, EMULATED)
    path = out / "sm_90a/small/small.json"
    path.write_text(path.read_text().replace('"emulated"', '"ran on NVIDIA H200"'))
    assert verdicts(kernel, out)["small.json"] == "edited"


def test_a_stronger_proof_stays_and_a_failure_takes_it_away(render_small, out) -> None:
    kernel = render_small()
    write_kernel(kernel, out)
    later = RecordedProof("partly emulated (7 instructions not run)", "2026-11-30", 72, 35)
    ran = RecordedProof("ran on NVIDIA H200", "2026-11-30", 73, 117)
    for proof, word in (later, later.proof), (EMULATED, "emulated"), (later, "emulated"):
        record_proof(kernel, out, proof)
        assert manifest(out)["proof"] == word
    record_proof(kernel, out, RecordedProof("emulated", "2026-12-01", 74, 35))
    assert manifest(out)["verified"]["seed"] == 74
    for _ in range(2):
        record_proof(kernel, out, ran)
        assert manifest(out)["proof"] == "ran on NVIDIA H200"
        record_proof(kernel, out, EMULATED)
        assert manifest(out)["verified"] == {"date": "2026-11-30", "seed": 73, "cases": 117}
    record_proof(kernel, out, None)
    assert (out / "sm_90a/small/small.json").read_text("utf-8") == kernel.files["small.json"]


def test_only_what_was_verified_gets_a_proof(render_small, out) -> None:
    kernel = render_small()
    with pytest.raises(NotCurrentError, match="this file is missing"):
        record_proof(kernel, out, EMULATED)
    write_kernel(kernel, out)
    (out / "sm_90a/small/small.cu").write_text("// mine\n")
    with pytest.raises(NotCurrentError, match="no proof of small can be recorded: this file is ed"):
        record_proof(kernel, out, EMULATED)
    assert manifest(out)["proof"] == "rendered"
