"""Values of config models: what they are as data, and that Ctrl-C is not lost there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.find import find_configs, shipped_configs
from fa4gen.config.load import load_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from fa4gen.strict import Strict


def config(name: str) -> Strict:
    (path,) = find_configs([name])
    return load_config(path).config


def test_data_are_what_pydantic_would_give() -> None:
    for path in shipped_configs():
        model = load_config(path).config
        assert model.data() == model.model_dump() == model.model_dump(mode="json")
        assert list(model.data()) == list(model.model_dump())
        assert model.data(only_given=True) == model.model_dump(exclude_unset=True)
        assert model.data(only_changed=True) == model.model_dump(exclude_defaults=True)


def interrupted(function: Callable[[], Any], call: int) -> bool:
    """Run ``function`` with a Ctrl-C in its ``call``-th call; whether there were as many."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        if event == "call":
            calls += 1
            if calls == call:
                sys.setprofile(None)
                raise KeyboardInterrupt

    profile = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(profile)
    assert calls < call, "the interrupt was lost"
    return False


@pytest.mark.parametrize("name", ["d128_causal_bf16", "d128_window_bf16", "fa4_d128_causal_bf16"])
def test_ctrl_c_is_never_lost(name: str) -> None:
    model = config(name)
    given = model.data(only_given=True)
    for function in (model.data, lambda: type(model).model_validate(given)):
        function()  # what is built at the first use is not judged here
        call = 1
        while interrupted(function, call):
            call += 1
        assert call > 1


def test_an_interrupt_that_is_dropped_is_seen() -> None:
    with pytest.raises(AssertionError, match="lost"), pytest.warns(UserWarning, match="serializer"):
        interrupted(config("d128_causal_bf16").model_dump, 2)
