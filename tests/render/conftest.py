from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fa4gen.config.load import LoadedConfig, load_config
from fa4gen.designs.build import build_plan
from fa4gen.render.environment import TemplateSet, open_templates
from fa4gen.render.render import RenderedKernel, render

CONFIG = """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 128
num_kv_stages: 2
mask: causal
"""
KERNEL_TEMPLATE = "attention_sm90/kernel.cu.j2"
HEADER_TEMPLATE = "device/rings/barriers.h.j2"
DEVICE_TEMPLATE = "device/skeleton/device.cuh.j2"

LoadText = Callable[..., LoadedConfig]
WriteTemplate = Callable[[str, str], Path]


@pytest.fixture
def load_text(tmp_path: Path) -> LoadText:
    """load_text(yaml, name) loads a config file called name.yaml."""

    def load(text: str = CONFIG, name: str = "small") -> LoadedConfig:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return load_config(path)

    return load


@pytest.fixture
def write_template(tmp_path: Path) -> WriteTemplate:
    """write_template(name, text) adds a template to the user's folder, tmp_path / "templates"."""
    root = tmp_path / "templates"

    def write(name: str, text: str) -> Path:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    write(KERNEL_TEMPLATE, "// {{ plan.name }}: depth {{ plan.depth }}\n")
    write(HEADER_TEMPLATE, "// {{ plan.num_kv_stages }} stages\n")
    write(DEVICE_TEMPLATE, "// device code\n")
    return write


@pytest.fixture
def user_templates(write_template: WriteTemplate, tmp_path: Path) -> Callable[[], TemplateSet]:
    """Open the user's templates as they are now."""
    return lambda: open_templates(tmp_path / "templates")


@pytest.fixture
def render_small(
    load_text: LoadText, user_templates: Callable[[], TemplateSet]
) -> Callable[..., RenderedKernel]:
    """render_small(yaml, name) renders a config by the user's templates."""

    def render_it(text: str = CONFIG, name: str = "small") -> RenderedKernel:
        loaded = load_text(text, name)
        return render(build_plan(loaded.config), loaded, user_templates())

    return render_it
