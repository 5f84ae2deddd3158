from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fa4gen.vendor.manifest import short_manifest

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES))
def test_the_data_stay_the_same(value) -> None:
    assert json.loads(short_manifest(json.dumps(value, allow_nan=False))) == json.loads(
        json.dumps(value)
    )


def test_a_row_is_a_line() -> None:
    text = json.dumps({"name": "n", "plan": {"BM": 64, "rows": [{"a": 1, "b": [2]}, {"a": 3}]}})
    assert short_manifest(text) == (
        '{\n "name": "n",\n "plan": {\n  "BM": 64,\n  "rows": [\n'
        '   {"a": 1, "b": [2]},\n   {"a": 3}\n  ]\n }\n}\n'
    )
