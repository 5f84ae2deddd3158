"""Kernels on a GPU: layouts, libraries, streams, graphs, threads."""

from __future__ import annotations

import statistics
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import fa4gen
from fa4gen.errors import ArgumentError
from tests.runtime.gpu_arrays import random, to_gpu

pytestmark = pytest.mark.gpu

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
ATOL = 0.03
"""The tolerance of outputs around 1: several times the rounding of bf16."""


@pytest.fixture(scope="module")
def kernel():
    """Causal, with log-sum-exp, dynamic scheduler."""
    return fa4gen.load({**CONFIG, "name": "gpu_causal", "mask": "causal"})


@pytest.fixture(scope="module")
def dense():
    """No mask, no log-sum-exp, two CTAs share keys and values, fp16, output by TMA."""
    return fa4gen.load(
        {
            **CONFIG, "name": "gpu_dense", "dtype": "fp16", "depth": 64, "lse": False,
            "epilogue": "tma_store", "overlap_epilogue": False,
        }
    )  # fmt: skip


def reference(query, key, value, *, scale, causal):
    """Attention in float64 on (batch, rows, heads, depth), and its log-sum-exp."""
    query, key, value = (x.astype(np.float64) for x in (query, key, value))
    group = query.shape[2] // key.shape[2]
    key, value = (np.repeat(x, group, axis=2) for x in (key, value))
    scores = np.einsum("bqhd,bkhd->bhqk", query, key) * scale
    if causal:
        rows, keys = scores.shape[2:]
        scores[..., ~np.tri(rows, keys, keys - rows, dtype=bool)] = -np.inf
    peak = scores.max(axis=-1, keepdims=True, initial=-1e300)
    weights = np.exp(scores - peak)
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + peak)[..., 0]
    lse[total[..., 0] == 0] = -np.inf
    weights /= np.where(total == 0, 1, total)
    return np.einsum("bhqk,bkhd->bqhd", weights, value), lse


def nan_array(shape, dtype):
    """An array of NaN, made without a kernel: all bits set."""
    import cupy

    array = cupy.empty(shape, dtype)
    array.data.memset_async(0xFF, array.nbytes)
    return array


def host_of(array):
    """A contiguous array in float64."""
    return array.get().astype(np.float64)


def close(got, expected):
    np.testing.assert_allclose(host_of(got), expected, atol=ATOL)


def operands(
    batch=2, rows=300, keys=300, heads=4, key_heads=2, depth=128, dtype=ml_dtypes.bfloat16
):
    return (
        random(batch, rows, heads, depth, seed=1, dtype=dtype),
        random(batch, keys, key_heads, depth, seed=2, dtype=dtype),
        random(batch, keys, key_heads, depth, seed=3, dtype=dtype),
    )


@pytest.mark.parametrize(("rows", "keys"), [(300, 300), (1, 77), (77, 500), (500, 77), (193, 1)])
def test_output_and_lse(kernel, rows, keys):
    host = operands(rows=rows, keys=keys)
    out, lse = kernel(*map(to_gpu, host))
    expected, expected_lse = reference(*host, scale=128**-0.5, causal=True)
    close(out, expected)
    np.testing.assert_allclose(lse.get(), expected_lse, atol=2e-3)


@pytest.mark.parametrize(("rows", "keys"), [(300, 300), (1, 77), (500, 77)])
def test_a_kernel_without_lse_returns_only_the_output(dense, rows, keys):
    host = operands(rows=rows, keys=keys, depth=64, dtype=np.float16)
    out = dense(*map(to_gpu, host), softmax_scale=0.3)
    close(out, reference(*host, scale=0.3, causal=False)[0])


def test_both_layouts_without_a_copy(kernel):
    host = operands()
    plain, _ = kernel(*map(to_gpu, host))
    # The same memory seen as (batch, heads, rows, depth) by strides.
    seen, lse = kernel(*(to_gpu(x).transpose(0, 2, 1, 3) for x in host), layout="bhsd")
    assert seen.shape == (2, 4, 300, 128)
    assert lse.shape == (2, 4, 300)
    np.testing.assert_array_equal(host_of(seen).transpose(0, 2, 1, 3), host_of(plain))
    # Contiguous in the other order.
    packed = [to_gpu(np.ascontiguousarray(x.transpose(0, 2, 1, 3))) for x in host]
    np.testing.assert_array_equal(host_of(kernel(*packed, layout="bhsd")[0]), host_of(seen))


def test_slices_of_one_packed_buffer(kernel):
    host = operands(heads=4, key_heads=4)
    packed = to_gpu(np.stack([*host, np.zeros_like(host[0])], axis=2))
    views = [packed[:, :, i] for i in range(4)]
    out, _ = kernel(*views[:3], out=views[3])
    assert out is views[3]
    after = host_of(packed)
    expected = reference(*host, scale=128**-0.5, causal=True)[0]
    np.testing.assert_allclose(after[:, :, 3], expected, atol=ATOL)
    for i in range(3):
        np.testing.assert_array_equal(after[:, :, i], host[i].astype(np.float64))


def test_given_outputs_are_written_and_returned(kernel):
    arrays = [to_gpu(x) for x in operands()]
    out = nan_array(arrays[0].shape, arrays[0].dtype)
    lse = nan_array((2, 4, 300), np.float32)
    result = kernel(*arrays, out=out, lse=lse)
    assert result[0] is out
    assert result[1] is lse
    assert not np.isnan(host_of(out)).any()
    assert not np.isnan(host_of(lse)).any()


@pytest.mark.parametrize("axis", ["batch", "heads"])
def test_broadcast_keys_are_right_or_refused(kernel, axis):
    import cupy

    query, key, value = operands(key_heads=4)
    one = (
        (slice(0, 1), slice(None), slice(None))
        if axis == "batch"
        else (slice(None), slice(None), slice(0, 1))
    )
    key, value = (np.broadcast_to(x[one], x.shape) for x in (key, value))
    on_gpu = [
        cupy.broadcast_to(to_gpu(np.ascontiguousarray(x[one])), x.shape) for x in (key, value)
    ]
    assert 0 in on_gpu[0].strides
    try:
        out, _ = kernel(to_gpu(query), *on_gpu)
    except ArgumentError as error:
        assert {problem.key for problem in error.problems} <= {"key", "value"}  # noqa: PT017
        return
    close(out, reference(query, key, value, scale=128**-0.5, causal=True)[0])


@pytest.mark.parametrize(
    "sizes", [{"batch": 0}, {"rows": 0}, {"heads": 0, "key_heads": 0}, {"rows": 0, "keys": 0}]
)
def test_without_rows_nothing_happens(kernel, sizes):
    host = operands(**sizes)
    out, lse = kernel(*map(to_gpu, host))
    assert out.shape == host[0].shape
    assert lse.size == 0


def test_without_keys_the_output_is_zero(kernel):
    query, key, value = map(to_gpu, operands(keys=0))
    out, lse = kernel(query, key, value, out=nan_array(query.shape, query.dtype))
    assert (host_of(out) == 0).all()
    assert (host_of(lse) == -np.inf).all()


def test_calls_one_after_another_give_the_same(kernel):
    """The scheduler's counter is back at zero after each."""
    arrays = [to_gpu(x) for x in operands(rows=2000, keys=2000)]
    first = host_of(kernel(*arrays)[0])
    for _ in range(20):
        np.testing.assert_array_equal(host_of(kernel(*arrays)[0]), first)


def test_wrong_arguments_launch_nothing(kernel):
    import cupy

    query, key, value = map(to_gpu, operands())
    out = nan_array(query.shape, query.dtype)
    with pytest.raises(ArgumentError, match="value: expected the key's shape"):
        kernel(query, key, value[:, :-1], out=out)
    with pytest.raises(ArgumentError, match="query: expected bfloat16"):
        kernel(cupy.empty(query.shape, cupy.float16), key, value, out=out)
    shifted = cupy.empty(key.size + 1, key.dtype)[1:].reshape(key.shape)
    with pytest.raises(ArgumentError, match="key: expected an address that is a multiple of 16"):
        kernel(query, shifted, value, out=out)
    with pytest.raises(ArgumentError, match="out: expected memory of its own"):
        kernel(query, key, value, out=query)
    assert np.isnan(host_of(out)).all()


def test_the_current_stream_is_used(kernel):
    import cupy

    launch = kernel.prepare(*map(to_gpu, operands()))
    launch()
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    blocker = cupy.cuda.alloc(4 << 30)
    with stream:
        for _ in range(20):
            blocker.memset_async(0, 4 << 30, stream)
        launch()
        assert not stream.done
        assert cupy.cuda.Stream.null.done
    stream.synchronize()


def test_a_prepared_call_can_be_repeated(kernel):
    host = operands()
    launch = kernel.prepare(*map(to_gpu, host))
    assert launch() is None
    expected = reference(*host, scale=128**-0.5, causal=True)[0]
    close(launch.out, expected)
    launch.out.data.memset_async(0xFF, launch.out.nbytes)
    launch()
    close(launch.out, expected)


def test_capture_into_a_graph(kernel):
    import cupy

    host = operands()
    arrays = [to_gpu(x) for x in host]
    launch = kernel.prepare(*arrays)
    launch()
    launch.out.data.memset_async(0xFF, launch.out.nbytes)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        launch()
        launch()
        graph = stream.end_capture()
    cupy.cuda.Device().synchronize()
    assert np.isnan(host_of(launch.out)).all()
    graph.launch(stream)
    graph.launch(stream)
    launch()  # on another stream, at the same time: counters of their own
    cupy.cuda.Device().synchronize()
    close(launch.out, reference(*host, scale=128**-0.5, causal=True)[0])


def test_many_streams_and_threads_at_once(kernel):
    import cupy

    host = [operands(rows=200 + 64 * i, keys=200 + 64 * i) for i in range(4)]
    arrays = [[to_gpu(x) for x in problem] for problem in host]
    cupy.cuda.Device().synchronize()
    outputs = [None] * 4
    errors = []

    def work(i):
        try:
            with cupy.cuda.Stream(non_blocking=True) as stream:
                for _ in range(50):
                    outputs[i] = kernel(*arrays[i])[0]
                stream.synchronize()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for problem, out in zip(host, outputs, strict=True):
        close(out, reference(*problem, scale=128**-0.5, causal=True)[0])


def test_a_prepared_call_in_a_thread_without_a_context(kernel):
    host = operands()
    launch = kernel.prepare(*map(to_gpu, host))
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    close(launch.out, reference(*host, scale=128**-0.5, causal=True)[0])


def test_other_gpus_arrays_by_protocol(kernel):
    """Arrays of an unknown library, with DLPack only."""

    class Foreign:
        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **keys):
            return self._array.__dlpack__(**keys)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    arrays = [to_gpu(x) for x in operands()]
    out, _ = kernel(*map(Foreign, arrays))
    np.testing.assert_array_equal(host_of(out), host_of(kernel(*arrays)[0]))


class TestTorch:
    def tensors(self, torch, host):
        return [torch.from_numpy(x.astype(np.float32)).to("cuda", torch.bfloat16) for x in host]

    def test_tensors_in_tensors_out(self, kernel, torch):
        host = operands()
        out, lse = kernel(*self.tensors(torch, host))
        assert isinstance(out, torch.Tensor)
        assert (out.dtype, lse.dtype) == (torch.bfloat16, torch.float32)
        expected, expected_lse = reference(*host, scale=128**-0.5, causal=True)
        np.testing.assert_allclose(out.float().cpu().numpy(), expected, atol=ATOL)
        np.testing.assert_allclose(lse.cpu().numpy(), expected_lse, atol=2e-3)

    def test_transposed_tensors_are_not_copied(self, kernel, torch):
        host = operands()
        tensors = self.tensors(torch, host)
        out = torch.empty_like(tensors[0])
        seen = [x.transpose(1, 2) for x in (*tensors, out)]
        result, _ = kernel(*seen[:3], out=seen[3], layout="bhsd")
        assert result is seen[3]
        expected = reference(*host, scale=128**-0.5, causal=True)[0]
        np.testing.assert_allclose(out.float().cpu().numpy(), expected, atol=ATOL)

    def test_torchs_stream_is_used(self, kernel, torch):
        launch = kernel.prepare(*self.tensors(torch, operands()))
        launch()
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            launch()
            assert not stream.query()
            assert torch.cuda.default_stream().query()
        stream.synchronize()

    def test_cupys_stream_goes_first(self, kernel, torch):
        import cupy

        tensors = self.tensors(torch, operands())
        launch = kernel.prepare(*tensors)
        launch()
        torch.cuda.synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        blocker = cupy.cuda.alloc(4 << 30)
        with stream:
            for _ in range(20):
                blocker.memset_async(0, 4 << 30, stream)
            launch()
            assert not stream.done
            assert torch.cuda.current_stream().query()
        stream.synchronize()

    def test_torchs_graphs(self, kernel, torch):
        host = operands()
        tensors = self.tensors(torch, host)
        kernel(*tensors)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out, _ = kernel(*tensors)
        out.fill_(float("nan"))
        graph.replay()
        expected = reference(*host, scale=128**-0.5, causal=True)[0]
        np.testing.assert_allclose(out.float().cpu().numpy(), expected, atol=ATOL)

    def test_gradients_are_refused(self, kernel, torch):
        query, key, value = self.tensors(torch, operands())
        query.requires_grad_()
        with pytest.raises(ArgumentError, match="requires_grad"):
            kernel(query, key, value)
        with torch.no_grad():
            kernel(query, key, value)


def test_the_host_is_soon_done(kernel, capsys):
    """Some microseconds a call; the bound leaves room for a slow or busy host."""
    import cupy

    arrays = [to_gpu(x) for x in operands(rows=64, keys=64)]
    out, lse = kernel(*arrays)
    launch = kernel.prepare(*arrays, out=out, lse=lse)
    medians = {}
    for name, run in (
        ("prepared", launch),
        ("outputs given", lambda: kernel(*arrays, out=out, lse=lse)),
        ("outputs made", lambda: kernel(*arrays)),
    ):
        samples = []
        for _ in range(500):
            start = time.perf_counter()
            run()
            samples.append(1e6 * (time.perf_counter() - start))
        cupy.cuda.Device().synchronize()
        medians[name] = statistics.median(samples)
    with capsys.disabled():
        print("\nhost microseconds a call:", {k: round(v, 1) for k, v in medians.items()})
    assert medians["prepared"] < 50
    assert medians["outputs given"] < 100
