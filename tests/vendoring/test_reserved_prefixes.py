from __future__ import annotations

import pytest

from fa4gen.errors import ConfigError
from fa4gen.vendoring.names import check_prefix
from fa4gen.vendoring.reserved_prefixes import what_has


@pytest.mark.parametrize(
    ("prefix", "what"),
    [
        ("stdint", "the header stdint.h of C"),
        ("string", "the header string.h of C"),
        ("dlfcn", "the system's header dlfcn.h"),
        ("cuda", "CUDA's header cuda.h"),
        ("class", "a word of C++ or Python"),
        ("lambda", "a word of C++ or Python"),
        ("ctypes", "a module of Python"),
        ("typing", "a module of Python"),
        ("torch", "a Python package"),
    ],
)
def test_a_prefix_that_would_shadow_something_is_refused_with_another(prefix, what):
    with pytest.raises(ConfigError) as caught:
        check_prefix(prefix)
    assert f"--prefix: {prefix} is {what}" in str(caught.value)
    assert f"--prefix {prefix}_kernels" in str(caught.value)
    assert check_prefix(f"{prefix}_kernels") == f"{prefix}_kernels"


@pytest.mark.parametrize("prefix", ["acme", "attn", "kernels", "my_string"])
def test_other_prefixes_are_free(prefix):
    assert what_has(prefix) is None
    assert check_prefix(prefix) == prefix
