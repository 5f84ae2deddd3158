"""The matrix product as a Python function on GPU arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.designs.common.shared_memory import align_up
from fa4gen.runtime import arrays
from fa4gen.runtime.device import device_info
from fa4gen.runtime.gemm_arguments import (
    GemmArguments,
    check_gemm_arguments,
    gemm_scalar_values,
    out_shape,
)
from fa4gen.runtime.gemm_axes import GEMM_DTYPES
from fa4gen.runtime.gemm_factors import as_factor
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.group_arguments import atom_groups
from fa4gen.runtime.kernel import Call, Kernel, Launch, Packed, view_optional
from fa4gen.runtime.parameters import ParameterBlock, pack
from fa4gen.runtime.refusal import refusal
from fa4gen.runtime.schedule import INT32_MAX
from fa4gen.runtime.strides import ALIGNMENT
from fa4gen.runtime.tensor_map import describe_axes, encode

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan


OTHERS = (
    "scale_a", "scale_b", "row_offsets", "row_counts", "row_index", "out_index", "row_weights",
    "out_amax", "out_tensor_scale",
)  # fmt: skip
"""Arguments that only some kernels take."""


class GemmKernel(Kernel[GemmArguments]):
    """A compiled matrix product; call it with arrays, and it writes and returns the output.

    Thread-safe. Modules and tensor maps are made at the first use and kept; keep the object as long
    as a CUDA graph that contains its launches.
    """

    def __init__(self, plan: GemmPlan, cubin: bytes) -> None:
        """Take the kernel of ``plan``, compiled; no GPU is touched before the first call."""
        super().__init__(plan, cubin)
        self.plan = plan

    def __call__(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        *,
        scale_a: Any = None,
        scale_b: Any = None,
        row_offsets: Any = None,
        row_counts: Any = None,
        row_index: Any = None,
        out_index: Any = None,
        row_weights: Any = None,
        out_amax: Any = None,
        out_tensor_scale: Any = None,
        out: Any = None,
        out_scales: Any = None,
        alpha: float = 1.0,
        beta: float = 1.0,
    ) -> Any:
        """Compute activation(alpha * a . b + beta * c), or the kernel's part of it.

        ``a`` is (m, k), ``b`` (k, n), both of the kernel's dtype (for fp8_e4m3, which CuPy does not
        know, arrays of uint8 are accepted as its bit patterns); ``c``, of the output's type, is (m,
        n) for ``residual: matrix`` in the config, (n,) for ``row``, and has C's one axis otherwise.
        With a batch in front of ``a``, ``b`` and ``c`` may have one, too, or are the same for all.
        The extent that the config calls ``a_major`` or ``b_major`` is contiguous, the last one in
        ``c`` and ``out``; the other strides and the addresses are multiples of 16 bytes. For
        ``b_major: k`` that is ``weight.T`` of a contiguous (n, k). Nothing is copied. Accepted are
        CuPy arrays, torch tensors, and arrays with ``__dlpack__`` or ``__cuda_array_interface__``.

        With a gated activation the n columns of ``b`` are those of gate and those of up, and the
        output has n / 2: activation(gate, up) of alpha * a . b. A ``c`` of one axis is added
        before, n elements for ``row``; a matrix, of the output's shape, is added after it.

        A kernel with ``scales`` multiplies each block of A and B by ``scale_a`` and ``scale_b``, of
        float32 or, for ue8m0, of bytes: ``scale_a`` is (m, blocks of k), ``scale_b`` (blocks of k,
        n) for 1x128 or (blocks of k, blocks of n) for 128x128, in the axes' order of ``a`` and
        ``b``, with numbers of blocks rounded up, and a batch where they have one.
        ``fa4gen.scales.quantize`` makes both; of a weight (n, k), ``scale_b`` is ``scales.T``.
        Those of mxfp8, mxfp4 and nvfp4 are what ``fa4gen.scales.arrange`` returns for (m, blocks of
        k) and (n, blocks of k); elements of fp4 are uint8, two along k, (m, k / 2) and (k / 2, n).

        A kernel with ``groups`` multiplies rows of ``a`` by the ``b`` of their group: ``b`` is
        (groups, k, n), and a ``c`` of one row (groups, n). With offsets, ``a`` and ``out`` are (m,
        k) and (m, n), and group i has the rows from ``row_offsets[i]`` to ``row_offsets[i + 1]``,
        int32 (groups + 1,) that never decreases; other rows of ``out`` are not written. With masked
        groups, ``a`` and ``out`` have the groups in front, and the first ``row_counts[i]`` rows of
        each are computed, int32 (groups,). Both are read on the GPU: a captured call replays with
        other counts. ``scale_a`` has the rows of ``a``, ``scale_b`` the groups in front.

        With ``groups: k_offsets``, ``a`` is (m, k) and ``b`` (k, n) for all groups, ``out`` and a
        matrix ``c`` are (groups, m, n), and group i sums over k from ``row_offsets[i]`` to
        ``row_offsets[i + 1]``; without any it gives zeros.

        A kernel with ``rows: gathered`` takes ``row_index``, int32 (m,): row i of the product is
        row ``row_index[i]`` of ``a``, which has any number of rows, and of ``scale_a``. Rows may be
        named several times; -1, and any number that is no row of ``a``, stands for a row of zeros.
        With groups, ``a`` is (rows, k) for all of them, and masked groups have an index each.

        A kernel with ``out_rows: scattered`` takes ``out_index``, int32 (m,), and ``row_weights``,
        float32 (m,), and needs an ``out``, with any number of rows: row i of the product, times
        ``row_weights[i]`` before it is rounded, becomes row ``out_index[i]``. -1, and any number
        that is no row of ``out``, is for a row that is not written; others are named once at most.

        Returns ``out``, of the kernel's out_dtype, (m, n) or (batch, m, n); allocated when not
        given, as a torch tensor where ``a`` is one, else by CuPy, with unused elements after each
        row where that is not a multiple of 16 bytes: TMA writes up to the next one, so in an
        ``out`` that is given, the padding is overwritten. ``out`` may be ``c`` itself where that is
        a matrix, but may not overlap anything else. Where beta is 0, c is not read, and
        where alpha is 0, neither a nor b, as in BLAS. alpha and beta are finite, and rounded to
        float32.

        A kernel with ``output_scales`` quantises the float32 result as ``fa4gen.scales.quantize``
        does, and returns ``(out, out_scales)``: elements of fp8_e4m3 and, for each block of a row,
        a scale of float32 or ue8m0 (1x128) or of ue8m0 (mxfp8). These are (m, blocks of n), with a
        batch where ``out`` has one, in any strides, and allocated when not given; with
        ``output_scale_order: arranged`` they are what ``fa4gen.scales.arrange`` makes of them.
        Elements of nvfp4 are two a byte, (m, n / 2), their scales ue4m3, and the call takes
        ``out_tensor_scale``, float32 (1,) above zero: the ``tensor_scale`` of ``quantize``, read on
        the GPU. Like that of an input, it goes into the ``alpha`` of the next product.

        With ``output_scales: amax``, ``out_amax`` is float32 (1,), or (groups,), and raised to the
        largest magnitude of the float32 result, NaN left out: zero it before the call, or keep what
        calls before have found.

        The kernel is enqueued on CuPy's current stream of that GPU. If that is a default stream and
        ``a`` is a torch tensor, it is enqueued on torch's current stream. The host does not wait.
        After a first call on the GPU, calls can be captured into CUDA graphs.

        Raises ArgumentError, which names the argument, before anything is launched, and
        MissingCapabilityError where there is no GPU.
        """
        of_rows = row_offsets, row_counts, row_index, out_index, row_weights
        others = scale_a, scale_b, *of_rows, out_amax, out_tensor_scale
        call = self._take(a, b, c, others, (out, out_scales), alpha, beta)
        self._enqueue(call)
        return call.out if self.plan.output_scales is None else (call.out, call.out_scales)

    def prepare(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        *,
        scale_a: Any = None,
        scale_b: Any = None,
        row_offsets: Any = None,
        row_counts: Any = None,
        row_index: Any = None,
        out_index: Any = None,
        row_weights: Any = None,
        out_amax: Any = None,
        out_tensor_scale: Any = None,
        out: Any = None,
        out_scales: Any = None,
        alpha: float = 1.0,
        beta: float = 1.0,
    ) -> Launch:
        """Check a call and prepare everything for it, to be launched as often as needed.

        Arguments and errors are those of the call itself.
        """
        of_rows = row_offsets, row_counts, row_index, out_index, row_weights
        others = scale_a, scale_b, *of_rows, out_amax, out_tensor_scale
        call = self._take(a, b, c, others, (out, out_scales), alpha, beta)
        self._enqueue(call, launch=False)
        return Launch(self, call)

    def _take(
        self,
        a: Any,
        b: Any,
        c: Any,
        others: tuple[Any, ...],
        outs: tuple[Any, Any],
        alpha: float,
        beta: float,
    ) -> Call[GemmArguments]:
        """View the arrays, and make the output and its scales where they were not given."""
        a_view, a = arrays.view("a", a)
        b_view, b = arrays.view("b", b)
        c_view, kept_c = view_optional("c", c)
        viewed = [view_optional(*each) for each in zip(OTHERS, others, strict=True)]
        out, out_scales = outs
        index, offsets = (viewed[OTHERS.index(name)][0] for name in ("row_index", "row_offsets"))
        shape = out_shape(self.plan, a_view, b_view, index, offsets)
        if out is None and shape is not None:  # else the checks report the error
            out = self._new_out(a, shape)
        if out_scales is None and shape is not None and self.plan.output_scales is not None:
            made = self.plan.output_scales
            places = atom_groups(self.plan, b_view.shape[0])
            n = shape[-1] * self.plan.out_elements_per_byte
            extents = made.extents(shape[-2], n, places)
            made_shape = (*shape[:-2], *(extents[axis] for axis in made.axes[1:]))
            out_scales = arrays.empty(a, made_shape, GEMM_DTYPES[made.dtype])
        out_view, kept_out = view_optional("out", out)
        scales_view, kept_scales = view_optional("out_scales", out_scales)
        factors = as_factor("alpha", alpha), as_factor("beta", beta)
        views, kept = zip(*viewed, strict=True)
        named = dict(zip(OTHERS, views, strict=True))
        arguments = GemmArguments(a_view, b_view, c_view, out_view, *factors, **named)
        arguments = arguments._replace(out_scales=scales_view)
        kept = (a, b, kept_c, kept_out, kept_scales, *kept)
        return Call(arguments, out, kept, out_scales=out_scales)

    def _new_out(self, a: Any, shape: tuple[int, ...]) -> Any:
        """Return a new output with rows a multiple of 16 bytes apart, as TMA requires."""
        columns = shape[-1]
        padded = align_up(columns, ALIGNMENT // self.plan.out_element_bytes)
        out = arrays.empty(a, (*shape[:-1], padded), GEMM_DTYPES[self.plan.out_dtype])
        return out if padded == columns else out[..., :columns]

    @property
    def _first(self) -> str:
        return "a"

    def _check(self, arguments: GemmArguments) -> object:
        return check_gemm_arguments(self.plan, arguments)

    def _pack(self, arguments: GemmArguments, counter: int, tile_list: int = 0) -> Packed:
        """Check the arguments and turn them into a launch; the results are kept."""
        del counter, tile_list  # tiles are not numbered: they follow from the CTA's index
        checked = check_gemm_arguments(self.plan, arguments)
        device = arguments.device
        multiprocessors = device_info(device).multiprocessors
        schedule = plan_gemm_schedule(self.plan, checked.size, multiprocessors)
        limit = INT32_MAX - multiprocessors * 4
        if max(schedule.num_tiles, schedule.grid) > limit:
            raise refusal("a", f"{schedule.num_tiles} tiles", f"at most {limit}")
        if not schedule.grid:
            return Packed(0, ParameterBlock(()))
        self._enter_context(device)
        values = gemm_scalar_values(checked, schedule)
        for tensor_map in self.plan.tensor_maps:
            name = tensor_map.tensor
            spec = describe_axes(
                tensor_map,
                checked.tensor(name),
                checked.axes(name),
                fallback_pointer=checked.out.pointer,
            )
            values[tensor_map.parameter] = encode(spec)
        return Packed(schedule.grid, pack(self.plan.parameters, values))
