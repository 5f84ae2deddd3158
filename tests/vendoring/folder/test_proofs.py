from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from fa4gen.errors import NotCurrentError
from fa4gen.vendoring.lock import Proof, read_lock
from fa4gen.vendoring.proofs import Outcome, hashes_on_disk, record_proofs
from tests.vendoring.folder.conftest import CONFIG, OTHER, Vendored

pytestmark = pytest.mark.compile

SYMBOL = f"acme_{CONFIG}"


def record(vendored: Vendored, proof: str, *, passed: bool = True, seed: int = 7) -> list[str]:
    hashes = hashes_on_disk(vendored.folder, read_lock(vendored.folder))
    return record_proofs(
        vendored.folder, hashes, [Outcome(SYMBOL, proof, passed, num_cases=13)], seed
    )


def proofs(vendored: Vendored) -> list[Proof]:
    (kernel,) = (k for k in read_lock(vendored.folder).kernels if k.symbol == SYMBOL)
    return list(kernel.proofs)


def levels(vendored: Vendored) -> list[str]:
    return [proof.level for proof in proofs(vendored)]


def test_a_proof_is_recorded_with_all_that_it_takes_to_repeat_it(vendored: Vendored) -> None:
    assert record(vendored, "emulated") == [SYMBOL]
    assert record(vendored, "ran on NVIDIA H200", seed=8) == [SYMBOL]
    compiled, emulated, ran = proofs(vendored)
    today = datetime.now(UTC).date().isoformat()
    assert (emulated.level, emulated.device, emulated.seed) == ("emulated", "emulator", 7)
    assert (ran.level, ran.device, ran.seed, ran.cases) == ("ran", "NVIDIA H200", 8, 13)
    assert emulated.date is not None
    assert emulated.date <= today
    assert len({proof.files_sha256 for proof in (compiled, emulated, ran)}) == 1
    ran = vendored.run("check", "attn")
    assert ran.status == 0
    assert f"{SYMBOL}: ran on NVIDIA H200: 13 cases, seed 8, 20" in ran.out


def test_a_later_proof_of_a_level_takes_the_place_of_the_earlier(vendored: Vendored) -> None:
    record(vendored, "emulated", seed=1)
    record(vendored, "emulated", seed=2)
    assert [proof.seed for proof in proofs(vendored)] == [None, 2]


def test_a_failure_withdraws_the_proof_for_the_same_files(vendored: Vendored) -> None:
    record(vendored, "emulated")
    record(vendored, "ran on NVIDIA H200")
    assert record(vendored, "emulated", passed=False) == []
    assert levels(vendored) == ["compiled", "ran"]


@pytest.mark.parametrize("proof", ["rendered", "compiled"])
def test_what_did_not_run_proves_nothing(vendored: Vendored, proof: str) -> None:
    before = vendored.files()
    assert record(vendored, proof, passed=False) == []
    assert vendored.files() == before


def test_nothing_is_recorded_of_files_that_changed_meanwhile(vendored: Vendored) -> None:
    hashes = hashes_on_disk(vendored.folder, read_lock(vendored.folder))
    (vendored.folder / "src/launcher.c").write_text("mine")
    before = vendored.files()
    with pytest.raises(NotCurrentError, match="files changed while they were verified"):
        record_proofs(vendored.folder, hashes, [Outcome(SYMBOL, "emulated", True, 13)], 7)
    assert vendored.files() == before


def test_update_keeps_the_proofs_of_kernels_that_come_out_the_same(vendored: Vendored) -> None:
    record(vendored, "emulated")
    assert vendored.run("update", "attn").status == 0
    assert levels(vendored) == ["compiled", "emulated"]
    # An adapter decides nothing of a run; the launcher does.
    assert vendored.run("add", "--adapter", "python", "--into", "attn").status == 0
    assert levels(vendored) == ["compiled", "emulated"]
    assert vendored.run("add", OTHER, "--into", "attn").status == 0
    assert levels(vendored) == ["compiled"]


def test_a_proof_of_edited_files_counts_for_them(vendored: Vendored) -> None:
    place = vendored.folder / "src/launcher.c"
    place.write_text("/* mine */\n" + place.read_text())
    record(vendored, "emulated")
    before = proofs(vendored)
    assert before[0].files_sha256 != before[1].files_sha256
    assert vendored.run("update", "attn").status == 0
    assert before[1] in proofs(vendored)


@pytest.mark.emulate
def test_verify_builds_and_runs_the_folder(vendored: Vendored) -> None:
    words = ("verify", "attn", "--seed", "5", "-j", "1", "--format", "json", "--cases")
    ran = vendored.run(*words, "size/64")
    assert ran.status == 0
    (kernel,) = json.loads(ran.out)["kernels"]
    assert (kernel["name"], kernel["proof"], kernel["passed"]) == (SYMBOL, "emulated", True)
    assert "nothing is recorded" in ran.err
    assert ran.err.startswith("attn: its C code is compiled and run here\n")
    assert levels(vendored) == ["compiled"]
    assert "no_such_case" in vendored.refused(*words, "no_such_case")
    # What is in the folder is what is run: a user's mistake in the launcher shows.
    record(vendored, "emulated")
    vendored.edit("src/launcher.c", "define LOG2_E 1.44", "define LOG2_E 1.54")
    ran = vendored.run(*words, "size/64", "--run-changed")
    assert ran.status == 1
    again = "To reproduce it: fa4gen vendor verify attn --run-changed --seed 5 --cases size/64"
    assert again in ran.err
