from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from fa4gen.config.load import load_config, load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.render.render import RenderedKernel, render, template_places
from fa4gen.render.text_check import first_breach
from fa4gen.resources import data_root

if TYPE_CHECKING:
    from fa4gen.render.template_errors import TemplateLine

ROOT = "attention_sm90/kernel.cu.j2"
SHIPPED = sorted(data_root("configs").glob("attention/sm_90a/*.yaml"))
TEMPLATES = open_templates()


def test_files_names_and_folder(render_small) -> None:
    kernel = render_small()
    assert kernel.folder == "sm_90a/small"
    assert kernel.family == "attention"
    assert list(kernel.files) == [
        "small.cu",
        "small_barriers.h",
        "small_device.cuh",
        "small.json",
    ]
    assert kernel.source == "// small: depth 128\n"
    assert kernel.headers == {
        "small_barriers.h": "// 2 stages\n",
        "small_device.cuh": "// device code\n",
    }


def test_templates_are_those_used_with_their_files(render_small, write_template, tmp_path) -> None:
    write_template("part.j2", "// part\n")
    write_template("unused.j2", "// unused\n")
    text = (
        "{% include 'part.j2' %}\n{% if not plan.lse %}\n{% include 'unused.j2' %}\n{% endif %}\n"
    )
    write_template(ROOT, text)
    kernel = render_small()
    assert kernel.templates == (
        ROOT,
        "device/rings/barriers.h.j2",
        "device/skeleton/device.cuh.j2",
        "part.j2",
    )
    assert kernel.template_files == tuple(
        str(tmp_path / "templates" / name) for name in kernel.templates
    )


def test_one_template_set_serves_many_kernels(load_text, user_templates, write_template) -> None:
    write_template(
        ROOT,
        "{% if plan.lse %}\n{% include 'a.j2' %}\n{% else %}\n{% include 'b.j2' %}\n{% endif %}\n",
    )
    write_template("a.j2", "// a\n")
    write_template("b.j2", "// b\n")
    templates = user_templates()
    base = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
    for lse, used in [("true", "a.j2"), ("false", "b.j2"), ("true", "a.j2")]:
        loaded = load_text(base + f"lse: {lse}\n")
        kernel = render(build_plan(loaded.config), loaded, templates)
        assert used in kernel.templates
        assert len(kernel.templates) == 4


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_config_renders_to_clean_text(path: Path) -> None:
    loaded = load_config(path)
    kernel = render(build_plan(loaded.config), loaded, TEMPLATES)
    for name, text in kernel.files.items():
        assert first_breach(text) is None, name
    included = {
        file: [line.split('"')[1] for line in text.splitlines() if line.startswith("#include")]
        for file, text in kernel.files.items()
    }
    barriers, device = f"{kernel.name}_barriers.h", f"{kernel.name}_device.cuh"
    assert included.pop(f"{kernel.name}.cu") == [barriers, device]
    assert included == {barriers: [], device: [barriers], f"{kernel.name}.json": []}


KEYS = {
    "depth": [64, 96, 128, 192, 256],
    "dtype": ["bf16", "fp16"],
    "mask": [
        "none",
        "causal",
        {"sliding_window": 100},
        {"sliding_window": {"left": 3, "right": 5}},
    ],
    "lse": [True, False],
    "softcap": [None, 30.0],
    "cta_group": [1, 2],
    "BM": ["auto", 64, 128, 192],
    "overlap": [True, False],
    "ping_pong": ["auto", True, False],
    "overlap_epilogue": ["auto", True, False],
    "epilogue": ["auto", "direct", "tma_store"],
    "scheduler": ["auto", "static", "dynamic"],
    "rescale_threshold": [8.0, 0.0],
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({key: st.sampled_from(values) for key, values in KEYS.items()}))
def test_every_accepted_config_renders_to_clean_text(keys: dict[str, object]) -> None:
    loaded = load_mapping({"kernel": "attention", "arch": "sm_90a", **keys}, "any")
    try:
        plan = build_plan(loaded.config)
    except ConfigError:
        reject()
    kernel = render(plan, loaded, TEMPLATES)
    assert all(first_breach(text) is None for text in kernel.files.values())
    assert json.loads(kernel.files["any.json"])["plan"]["depth"] == keys["depth"]


def test_lines_of_the_shipped_kernel_trace_back_to_their_templates() -> None:
    loaded = load_config(SHIPPED[0])
    plan, templates = build_plan(loaded.config), open_templates()
    kernel = render(plan, loaded, templates)
    for file in (f"{kernel.name}.cu", f"{kernel.name}_device.cuh"):
        lines = kernel.files[file].split("\n")
        places = template_places(plan, loaded, templates, file)
        traced(kernel, lines, places)


def traced(kernel: RenderedKernel, lines: list[str], places: list[TemplateLine | None]) -> None:
    """Each line has a place among the templates used, and plain lines are those of the template."""
    assert len(places) == len(lines)
    assert all(place is not None for place, line in zip(places, lines, strict=True) if line)
    assert {place.source.name for place in places if place} <= set(kernel.templates)
    plain = [
        (p.text, line) for p, line in zip(places, lines, strict=True) if p and "{" not in p.text
    ]
    assert len(plain) > len(lines) / 2
    for place, line in zip(places, lines, strict=True):
        if place and "{" not in place.text and place.text.rstrip() != line:  # it was too long
            around = place.source.lines[max(0, place.line - 3) : place.line + 2]
            assert set(line.split()) <= set(" ".join(around).split()), line
    assert sum(template.rstrip() == line for template, line in plain) > 0.8 * len(plain)


def test_output_does_not_depend_on_hash_seed_folder_or_locale(tmp_path: Path) -> None:
    script = (
        "import hashlib, sys\n"
        "from pathlib import Path\n"
        "from fa4gen.config.load import load_config\n"
        "from fa4gen.designs.build import build_plan\n"
        "from fa4gen.render.render import render\n"
        "loaded = load_config(Path(sys.argv[1]))\n"
        "files = render(build_plan(loaded.config), loaded).files\n"
        "print({n: hashlib.sha256(t.encode()).hexdigest() for n, t in files.items()})\n"
    )
    package_root = str(Path(__file__).resolve().parents[2])
    outputs = set()
    for seed, locale in [("1", "C"), ("2", "C.UTF-8")]:
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "same.yaml").write_bytes(SHIPPED[0].read_bytes())
        result = subprocess.run(
            [sys.executable, "-c", script, "same.yaml"],
            cwd=folder,
            env={"PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONPATH": package_root},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(result.stdout)
    assert len(outputs) == 1


def test_nothing_of_the_machine_is_in_the_files(render_small, tmp_path: Path) -> None:
    for text in render_small().files.values():
        assert str(tmp_path) not in text


def test_the_head_of_a_kernel_names_the_command_that_renders_it(load_text) -> None:
    loaded = load_text(name="mine")
    head = render(build_plan(loaded.config), loaded).source.partition("#include")[0]
    assert head.rstrip().splitlines()[-3:] == [
        '// How far it is proved: "proof" in mine.json',
        "// Change the config, not this file, and render it again:",
        "//   fa4gen render mine.yaml",
    ]


def test_the_head_of_a_shipped_kernel_names_its_config() -> None:
    loaded = load_config(SHIPPED[0])
    head = render(build_plan(loaded.config), loaded).source.partition("#include")[0]
    name = f"attention/sm_90a/{SHIPPED[0].stem}"
    assert head.rstrip().splitlines()[-1] == f"//   fa4gen render {name}"


def test_manifest_is_the_last_file_and_lists_the_others(render_small) -> None:
    kernel = render_small()
    manifest = json.loads(kernel.files["small.json"])
    assert list(manifest["files"]) == ["small.cu", "small_barriers.h", "small_device.cuh"]
    assert set(manifest["inputs"]) == {"config_sha256", "templates_sha256", "own_templates"}
