"""The operators of torch for kernels with sinks, sequences, and tensors that a score reads."""

from __future__ import annotations

import pytest

from tests.vendoring.adapters.folders import import_file, write_folder

torch = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")

BF16, INT32 = torch.bfloat16, torch.int32
RAGGED, PAGED = "d128_ragged_causal_bf16", "d64_paged64_window_sinks_bf16"
ALIBI = "d128_alibi_causal_bf16"
SCALED, OF_PAGES = "decode_d128_kv_fp8_bf16", "decode_d128_paged64_kv_fp8_page_bf16"


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    names = (RAGGED, PAGED, ALIBI, SCALED, OF_PAGES)
    folder = write_folder(tmp_path_factory.mktemp("sequences"), names, ("torch",))
    return import_file(folder / "adapters/torch/acme_torch.py", "acme_torch_of_sequences")


@pytest.fixture
def tensor():
    """Makes tensors without memory: fake ones on a GPU that need not be there."""
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        yield lambda *shape, dtype=BF16: torch.empty(shape, dtype=dtype, device="cuda")


def tables(tensor):
    return {"query_offsets": tensor(8, dtype=INT32), "key_offsets": tensor(8, dtype=INT32)}


def pages(tensor):
    return {
        "sinks": tensor(8, dtype=torch.float32),
        "query_offsets": tensor(4, dtype=INT32),
        "key_lengths": tensor(3, dtype=INT32),
        "page_table": tensor(3, 5, dtype=INT32),
    }


@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_outputs_of_a_ragged_batch(acme, tensor, layout) -> None:
    def shaped(rows, heads):
        return tensor(*((rows, heads) if layout == "bshd" else (heads, rows)), 128)

    made = acme.d128_ragged_causal_bf16(
        shaped(300, 8), shaped(420, 2), shaped(420, 2), layout=layout, **tables(tensor)
    )
    out, lse = made if isinstance(made, tuple) else (made, None)
    assert out.shape == shaped(300, 8).shape
    assert out.dtype == BF16
    assert lse is None or lse.shape == (8, 300)


def test_outputs_of_pages_that_are_given(acme, tensor) -> None:
    query, key, out = tensor(30, 8, 64), tensor(11, 64, 2, 64), tensor(30, 8, 64)
    made = getattr(acme, PAGED)(query, key, key, out=out, **pages(tensor))
    assert (made[0] if isinstance(made, tuple) else made) is out


@pytest.mark.parametrize("name", ["sinks", "query_offsets", "key_lengths", "page_table"])
def test_what_has_another_type_is_named(acme, tensor, name) -> None:
    query, key = tensor(30, 8, 64), tensor(11, 64, 2, 64)
    more = pages(tensor)
    more[name] = tensor(*more[name].shape)
    with pytest.raises(ValueError, match=f"^{name}: expected (int32|float32), got bfloat16"):
        getattr(acme, PAGED)(query, key, key, **more)


@pytest.mark.parametrize("name", [SCALED, OF_PAGES])
def test_keys_of_fp8_have_scales_of_sequences_or_of_pages(acme, tensor, name) -> None:
    query, float32 = tensor(3, 1, 8, 128), torch.float32
    tables = {}
    if name == OF_PAGES:
        key, count = tensor(11, 64, 2, 128, dtype=torch.float8_e4m3fn), 11
        tables = {"key_lengths": tensor(3, dtype=INT32), "page_table": tensor(3, 5, dtype=INT32)}
    else:
        key, count = tensor(3, 70, 2, 128, dtype=torch.uint8), 3
    scales = {f"{word}_descale": tensor(count, 2, dtype=float32) for word in ("key", "value")}
    out, lse = getattr(acme, name)(query, key, key, **scales, **tables)
    assert (out.shape, out.dtype, lse.shape) == (query.shape, BF16, (3, 8, 1))
    wrong = {**scales, "value_descale": tensor(14 - count, 2, dtype=float32)}
    with pytest.raises(ValueError, match=rf"^value_descale: expected shape \({count}, 2\)"):
        getattr(acme, name)(query, key, key, **wrong, **tables)
    with pytest.raises(ValueError, match=r"^key: expected float8_e4m3fn, got bfloat16"):
        getattr(acme, name)(query, tensor(*key.shape), key, **scales, **tables)


def test_the_schema_has_what_the_kernel_takes(acme) -> None:
    for name, kernel in acme._KERNELS.items():
        for operator in (getattr(torch.ops.acme, name), getattr(torch.ops.acme, f"{name}_out")):
            names = [row.name for row in operator.default._schema.arguments]
            taken = [word for word in kernel.arrays if not word.endswith("_descale")]
            taken = (*taken, *(word for word, _, _ in kernel.given))
            assert tuple(names[3 : 3 + len(taken)]) == taken
            scales = [word for word in kernel.arrays if word.endswith("_descale")]
            assert names[names.index("softmax_scale") + 1 :] == scales
    assert acme._KERNELS[OF_PAGES].arrays[:2] == ("key_descale", "value_descale")
    assert acme._KERNELS[ALIBI].given == (("slope", "float32", ("query_heads",)),)
    assert acme._KERNELS[PAGED].arrays == ("sinks", "query_offsets", "key_lengths", "page_table")
    assert acme._KERNELS[RAGGED].arrays == ("query_offsets", "key_offsets")


def test_a_tensor_that_the_score_reads(acme, tensor) -> None:
    query, key = tensor(2, 100, 8, 128), tensor(2, 90, 2, 128)
    out, lse = acme.d128_alibi_causal_bf16(query, key, key, slope=tensor(8, dtype=torch.float32))
    assert (out.shape, lse.shape) == (query.shape, (2, 8, 100))
    with pytest.raises(ValueError, match=r"^slope: expected shape \(8\), got \(7,\)"):
        acme.d128_alibi_causal_bf16(query, key, key, slope=tensor(7, dtype=torch.float32))


def test_a_compiled_function_is_one_graph(acme) -> None:
    from torch._subclasses import FakeTensorMode

    graphs = []

    def backend(module, _):
        graphs.append(module)
        return module.forward

    def attend(query, key, offsets):
        made = acme.d128_ragged_causal_bf16(
            query, key, key, query_offsets=offsets, key_offsets=offsets
        )
        return (made[0] if isinstance(made, tuple) else made) + 1

    with FakeTensorMode():
        query, key = (torch.empty(300, 2, 128, dtype=BF16, device="cuda") for _ in range(2))
        offsets = torch.empty(8, dtype=INT32, device="cuda")
        result = torch.compile(attend, backend=backend, fullgraph=True)(query, key, offsets)
    assert result.shape == (300, 2, 128)
    assert len(graphs) == 1
