"""The operators of PyTorch on a GPU, in Python and on the stable ABI."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

import fa4gen
from tests.vendoring.adapters.calls_of_kinds import (
    GATHERED,
    GROUPED,
    LARGEST,
    MERGE,
    SCATTERED,
    SUMS,
    SWIGLU,
)
from tests.vendoring.adapters.gpu_folder import (
    BLOCKS,
    RESIDUAL,
    import_once,
    load_torch_cpp,
    load_tvm_ffi,
    to_torch,
    torch_with_cuda,
)
from tests.vendoring.adapters.gpu_problems import CASES, OTHER_GROUPS

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

REPLAYS = 1000


@pytest.fixture(scope="module")
def torch():
    return torch_with_cuda()


@pytest.fixture(scope="module")
def vend(torch, gpu_folder):
    return import_once(gpu_folder / "adapters/torch/vend_torch.py")


@pytest.fixture(scope="module")
def cpp(gpu_folder):
    return load_torch_cpp(gpu_folder)


class Functions:
    """The adapter for Python, whose functions take torch tensors, in the form of operators."""

    def __init__(self, vend) -> None:
        self.vend = vend

    def d128_causal_bf16(self, query, key, value, scale=None):
        return self.vend.d128_causal_bf16(query, key, value, softmax_scale=scale)

    def d128_causal_bf16_out(self, query, key, value, out, lse) -> None:
        self.vend.d128_causal_bf16(query, key, value, out=out, lse=lse)

    def gemm_bf16_residual_sm90(self, a, b, c, alpha=1.0, beta=1.0):
        return self.vend.gemm_bf16_residual_sm90(a, b, c, alpha=alpha, beta=beta)

    def gemm_bf16_residual_sm90_out(self, a, b, c, out) -> None:
        self.vend.gemm_bf16_residual_sm90(a, b, c, out=out)


class Outputs:
    """The functions of TVM-FFI, which only write outputs, in the form of operators."""

    def __init__(self, torch, vend) -> None:
        self.torch, self.vend = torch, vend

    def d128_causal_bf16(self, query, key, value, scale=None):
        rows, heads = query.shape[1:3]
        lse = self.torch.empty(len(query), heads, rows, device="cuda")
        out = self.torch.empty_like(query)
        self.vend.d128_causal_bf16(query, key, value, out, lse, scale)
        return out, lse

    def d128_causal_bf16_out(self, query, key, value, out, lse) -> None:
        self.vend.d128_causal_bf16(query, key, value, out, lse, None)

    def gemm_bf16_residual_sm90(self, a, b, c, alpha=1.0, beta=1.0):
        columns = b.shape[-1]
        wide = self.torch.empty(*a.shape[:-1], -(-columns // 8) * 8, dtype=c.dtype, device="cuda")
        out = wide[..., :columns]
        self.vend.gemm_bf16_residual_sm90(a, b, c, out, alpha, beta)
        return out

    def gemm_bf16_residual_sm90_out(self, a, b, c, out) -> None:
        self.vend.gemm_bf16_residual_sm90(a, b, c, out, 1.0, 1.0)


@pytest.fixture(params=["python", "cpp"])
def operators(request, torch, vend):
    return torch.ops.vend if request.param == "python" else request.getfixturevalue("cpp")


@pytest.fixture(params=["python", "cpp", "functions", "outputs"])
def calls(request, torch, vend, gpu_folder):
    """The operators, and functions of other adapters in their form."""
    if request.param == "functions":
        return Functions(import_once(gpu_folder / "adapters/python/vend.py"))
    if request.param == "outputs":
        return Outputs(torch, load_tvm_ffi(gpu_folder))
    return torch.ops.vend if request.param == "python" else request.getfixturevalue("cpp")


@pytest.fixture
def data(torch):
    torch.manual_seed(0)

    def random(*shape):
        return torch.randn(shape, device="cuda").bfloat16()

    return SimpleNamespace(
        attention=(random(2, 1000, 8, 128), random(2, 1200, 2, 128), random(2, 1200, 2, 128)),
        small=(random(2, 500, 4, 64), random(2, 300, 4, 64), random(2, 300, 4, 64)),
        product=(random(300, 200), random(264, 200).t(), random(300, 264)),
        odd=(random(3, 300, 200), random(101, 200).t(), random(300, 104)[:, :101]),
        row=(random(300, 200), random(264, 200).t(), random(264)),
        majors=(random(200, 304).t(), random(200, 264), random(304, 264).float()),
    )


def same(torch, got, expected):
    got, expected = ([x] if isinstance(x, torch.Tensor) else list(x) for x in (got, expected))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.stride() == other.stride()
        assert torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


@pytest.fixture(params=["python", "cpp", "functions", "outputs"])
def merge(request, torch, vend, gpu_folder):
    """A function that merges into given tensors, of each adapter that has some."""
    if request.param == "functions":
        functions = import_once(gpu_folder / "adapters/python/vend.py")
        return lambda *inputs, out, lse: getattr(functions, MERGE)(*inputs, out=out, lse=lse)
    if request.param == "outputs":
        write = getattr(load_tvm_ffi(gpu_folder), MERGE)
    else:
        operators = torch.ops.vend
        if request.param == "cpp":
            operators = request.getfixturevalue("cpp")
        write = getattr(operators, f"{MERGE}_out")
    return lambda *inputs, out, lse: write(*inputs, out, lse)


@pytest.mark.parametrize("batch", [(), (2,)], ids=["rows", "batches"])
def test_parts_are_merged_in_place(torch, merge, batch) -> None:
    """Each of 17 parts, some of them empty, takes the result; the others stay as they are."""
    torch.manual_seed(1)
    parts = torch.randn(17, *batch, 90, 4, 128, device="cuda").bfloat16()
    part_lse = 3 * torch.randn(17, *batch, 4, 90, device="cuda")
    part_lse[torch.rand_like(part_lse) < 0.3] = -torch.inf
    weights = part_lse.softmax(0).transpose(-1, -2)[..., None]
    exact = (parts.double() * weights).sum(0)
    expected = fa4gen.load(MERGE)(parts, part_lse)
    assert (expected[0].double() - exact).norm() < 2**-8 * exact.norm()
    torch.testing.assert_close(expected[1], part_lse.logsumexp(0), rtol=1e-5, atol=1e-5)
    for part, of_lse in ((0, 0), (5, 16), (16, 3)):
        inputs = parts.clone(), part_lse.clone()
        merge(*inputs, out=inputs[0][part], lse=inputs[1][of_lse])
        same(torch, [inputs[0][part], inputs[1][of_lse]], expected)
        others = [i for i in range(17) if i != part]
        assert torch.equal(inputs[0][others], parts[others])


def test_no_parts_give_zeros(torch, merge) -> None:
    parts = torch.empty(0, 2, 90, 4, 128, device="cuda", dtype=torch.bfloat16)
    out, lse = torch.ones(2, 90, 4, 128, device="cuda").bfloat16(), torch.ones(2, 4, 90).cuda()
    merge(parts, torch.empty(0, 2, 4, 90, device="cuda"), out=out, lse=lse)
    assert not out.any()
    assert torch.isneginf(lse).all()


def test_merging_is_compiled_and_captured(torch, vend) -> None:
    parts = torch.randn(3, 2, 90, 4, 128, device="cuda").bfloat16()
    part_lse = torch.randn(3, 2, 4, 90, device="cuda")
    expected = [one.clone() for one in getattr(vend, MERGE)(parts, part_lse)]

    @torch.compile(fullgraph=True)
    def merged(parts, part_lse):
        return getattr(vend, MERGE)(parts * 1, part_lse)

    same(torch, merged(parts, part_lse), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = getattr(vend, MERGE)(parts, part_lse)
    for _ in range(REPLAYS):
        graph.replay()
    same(torch, found, expected)


def test_rows_of_any_width(torch, calls, data) -> None:
    for inputs in (data.odd, (data.odd[0][0], *data.odd[1:])):
        got = calls.gemm_bf16_residual_sm90(*inputs, 0.5, -2.0)
        same(torch, got, fa4gen.load(RESIDUAL)(*inputs, alpha=0.5, beta=-2.0))


def test_given_outputs_are_written(torch, calls, vend, data) -> None:
    expected = calls.d128_causal_bf16(*data.attention)
    out, lse = (torch.full_like(x, float("nan")) for x in expected)
    calls.d128_causal_bf16_out(*data.attention, out, lse)
    same(torch, (out, lse), expected)
    c = data.product[2].clone()
    expected = calls.gemm_bf16_residual_sm90(*data.product)
    calls.gemm_bf16_residual_sm90_out(data.product[0], data.product[1], c, c)
    same(torch, c, expected)
    heads_first = [x.transpose(1, 2).contiguous() for x in data.attention]
    got, lse = vend.d128_causal_bf16(*heads_first, layout="bhsd")
    expected = vend.d128_causal_bf16(*data.attention)
    assert torch.equal(got.transpose(1, 2), expected[0])
    assert torch.equal(lse, expected[1])


def test_opcheck(torch, operators, data) -> None:
    made = torch.ops.vend.d128_causal_bf16(*data.attention)
    for name, arguments in (
        ("d128_causal_bf16", (*data.attention, 0.1)),
        ("d128_causal_bf16_out", (*data.attention, *map(torch.zeros_like, made))),
        ("d64_dense_small_bf16", data.small),
        # opcheck clones its inputs, which loses the padding of rows: extents that need none.
        ("gemm_bf16_residual_sm90", (*data.product, 0.5, 2.0)),
        ("gemm_bf16_residual_sm90_out", (*data.product, torch.zeros_like(data.product[2]))),
        ("gemm_bf16_bias_gelu_sm90", data.row),
        ("gemm_bf16_mn_major_sm90", data.majors),
    ):
        results = torch.library.opcheck(getattr(operators, name).default, arguments)
        assert set(results.values()) == {"SUCCESS"}, (name, results)


@pytest.mark.parametrize("name", [GROUPED, GATHERED, SCATTERED, LARGEST, SUMS, SWIGLU])
def test_opcheck_of_products(torch, operators, name) -> None:
    """opcheck compares whole tensors, by arithmetic that torch has not for fp8."""
    problem = CASES[name]()
    arrays = problem.arrays | OTHER_GROUPS.get(name, {})
    given = {key: to_torch(one) for key, one in arrays.items()}
    out = given.pop("out", None)
    inputs = (*map(to_torch, problem.inputs), *given.values())
    numbers = tuple(problem.options.values())
    calls = {}
    if out is None:
        calls[name] = (*inputs, *numbers)
        out = torch.zeros_like(getattr(operators, name)(*calls[name]))
    if name == LARGEST:
        given["out_amax"].zero_()
    calls[f"{name}_out"] = (*inputs, out, *numbers)
    for form, arguments in calls.items():
        results = torch.library.opcheck(getattr(operators, form).default, arguments)
        assert set(results.values()) == {"SUCCESS"}, (form, results)


@pytest.mark.parametrize("form", ["scales of rows", "scales of columns"])
def test_scales_of_blocks_in_a_traced_graph(torch, operators, form) -> None:
    torch.manual_seed(0)
    a, b = (
        torch.randn(shape, device="cuda").to(torch.float8_e4m3fn)
        for shape in ((304, 400), (272, 400))
    )
    scale_a, scale_b = (torch.rand(shape, device="cuda") + 0.5 for shape in ((304, 4), (3, 4)))
    if form == "scales of columns":
        scale_a = scale_a.t().contiguous().t()

    def layer(a, weight, scale_a, scale_b):
        return -operators.gemm_fp8_scaled_sm90(a, weight.t(), 2 * scale_a, scale_b.t(), 0.5)

    traced = torch.compile(layer, fullgraph=True, backend="aot_eager")
    got = traced(a, b, scale_a, scale_b)
    same(torch, got, layer(a, b, scale_a, scale_b))
    same(torch, -got, fa4gen.load(BLOCKS)(a, b.t(), scale_a=scale_a, scale_b=scale_b.t()))
    wide_a, wide_b = (
        one.repeat_interleave(128, 1)[:, :400]
        for one in (scale_a, scale_b.repeat_interleave(128, 0))
    )
    expected = (a.float() * wide_a).double() @ (b.float() * wide_b[:272]).double().t()
    torch.testing.assert_close(-got.double(), expected, atol=0.5, rtol=2e-2)


def test_wrong_scales_are_named(torch, operators) -> None:
    a, b = (torch.zeros(64, 256, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    scale_a, scale_b = torch.ones(64, 2, device="cuda"), torch.ones(2, 1, device="cuda")
    for given, words in (
        ((scale_a[:, :1], scale_b), "scale_a: expected"),
        ((scale_a, scale_b.t()), "scale_b: expected"),
        ((scale_a.bfloat16(), scale_b), "scale_a: expected float32"),
    ):
        with pytest.raises((ValueError, RuntimeError, TypeError), match=words):
            operators.gemm_fp8_scaled_sm90(a, b.t(), *given, 1.0)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_as_one_graph(torch, operators, data, mode, dynamic) -> None:
    def layer(x, weight, c, query, key, value):
        product = operators.gemm_bf16_residual_sm90(-x, weight, c)
        out, lse = operators.d128_causal_bf16(query, key, value)
        other = torch.empty_like(out)
        operators.d128_causal_bf16_out(query, key, -value, other, torch.empty_like(lse))
        return -product, -out, other, lse

    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, mode=mode)
    for rows in (300, 200, 296):
        a, weight, c = data.product
        arguments = (a[:rows], weight, c[:rows], *data.attention)
        expected = layer(*arguments)
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            got = [x.clone() for x in compiled(*arguments)]
            for one, other in zip(got, expected, strict=True):
                assert torch.equal(one, other)


def test_a_graph_is_captured_and_replayed(torch, calls, data) -> None:
    inputs = [x.clone() for x in data.attention]
    calls.d128_causal_bf16(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = calls.d128_causal_bf16(*inputs)
        again, _ = calls.d128_causal_bf16(*inputs)
    inputs[2].copy_(data.attention[1])
    expected = calls.d128_causal_bf16(*inputs)
    torch.cuda.synchronize()
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    same(torch, (out, lse), expected)
    assert torch.equal(again, out)


def test_a_graph_beside_launches_on_the_capturing_stream(torch, calls, data) -> None:
    expected = calls.d128_causal_bf16(*data.attention)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        captured = calls.d128_causal_bf16(*data.attention)
    torch.cuda.synchronize()
    for _ in range(100):
        graph.replay()
        with torch.cuda.stream(stream):
            eager = calls.d128_causal_bf16(*data.attention)
    torch.cuda.synchronize()
    same(torch, captured, expected)
    same(torch, eager, expected)


def test_the_current_stream(torch, calls, data) -> None:
    calls.d128_causal_bf16(*data.attention)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        calls.d128_causal_bf16(*data.attention)
        assert not stream.query()
    stream.synchronize()


def test_eight_threads_on_eight_streams(torch, calls, data) -> None:
    expected = calls.d128_causal_bf16(*data.attention)
    torch.cuda.synchronize()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(20):
                    found = calls.d128_causal_bf16(*data.attention)
                    stream.synchronize()
                    same(torch, found, expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_new_thread_without_a_context(torch, calls, data) -> None:
    expected = calls.gemm_bf16_residual_sm90(*data.product)
    out = torch.zeros_like(expected)
    torch.cuda.synchronize()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            calls.gemm_bf16_residual_sm90_out(*data.product, out)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert not failures
    same(torch, out, expected)


def test_there_is_no_backward_pass(torch, vend, data) -> None:
    query = data.attention[0].clone().requires_grad_()
    out, _ = vend.d128_causal_bf16(query, *data.attention[1:])
    with pytest.raises(RuntimeError, match="backward"):
        out.sum().backward()


def test_refusals(torch, calls, data) -> None:
    query, key, value = data.attention
    kind = RuntimeError if calls is torch.ops.vend_cpp else ValueError
    with pytest.raises(kind, match=r"^value: expected"):
        calls.d128_causal_bf16(query, key, value[:, :7])
    with pytest.raises(kind, match=r"^key: expected"):
        calls.d128_causal_bf16(query, key.cpu(), value)
    with pytest.raises(kind, match=r"^out: expected"):
        calls.d128_causal_bf16_out(query, key, value, query, torch.empty(2, 8, 1000).cuda())
    with pytest.raises(kind, match=r"^softmax_scale: expected"):
        calls.d128_causal_bf16(query, key, value, -1.0)
    wide = torch.zeros(2, 1200, 2, 132, device="cuda", dtype=torch.bfloat16)[..., :128]
    with pytest.raises(kind, match=r"^value: expected"):
        calls.d128_causal_bf16(query, key, wide)


def test_offsets_of_another_batch_are_refused(torch, cpp, data) -> None:
    query, key = data.attention[0][0], data.attention[1][0]
    offsets = torch.zeros(3, dtype=torch.int32, device="cuda")
    with pytest.raises(RuntimeError, match=r"^key_offsets: expected"):
        cpp.d128_ragged_causal_bf16(query, key, key, offsets, offsets[:2])
