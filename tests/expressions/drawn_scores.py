"""Score functions, drawn as text."""

from __future__ import annotations

from hypothesis import strategies as st

from fa4gen.expressions.tensors import Tensor

TENSORS = (
    Tensor("slope", "fp32", ("query_heads",)),
    Tensor("bias", "fp32", ("key_heads", 64)),
    Tensor("document", "int32", ("batch", "keys")),
)
FLOATS = st.sampled_from(["score", "score", "0.5", "1.25", "3.0", "slope[head]", "0.1"])
WHOLES = st.sampled_from(
    ["query", "key", "row", "head", "2", "query - key", "document[batch, key]", "key % 3",
     "abs(query - key)", "key_head", "bias[key_head, query - key]", "3 * key - query"]
)  # fmt: skip
COMPARED = st.sampled_from(["<", "<=", ">", "==", "!="])


def _numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner)
    return st.one_of(
        pair.map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, st.sampled_from(["0.7", "-3.0", "8.0", "(1 + abs(query - key))"])).map(
            lambda parts: f"({parts[0]}) / {parts[1]}"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        st.tuples(st.sampled_from(["abs", "tanh", "-", "+"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        inner.map(lambda one: f"exp2(min({one}, 9))"),
        inner.map(lambda one: f"log2(max({one}, 0.5))"),
        st.tuples(WHOLES, COMPARED, WHOLES, inner, inner).map(
            lambda parts: f"where({parts[0]} {parts[1]} {parts[2]}, {parts[3]}, {parts[4]})"
        ),
        st.tuples(inner, COMPARED, inner, inner, inner).map(
            lambda parts: f"where({parts[0]} {parts[1]} {parts[2]}, {parts[3]}, {parts[4]})"
        ),
    )


SCORES = st.recursive(FLOATS | WHOLES, _numbers, max_leaves=8).map(lambda one: f"score + {one}")
