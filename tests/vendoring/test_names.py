"""Kernels whose C names the folder itself needs are refused before anything is compiled."""

from __future__ import annotations

import re

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_mapping
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.vendoring.folder_files import HEADER_PARTS, ROOTS
from fa4gen.vendoring.kernels import render_kernels
from fa4gen.vendoring.names import interface_names, taken_names
from tests.shipped import loaded

CONFIG = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}


@pytest.mark.parametrize(
    ("name", "clash"),
    [
        ("attention", "acme_attention, which the interface has"),
        ("residual", "acme_residual, which"),
        ("gemm", "acme_gemm, which"),
        ("best", "acme_best, which"),
        ("image", "acme_image, which"),
    ],
)
def test_a_name_of_the_interface_is_refused(name, clash) -> None:
    with pytest.raises(ConfigError, match=f"{name}: the kernel would need the C name {clash}"):
        render_kernels([load_mapping({**CONFIG, "name": name}, name)], "acme")


def test_a_name_that_another_kernel_makes_is_refused() -> None:
    loaded = [load_mapping({**CONFIG, "name": name}, name) for name in ("fast", "fast_kernel")]
    with pytest.raises(ConfigError, match="acme_fast_kernel, which the kernel fast has"):
        render_kernels(loaded, "acme")


def test_other_names_are_free() -> None:
    assert taken_names(["fast", "faster", "attention_2"], frozenset({"attention"})) == {}


def test_the_shipped_kernels_may_all_be_in_one_folder() -> None:
    templates = open_templates()
    interface = interface_names(templates.source(name).text for _, name in ROOTS)
    assert {"attention_args", "prepared", "workspace_init"} < interface
    names = [loaded(path).config.name for path in find_configs(())]
    assert len(names) > 90
    assert taken_names(names, interface) == {}


def test_the_names_of_the_whole_header_are_taken() -> None:
    header = open_templates().source("vendored/launcher.h.j2").text
    assert tuple(re.findall(r'include "([^"]+)"', header)) == HEADER_PARTS
