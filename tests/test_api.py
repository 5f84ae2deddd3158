"""``fa4gen.load``: from a name, a path or a mapping to a kernel, without a GPU; error messages."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest

import fa4gen
from fa4gen.errors import ConfigError
from fa4gen.resources import data_root
from fa4gen.runtime.attention import AttentionKernel

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "fp16", "depth": 64}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """One cache for this run: each kernel is compiled once, and the user's cache is not used."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(folder))
    return folder


@pytest.mark.compile
def test_a_mapping_becomes_a_kernel():
    kernel = fa4gen.load(CONFIG)
    assert isinstance(kernel, AttentionKernel)
    assert kernel.plan.depth == 64
    assert kernel.cubin[:4] == b"\x7fELF"
    assert kernel.plan.entry_point.encode() in kernel.cubin


@pytest.mark.compile
def test_a_file_and_a_shipped_name_become_kernels(tmp_path):
    path = tmp_path / "my_kernel.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in CONFIG.items()))
    for config in (path, str(path)):
        assert fa4gen.load(config).plan.name == "my_kernel"
    assert fa4gen.load("d128_causal_bf16").plan.mask.name == "causal"


@pytest.mark.compile
def test_the_cache_is_used_only_when_wanted(own_cache):
    config = {**CONFIG, "name": "cached", "mask": {"sliding_window": 100}}
    before = {*own_cache.rglob("*.kernel")}
    cubin = fa4gen.load(config, cache=False).cubin
    assert {*own_cache.rglob("*.kernel")} == before
    assert fa4gen.load(config).cubin == cubin
    assert len({*own_cache.rglob("*.kernel")} - before) == 1


@pytest.mark.compile
def test_own_templates_are_taken(tmp_path):
    name = "attention_sm90/load.cuh.j2"
    own = tmp_path / name
    own.parent.mkdir()
    text = (data_root("templates") / name).read_text()
    keys = "{% put blocks.load_first_keys() %}\n"
    before, after = text.split(keys)
    query, newline, rest = after.partition("\n")
    own.write_text(f"{before}{query}{newline}{keys}{rest}")  # the query before the keys
    shipped = fa4gen.load(CONFIG).cubin
    for folder in (tmp_path, str(tmp_path)):
        assert fa4gen.load(CONFIG, templates=folder).cubin != shipped
    own.rename(own.with_name("loader.cuh.j2"))
    for shapes in (None, "auto"):
        with pytest.raises(ConfigError, match=f"Did you mean {name}"):
            fa4gen.load(CONFIG, templates=tmp_path, shapes=shapes)


def test_a_wrong_mapping_is_refused():
    with pytest.raises(ConfigError, match="depth"):
        fa4gen.load({**CONFIG, "depth": 100})


def test_what_cannot_fit_is_refused_with_its_place(tmp_path):
    path = tmp_path / "greedy.yaml"
    text = "".join(f"{key}: {value}\n" for key, value in CONFIG.items())
    path.write_text(f"{text}num_kv_stages: 16\n")
    with pytest.raises(ConfigError, match=r"greedy\.yaml:5:\d+: shared memory"):
        fa4gen.load(path)


def test_a_config_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError):
        fa4gen.load("no_such_kernel")
    with pytest.raises(ConfigError):
        fa4gen.load(tmp_path / "missing.yaml")


def test_a_folder_of_several_configs_is_refused(tmp_path):
    text = "".join(f"{key}: {value}\n" for key, value in CONFIG.items())
    for name in ("first", "second"):
        (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(ConfigError, match="names 2 configs") as caught:
        fa4gen.load(tmp_path)
    assert "first, second" in caught.value.problems[0].remedy


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"numpy", "cupy", "cuda", "yaml", "jinja2", "fa4gen.api"}
    code = f"import sys, fa4gen; print(*{heavy} & {{*sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""


def test_other_names_are_no_part_of_the_package():
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = fa4gen.lode


def test_the_interface_is_named_and_shown_by_help():
    """The command line starts without it: each name is imported at its first use."""
    names = {
        "load",
        "AttentionKernel",
        "GemmKernel",
        "KernelSet",
        "MergeKernel",
        "Problem",
        "__version__",
    }
    names |= {"ArgumentError", "CompileError", "ConfigError", "Fa4genError"}
    assert set(fa4gen.__all__) == names | {"MissingCapabilityError"}
    for name in fa4gen.__all__:
        assert getattr(fa4gen, name) is not None
        assert name in dir(fa4gen)
    text = pydoc.plain(pydoc.render_doc(fa4gen))
    assert "load(config: 'str | Path | Mapping[str, Any]'" in text
    for name in ("AttentionKernel", "GemmKernel", "KernelSet", "ArgumentError"):
        assert f"class {name}(" in text


def test_names_of_the_interface_import_what_they_need_alone():
    code = "import fa4gen, sys; fa4gen.ConfigError; print('fa4gen.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_package_shows_what_it_has():
    code = "import fa4gen; print('load' in dir(fa4gen), '__version__' in dir(fa4gen))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
