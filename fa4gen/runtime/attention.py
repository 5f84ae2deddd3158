"""The attention kernel as a Python function on GPU arrays."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fa4gen.runtime import arrays
from fa4gen.runtime.arguments import (
    DESCALES,
    DTYPE_NAMES,
    Arguments,
    CheckedArguments,
    as_scale,
    check_arguments,
    check_device,
    check_layout,
    check_tiles,
)
from fa4gen.runtime.device import device_info, load_cupy
from fa4gen.runtime.module import LoadedKernel
from fa4gen.runtime.parameters import ParameterBlock, pack
from fa4gen.runtime.schedule import Schedule, plan_schedule
from fa4gen.runtime.tensor_map import describe, encode
from fa4gen.runtime.tile_counter import TileCounters

if TYPE_CHECKING:
    from fa4gen.plan.attention_model import AttentionPlan
    from fa4gen.runtime.arguments import TensorView

LAUNCHES_KEPT = 256
LOG2_E = math.log2(math.e)


class Launch:
    """One prepared call: calling it enqueues the kernel again on the same memory.

    It keeps the arrays alive. ``out`` and ``lse`` are where the results go (``lse`` is None for a
    kernel without). The stream is chosen at each call, as AttentionKernel does.
    """

    def __init__(self, kernel: AttentionKernel, call: _Call) -> None:
        """Remember a call that was checked; made by AttentionKernel.prepare."""
        self.out = call.out
        self.lse = call.lse
        self._kernel = kernel
        self._call = call

    def __call__(self) -> None:
        """Enqueue the kernel."""
        self._kernel._enqueue(self._call)


class AttentionKernel:
    """A compiled attention kernel; call it with arrays, and it writes and returns the output.

    Thread-safe. Modules and tensor maps are made at the first use and kept; keep the object as long
    as a CUDA graph that contains its launches.
    """

    def __init__(self, plan: AttentionPlan, cubin: bytes) -> None:
        """Take the kernel of ``plan``, compiled; no GPU is touched before the first call."""
        self.plan = plan
        self.cubin = cubin
        self._lock = threading.Lock()
        self._devices: dict[int, _OnDevice] = {}
        self._packed = lru_cache(maxsize=LAUNCHES_KEPT)(self._pack)

    def __repr__(self) -> str:
        return f"AttentionKernel({self.plan.name!r}, arch={self.plan.arch!r})"

    def __call__(
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        out: Any = None,
        lse: Any = None,
        softmax_scale: float | None = None,
        layout: str = "bshd",
        query_descale: Any = None,
        key_descale: Any = None,
        value_descale: Any = None,
    ) -> Any:
        """Compute softmax(softmax_scale * query . key^T) . value under the kernel's mask.

        query is (batch, query rows, query heads, depth), key is (batch, key rows, key heads, depth)
        and value (batch, key rows, key heads, value depth), with query heads a multiple of key
        heads; with ``layout="bhsd"`` rows and heads change places. All have the kernel's dtype
        (for fp8_e4m3, which CuPy does not know, arrays of uint8 are taken for its bit patterns) and
        lie on one GPU that runs its architecture. Strides are free as long as columns lie side by
        side and the other strides and the addresses are multiples of 16 bytes; nothing is copied.
        Accepted are CuPy arrays, torch tensors, and arrays with ``__dlpack__`` or
        ``__cuda_array_interface__``.

        Returns ``out``, of the kernel's out_dtype and shaped like the query but for the depth,
        which is the value's; or ``(out, lse)`` when the kernel writes the log-sum-exp: float32,
        contiguous (batch, query heads, query rows), natural logarithm. Either is allocated when not
        given: as torch tensors for a torch query, else by CuPy. Rows that see no key give zeros and
        -inf. ``softmax_scale`` is depth**-0.5 when not given.

        Kernels for fp8 take ``query_descale``, ``key_descale`` and ``value_descale``: float32,
        contiguous (batch, key heads), positive and finite, which is not checked. The tensors stand
        for their elements times these; None stands for 1.

        The kernel is enqueued on CuPy's current stream of that GPU. If that is a default stream and
        the query is a torch tensor, it is enqueued on torch's current stream. The host does not
        wait. After a first call on the GPU, calls can be captured into CUDA graphs.

        Raises ArgumentError, which names the argument, before anything is launched, and
        MissingCapabilityError where there is no GPU.
        """
        descales = (query_descale, key_descale, value_descale)
        call = self._take(query, key, value, out, lse, softmax_scale, layout, descales)
        self._enqueue(call)
        return (call.out, call.lse) if self.plan.lse else call.out

    def prepare(
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        out: Any = None,
        lse: Any = None,
        softmax_scale: float | None = None,
        layout: str = "bshd",
        query_descale: Any = None,
        key_descale: Any = None,
        value_descale: Any = None,
    ) -> Launch:
        """Check a call and make everything for it ready, to be launched as often as wanted.

        Arguments and errors are those of the call itself.
        """
        descales = (query_descale, key_descale, value_descale)
        call = self._take(query, key, value, out, lse, softmax_scale, layout, descales)
        self._enqueue(call, launch=False)
        return Launch(self, call)

    def _take(
        self,
        query: Any,
        key: Any,
        value: Any,
        out: Any,
        lse: Any,
        softmax_scale: float | None,
        layout: str,
        descales: tuple[Any, Any, Any],
    ) -> _Call:
        """Look at the arrays, and make the outputs that were not given."""
        check_layout(layout)
        query_view, query = arrays.view("query", query)
        key_view, key = arrays.view("key", key)
        value_view, value = arrays.view("value", value)
        # Outputs are made only for a query that could be right; the checks say what is wrong.
        if len(query_view.shape) == 4 and query_view.device >= 0:
            if out is None:
                shape = (*query_view.shape[:3], self.plan.value_depth)
                out = arrays.empty(query, shape, DTYPE_NAMES[self.plan.out_dtype])
            if lse is None and self.plan.lse:
                batch, rows, heads, _ = query_view.shape
                if layout == "bhsd":
                    rows, heads = heads, rows
                lse = arrays.empty(query, (batch, heads, rows), "float32")
        out_view, kept_out = _view_optional("out", out)
        lse_view, kept_lse = _view_optional("lse", lse)
        views = [_view_optional(*pair) for pair in zip(DESCALES, descales, strict=True)]
        query_descale, key_descale, value_descale = (view for view, _ in views)
        scale = self.plan.depth**-0.5 if softmax_scale is None else as_scale(softmax_scale)
        return _Call(
            Arguments(
                query_view,
                key_view,
                value_view,
                out_view,
                lse_view,
                scale,
                layout,
                query_descale,
                key_descale,
                value_descale,
            ),
            out,
            lse,
            (query, key, value, kept_out, kept_lse, *(kept for _, kept in views)),
        )

    def _enqueue(self, call: _Call, *, launch: bool = True) -> None:
        arguments = call.arguments
        device = arguments.query.device
        if device < 0:
            check_arguments(self.plan, arguments)  # raises: this is not memory of a GPU
        runtime = load_cupy().cuda.runtime
        previous = runtime.getDevice()
        if previous != device:
            runtime.setDevice(device)
        try:
            on_device = self._devices.get(device)
            if on_device is None:
                check_arguments(self.plan, arguments)
                on_device = self._on_device(device)
            stream = arrays.current_stream(call.arrays[0], device)
            counter = on_device.counters.address(stream) if on_device.counters else 0
            packed = self._packed(arguments, counter)
            if launch and packed.grid:
                on_device.kernel.launch(packed.grid, stream, packed.parameters)
        finally:
            if previous != device:
                runtime.setDevice(previous)

    def _on_device(self, device: int) -> _OnDevice:
        with self._lock:
            if device not in self._devices:
                check_device(self.plan, device_info(device))
                has_counter = any(row.name == "tile_counter" for row in self.plan.parameters)
                self._devices[device] = _OnDevice(
                    LoadedKernel(
                        self.cubin,
                        self.plan.entry_point,
                        device=device,
                        threads=self.plan.launch.threads,
                        dynamic_shared_bytes=self.plan.launch.dynamic_shared_bytes,
                    ),
                    TileCounters() if has_counter else None,
                )
            return self._devices[device]

    def _pack(self, arguments: Arguments, counter: int) -> _Packed:
        """Check the arguments and turn them into a launch; the results are kept."""
        checked = check_arguments(self.plan, arguments)
        device = arguments.query.device
        multiprocessors = device_info(device).multiprocessors
        schedule = plan_schedule(self.plan, checked.size, multiprocessors)
        check_tiles(schedule.num_tiles, multiprocessors)
        if not schedule.grid:
            return _Packed(0, ParameterBlock(()))
        self._devices[device].kernel.enter_context()  # a thread of its own may not have one
        values = {**scalar_values(checked, schedule), "tile_counter": counter}
        for tensor_map in self.plan.tensor_maps:
            spec = describe(
                tensor_map,
                checked.tensor(tensor_map.tensor),
                fallback_pointer=checked.query.pointer,
            )
            values[tensor_map.parameter] = encode(spec)
        return _Packed(schedule.grid, pack(self.plan.parameters, values))


def _view_optional(name: str, array: Any) -> tuple[TensorView | None, Any]:
    return (None, None) if array is None else arrays.view(name, array)


def scalar_values(checked: CheckedArguments, schedule: Schedule) -> dict[str, bytes | int | float]:
    """Every kernel parameter but the tensor maps and the tile counter, by name."""
    size = checked.size
    out_batch, out_row, out_head, element = checked.out.strides
    return {
        "out": checked.out.pointer,
        "lse": _pointer(checked.lse),
        **{name: _pointer(view) for name, view in checked.descales.items()},
        "batch": size.batch,
        "query_heads": size.query_heads,
        "heads_per_key_head": size.heads_per_key_head,
        "query_rows": size.query_rows,
        "key_rows": size.key_rows,
        "out_batch_stride": out_batch // element,
        "out_row_stride": out_row // element,
        "out_head_stride": out_head // element,
        "softmax_scale": checked.softmax_scale,
        "softmax_scale_log2": checked.softmax_scale * LOG2_E,
        "num_short_tiles": schedule.num_short_tiles,
        "tiles_per_head": schedule.tiles_per_head,
        "num_tiles": schedule.num_tiles,
        "heads_per_group": schedule.heads_per_group,
    }


def _pointer(view: TensorView | None) -> int:
    return 0 if view is None else view.pointer


@dataclass(frozen=True)
class _Call:
    """A call with its arrays; ``out`` and ``lse`` as the caller gave them, or new."""

    arguments: Arguments
    out: Any
    lse: Any
    arrays: tuple[Any, ...]
    """Query, key, value, out, lse and the scales: what holds the memory."""


@dataclass(frozen=True)
class _Packed:
    """Arguments that were checked, in the form of a launch; holds addresses, but no memory."""

    grid: int
    parameters: ParameterBlock


@dataclass(frozen=True)
class _OnDevice:
    """What the kernel has on one GPU; counters only where its scheduler is dynamic."""

    kernel: LoadedKernel
    counters: TileCounters | None
