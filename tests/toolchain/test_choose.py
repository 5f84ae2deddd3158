"""The first candidate that compiles clean, found by compilers that take what a test wants."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import candidates_of
from fa4gen.errors import CompileError, ConfigError
from fa4gen.render.choice import choice_of, with_choice
from fa4gen.render.manifest import intact_manifest
from fa4gen.render.render import render
from fa4gen.toolchain.choose import choose, choose_many
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.failures import compile_error
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fa4gen.config.load import LoadedConfig
    from fa4gen.toolchain.choose import Chosen
    from fa4gen.toolchain.model import Built, Compiler

KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}


def config(name: str = "k", **keys: object) -> LoadedConfig:
    return load_mapping({**KEYS, **keys}, name)


def constant(source: str, name: str) -> int:
    found = re.search(rf"\b{name} = (\d+);", source)
    assert found is not None
    return int(found[1])


@dataclass
class Picky:
    """A compiler that spills where a kernel is not ``taken``; ``refused`` are errors of the source.

    What it returns was compiled by a real one from small kernels.
    """

    clean: Built
    spilled: Built
    taken: Callable[[str], bool]
    refused: Callable[[str], bool] = lambda _: False
    asked: list[str] = field(default_factory=list)
    name: str = "nvrtc"
    version: str = "1.2.3"

    def options(self, unit: Unit) -> tuple[str, ...]:
        del unit
        return ()

    def build(self, unit: Unit) -> Built:
        if not unit.line_info:
            self.asked.append(unit.source)
        if self.refused(unit.source):
            raise compile_error(unit, f"{unit.name}.cu(3): error: no such name")
        return self.clean if self.taken(unit.source) else self.spilled

    def build_ptx(self, unit: Unit) -> str:
        del unit
        return self.clean.ptx


@pytest.fixture(scope="module")
def picky(sources: Mapping[str, str]) -> Callable[..., Picky]:
    real = find_compiler()
    clean, spilled = (real.build(Unit(w, sources[w], {}, "sm_90a")) for w in ("clean", "spill"))

    def make(taken: Callable[[str], bool], **options: Callable[[str], bool]) -> Picky:
        return Picky(clean, spilled, taken, **options)

    return make


def up_to(block: int) -> Callable[[str], bool]:
    return lambda source: constant(source, "kBN") <= block


def chosen_by(compiler: Compiler, loaded: LoadedConfig) -> Chosen:
    (chosen,) = choose_many([loaded], compiler)
    return chosen


def test_the_first_candidate_is_taken_where_it_is_clean(picky) -> None:
    compiler = picky(lambda _: True)
    chosen = choose(config(), compiler)
    assert (chosen.candidate.changes, chosen.left, len(compiler.asked)) == ({}, (), 1)
    assert chosen.compiler == "nvrtc 1.2.3"
    assert chosen.kernel.clean


def test_candidates_are_tried_in_order_until_one_is_clean(picky) -> None:
    compiler = picky(up_to(80))
    chosen = choose(config(), compiler)
    tried = [one.candidate.changes for one in chosen.left] + [chosen.candidate.changes]
    assert tried[0] == {}
    assert chosen.candidate.changes == {"BN": 80}
    assert chosen.plan.BN == 80
    every = list(candidates_of(config().config))
    assert [every.index(one) for one in tried] == sorted(every.index(one) for one in tried)
    assert all(one.why.startswith("spill: ") for one in chosen.left)
    assert len(compiler.asked) == len(set(compiler.asked)) == len(tried)
    row = next(row for row in chosen.plan.choices if row.key == "BN")
    assert (row.source, row.reason) == ("auto", "the first candidate that compiled clean")


@pytest.mark.parametrize("jobs", [2, 5])
def test_candidates_beside_each_other_give_the_same(jobs: int, picky) -> None:
    (chosen,) = choose_many([config()], find_compiler(), jobs=jobs)
    alone = chosen_by(find_compiler(), config())
    assert chosen.candidate.changes == alone.candidate.changes


def test_what_a_config_gives_is_never_changed(picky) -> None:
    compiler = picky(up_to(64))
    chosen = chosen_by(compiler, config(BN=96, mask="causal"))
    assert all(constant(source, "kBN") == 96 for source in compiler.asked[:3])
    assert not chosen.outcome.compiled
    assert chosen.candidate.changes == {}


def test_a_refusal_offers_what_was_compiled(picky) -> None:
    compiler = picky(up_to(64))
    with pytest.raises(CompileError) as raised:
        choose(config(BN=96, mask="causal"), compiler)
    (problem,) = raised.value.problems
    assert "spill: registers are spilled to local memory" in problem.message
    assert problem.remedy == "Set BN: 64."
    assert any(constant(source, "kBN") == 64 for source in compiler.asked)


def test_a_refusal_without_a_fix_offers_none(picky) -> None:
    with pytest.raises(CompileError) as raised:
        choose(config(), picky(lambda _: False))
    assert "Set " not in raised.value.problems[0].remedy


def test_fixes_are_searched_only_where_they_are_asked_for(picky) -> None:
    compiler = picky(up_to(64))
    with pytest.raises(CompileError):
        choose(config(BN=96), compiler, fixes=False)
    assert {constant(source, "kBN") for source in compiler.asked} == {96}


def test_no_other_candidate_mends_a_wrong_source(picky) -> None:
    compiler = picky(lambda _: True, refused=lambda _: True)
    chosen = chosen_by(compiler, config())
    assert len(compiler.asked) == 1
    assert chosen.is_settled
    assert chosen.outcome.problems[0].line == 3


def test_many_configs_keep_their_order_and_report_each_once(picky) -> None:
    configs = [config("a"), config("b", BN=64), config("c", BN=96), config("d", depth=64)]
    done = []
    chosen = choose_many(configs, picky(up_to(64)), fixes=False, on_done=lambda: done.append(1))
    assert [one.loaded.config.name for one in chosen] == ["a", "b", "c", "d"]
    assert [one.outcome.compiled for one in chosen] == [True, True, False, True]
    assert len(done) == 4


def test_a_kernel_is_compiled_under_the_name_that_it_is_rendered_with(picky) -> None:
    def renamed(plan, loaded):
        return render(replace(plan, vendored_as=f"acme_{plan.name}"), loaded)

    done = []
    compiler = picky(lambda _: True)
    (chosen,) = choose_many([config()], compiler, render=renamed, on_done=lambda: done.append(1))
    assert chosen.outcome.unit.name == chosen.kernel.name == "acme_k"
    assert len(done) == 1


def test_configs_without_a_plan_are_reported_together(picky) -> None:
    wrong = [config("a", BN=256, depth=256), config("b"), config("c", num_kv_stages=16)]
    with pytest.raises(ConfigError) as raised:
        choose_many(wrong, picky(lambda _: True))
    assert len({problem.file for problem in raised.value.problems}) == 2


def test_the_manifest_says_what_was_tried(picky) -> None:
    chosen = choose(config(), picky(up_to(80)))
    kernel = with_choice(chosen.candidate.rendered, chosen.record)
    manifest = intact_manifest(kernel.files["k.json"].encode())
    assert manifest is not None
    record = choice_of(manifest)
    assert record == chosen.record
    assert (record.keys, record.compiler) == ({"BN": 80}, "nvrtc 1.2.3")
    assert record.left[0].keys == {}


@pytest.mark.compile
def test_a_config_that_spills_at_first_compiles_clean() -> None:
    """Packed documents at depth 128: the first candidate spills some 40 bytes."""
    chosen = choose(config(mask="documents"), find_compiler())
    assert chosen.kernel.resources.spill_store_bytes == 0
    assert chosen.left
