"""Models: what they are as data, what they refuse, and that Ctrl-C is not lost in them."""

from __future__ import annotations

import copy
import pickle
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import pytest

from fa4gen.config.find import find_configs, shipped_configs
from fa4gen.config.load import load_config
from fa4gen.strict import ModelError, Strict, rule
from tests.shipped import loaded

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def config(name: str) -> Strict:
    (path,) = find_configs([name])
    return load_config(path).config


class Part(Strict):
    """A part."""

    size: int = 3
    name: str


class Whole(Part):
    part: Part | Literal["none"] = "none"
    parts: tuple[Part, ...] = ()

    @rule
    def _named_apart(self) -> None:
        if self.part != "none" and self.part.name == self.name:
            raise ValueError(f"name: {self.name} is the name of the part, too")

    @rule
    def _small(self) -> None:
        if self.size > 5:
            raise ValueError("size is more than 5")


GIVEN = {"name": "a", "part": {"name": "b"}}


def test_data_are_what_was_given_and_defaults() -> None:
    model = Whole.model_validate(GIVEN)
    assert model.data(only_given=True) == GIVEN
    assert model.data() == {
        "size": 3,
        "name": "a",
        "parts": (),
        "part": {"size": 3, "name": "b"},
    }
    again = Whole.model_validate({**GIVEN, "size": 3})
    assert again == model
    assert hash(again) == hash(model)
    assert again.model_fields_set == {"size", "name", "part"}
    assert again.data(only_changed=True) == {"name": "a", "part": {"name": "b"}}


def test_data_of_the_shipped_configs_give_them_again() -> None:
    for path in shipped_configs():
        model = loaded(path).config
        assert type(model).model_validate(model.data()) == model
        assert list(model.data()) == list(type(model).model_fields)
        assert type(model).model_validate(model.data(only_given=True)) == model
        assert type(model).model_validate(model.data(only_changed=True)) == model


def test_keys_of_the_base_come_first_and_a_key_without_a_default_is_required() -> None:
    assert list(Whole.model_fields) == ["size", "name", "part", "parts"]
    assert [f.is_required() for f in Whole.model_fields.values()] == [False, True, False, False]
    assert [f.get_default() for f in Whole.model_fields.values()] == [3, None, "none", ()]


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        (5, [((), "value", "")]),
        ({}, [(("name",), "missing", "")]),
        ({"nam": 1, 5: 2}, [(("name",), "missing"), (("nam",), "unknown"), ((5,), "unknown")]),
        ({"name": 1, "size": "1"}, [(("size",), "value"), (("name",), "value")]),
        ({"name": "a", "part": "all"}, [(("part",), "value")]),
        ({"name": "a", "part": {}}, [(("part", "name"), "missing")]),
        ({"name": "a", "part": {"nam": "b"}}, [(("part", "name"), "missing"),
                                               (("part", "nam"), "unknown")]),
        ({"name": "a", "parts": [{"name": "b"}, {}]}, [(("parts", 1, "name"), "missing")]),
        ({"name": "a", "parts": {"name": "b"}}, [(("parts",), "value")]),
        ({"name": "a", "part": {"name": "a"}, "size": 6},
         [((), "rule", "name: a is the name of the part, too")]),
        ({"name": "a", "size": 6}, [((), "rule", "size is more than 5")]),
        ({"name": "a", "size": 6, "parts": 1}, [(("parts",), "value")]),
    ],
)  # fmt: skip
def test_faults(data: object, faults: list[tuple[Any, ...]]) -> None:
    with pytest.raises(ModelError) as caught:
        Whole.model_validate(data)
    found = [tuple(fault[:3]) for fault in caught.value.faults]
    assert found == [(*fault, "")[:3] for fault in faults]
    assert str(caught.value).startswith("no Whole:\n")


def test_a_model_is_a_value() -> None:
    model = Whole.model_validate(GIVEN)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again == model
        assert again.model_fields_set == {"name", "part"}
    assert model != Whole(name="c")
    assert Part(name="a") != Whole(name="a")
    assert repr(Part(name="a")) == "Part(size=3, name='a')"
    assert Whole.model_validate(model) is model
    with pytest.raises(AttributeError, match="cannot be changed"):
        model.size = 4
    with pytest.raises(AttributeError, match="cannot be removed"):
        del model.size
    with pytest.raises(ModelError, match="size"):
        Part(name="a", size="4")


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
    def dropping() -> None:
        with suppress(KeyboardInterrupt):
            config("d128_causal_bf16").data()

    with pytest.raises(AssertionError, match="lost"):
        interrupted(dropping, 20)
