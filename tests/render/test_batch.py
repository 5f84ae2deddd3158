from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.errors import ConfigError, TemplateError
from fa4gen.render.batch import render_configs
from fa4gen.render.choice import FIRST, ChoiceRecord, choice_of
from fa4gen.render.records import Records

BASE = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 64\n"


@pytest.fixture
def config(tmp_path: Path):
    def write(file: str, text: str = BASE) -> Path:
        path = tmp_path / "configs" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def templates(write_template, tmp_path: Path) -> Path:
    return tmp_path / "templates"


def test_kernels_come_in_the_order_of_their_configs(config, templates: Path) -> None:
    paths = [config("b.yaml"), config("a.yaml")]
    done = render_configs(paths, templates)
    assert [(item.config, item.kernel.name) for item in done] == [
        (paths[0], "b"),
        (paths[1], "a"),
    ]


def test_problems_of_all_configs_come_at_once(config, templates: Path) -> None:
    paths = [
        config("a.yaml", BASE.replace("64", "100")),
        config("b.yaml"),
        config("c.yaml", BASE + "num_kv_stages: 16\n"),
    ]
    with pytest.raises(ConfigError) as caught:
        render_configs(paths, templates)
    problems = caught.value.problems
    assert {Path(p.file).name for p in problems} == {"a.yaml", "c.yaml"}
    assert all(p.line for p in problems)


def test_two_configs_of_one_name_are_refused(config, templates: Path) -> None:
    paths = [config("x/same.yaml"), config("y/same.yaml"), config("z.yaml", BASE + "name: same\n")]
    with pytest.raises(ConfigError) as caught:
        render_configs(paths, templates)
    assert [Path(p.file).name for p in caught.value.problems] == ["same.yaml", "z.yaml"]
    assert str(paths[0]) in caught.value.problems[0].message
    assert "sm_90a/same" in caught.value.problems[0].message


def test_a_broken_template_is_reported_once_for_all_configs(
    config, write_template, templates: Path
) -> None:
    write_template("device/rings/barriers.h.j2", "{{ nope }}\n")
    with pytest.raises(TemplateError) as caught:
        render_configs([config("a.yaml"), config("b.yaml")], templates)
    assert len(caught.value.problems) == 1


def test_worker_processes_give_the_same_result(
    config, templates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fa4gen.render.batch._KERNELS_PER_WORKER", 1)
    paths = [config(f"k{i}.yaml") for i in range(5)]
    assert render_configs(paths, templates, jobs=2) == render_configs(paths, templates)
    config("k3.yaml", BASE + "unknown: 1\n")
    with pytest.raises(ConfigError, match="unknown"):
        render_configs(paths, templates, jobs=2)


class Recorded(Records):
    """Records that have the same candidate for each config."""

    def choice(self, config: object) -> ChoiceRecord:
        return ChoiceRecord({"BN": 256}, "nvrtc 13.0.88")


def test_a_recorded_candidate_that_no_longer_fits_gives_way_to_the_first(config) -> None:
    path = config("wide.yaml", BASE.replace("64", "256"))
    with pytest.raises(ConfigError):
        render_configs([config("pinned.yaml", path.read_text() + "BN: 256\n")])
    (done,) = render_configs([path], recorded=Recorded())
    assert choice_of(json.loads(done.kernel.files["wide.json"])) == FIRST
    (first,) = render_configs([path])
    assert first.kernel.files == done.kernel.files
