"""The attention kernel as a Python function on GPU arrays."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fa4gen.masks.block_lists import list_blocks
from fa4gen.runtime import arrays
from fa4gen.runtime.arguments import (
    DTYPE_NAMES,
    OPTIONAL,
    Arguments,
    CheckedArguments,
    as_scale,
    check_arguments,
    check_layout,
)
from fa4gen.runtime.axes import swap_rows_and_heads, wrong_axes
from fa4gen.runtime.declared_arguments import check_names, list_sizes
from fa4gen.runtime.device import device_info, load_cupy
from fa4gen.runtime.kernel import LAUNCHES_KEPT, Call, Kernel, Launch, Packed, view_optional
from fa4gen.runtime.launch_limits import check_count
from fa4gen.runtime.parameters import ParameterBlock, pack
from fa4gen.runtime.refusal import refusal, refuse
from fa4gen.runtime.schedule import Schedule, given_list_bytes, plan_schedule
from fa4gen.runtime.tensor_map import describe, encode, place_steps, rows_between
from fa4gen.runtime.tile_list import ENTRY_BYTES
from fa4gen.runtime.workspace import check_workspace_size, workspace_values

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.runtime.tensor_view import TensorView

LOG2_E = math.log2(math.e)


class AttentionKernel(Kernel[Arguments]):
    """A compiled attention kernel; call it with arrays, and it writes and returns the output.

    Thread-safe. Modules and tensor maps are made at the first use and kept; keep the object as long
    as a CUDA graph that contains its launches.
    """

    def __init__(self, plan: AttentionPlan, cubin: bytes) -> None:
        """Take the kernel of ``plan``, compiled; no GPU is touched before the first call."""
        super().__init__(plan, cubin)
        self.plan = plan
        self._workspace = lru_cache(maxsize=LAUNCHES_KEPT)(self._workspace_of)
        self._blocks_bytes = lru_cache(maxsize=LAUNCHES_KEPT)(self._blocks_bytes_of)

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
        sinks: Any = None,
        query_offsets: Any = None,
        key_offsets: Any = None,
        key_lengths: Any = None,
        page_table: Any = None,
        workspace: Any = None,
        **tensors: Any,
    ) -> Any:
        """Compute softmax(softmax_scale * query . key^T) . value under the kernel's mask.

        query is (batch, query rows, query heads, depth), key is (batch, key rows, key heads, depth)
        and value (batch, key rows, key heads, value depth), with query heads a multiple of key
        heads (of tile_heads times key heads, where the kernel has tiles of several); with
        ``layout="bhsd"`` rows and heads are swapped. All have the kernel's dtype, key
        and value its kv_dtype (for fp8_e4m3, which CuPy does not know, arrays of uint8 are accepted
        as its bit patterns), and are on one GPU that runs its architecture. Strides are free as
        long as columns are contiguous and the other strides and the addresses are multiples of 16
        bytes; nothing is copied. Accepted are CuPy arrays, torch tensors, and arrays with
        ``__dlpack__`` or ``__cuda_array_interface__``.

        Returns ``out``, of the kernel's out_dtype, in the query's shape with the value's depth; or
        ``(out, lse)`` when the kernel writes the log-sum-exp: float32, contiguous (batch, query
        heads, query rows), natural logarithm. Either is allocated when not given: as torch tensors
        for a torch query, else by CuPy. Rows that see no key give zeros and -inf. ``softmax_scale``
        is depth**-0.5 when not given.

        Kernels for fp8 take ``query_descale``, ``key_descale`` and ``value_descale``, those with
        ``kv_dtype: fp8_e4m3`` the last two: float32, contiguous (batch or sequences, key heads),
        positive and finite, which is not checked. With ``kv_scale: page`` they are (pages, key
        heads), for all pages of the cache; 0 is allowed, for pages of zeros, and those of pages
        that no sequence uses may be anything. The tensors represent their elements times these;
        None means 1.

        Kernels with sinks take ``sinks``: float32, contiguous (query heads). The softmax of each
        row includes the head's sink as a logit without a value; the log-sum-exp includes it, and is
        the sink where a row sees no key. -inf means no sink.

        Kernels with ``batching: ragged`` take the rows of all sequences, one after the other: query
        and out (rows, query heads, depth), lse (query heads, rows); with ``keys: ragged`` also key
        and value. ``query_offsets`` and ``key_offsets``, int32 (sequences + 1), say where each
        sequence begins, and last where all end; they begin at 0 or later and do not decrease, which
        is not checked. They are read on the GPU: a captured graph may be replayed after they have
        changed. Rows outside all sequences are not written.

        ``key_lengths``, int32 (sequences), has the number of valid keys of each sequence, where the
        kernel has ``key_lengths: true`` or paged keys. With ``keys: paged`` key and value are
        (pages, page_size, key heads, depth), and ``page_table``, int32 (sequences, most pages of a
        sequence), has the page of each page_size keys. Entries past a sequence's last key are not
        used; other entries outside the cache, such as -1, stand for zeros. Lengths are 0 or more,
        which is not checked; a length beyond the room for keys counts as all of it.

        Kernels with ``max_logits: true`` take ``max_logits``: float32, contiguous (query heads). A
        call raises each number to the largest logit of the head in the whole batch, and never makes
        one smaller: fill it with -inf before the first of the calls that count together. Logits are
        what the softmax exponentiates: scaled, after softcap and score function, without a sink;
        hidden keys do not count. The order of tiles does not matter: equal calls give equal bits.

        Kernels with ``parameters`` take each by its name: contiguous, float32 or int32, in the
        shape of the config. Numbers of float32 ones are at most 2^20, which is not checked.

        Kernels with ``depth: 576`` take as value the first 512 columns of the key, in its memory:
        ``key[..., :512]``.

        Kernels with ``pack_heads: true`` use a workspace of ``workspace_bytes()`` bytes, which
        calls that may run at the same time must not share. Without ``workspace`` the launcher has
        one for each stream and captured graph. One that is given, a contiguous array of uint8,
        int32 or float32, holds zeros before its first call, which is not checked, and is left as
        later calls need it.

        The kernel is enqueued on CuPy's current stream of that GPU. If that is a default stream and
        the query is a torch tensor, it is enqueued on torch's current stream. The host does not
        wait. After a first call on the GPU, calls can be captured into CUDA graphs.

        Raises ArgumentError, which names the argument, before anything is launched, and
        MissingCapabilityError where there is no GPU.
        """
        descales = (query_descale, key_descale, value_descale)
        tables = (query_offsets, key_offsets, key_lengths, page_table)
        more = dict(zip(OPTIONAL, (*descales, sinks, *tables, workspace), strict=True))
        call = self._take(query, key, value, out, lse, softmax_scale, layout, more, tensors)
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
        sinks: Any = None,
        query_offsets: Any = None,
        key_offsets: Any = None,
        key_lengths: Any = None,
        page_table: Any = None,
        workspace: Any = None,
        **tensors: Any,
    ) -> Launch:
        """Check a call and prepare everything for it, to be launched as often as needed.

        Arguments and errors are those of the call itself.
        """
        descales = (query_descale, key_descale, value_descale)
        tables = (query_offsets, key_offsets, key_lengths, page_table)
        more = dict(zip(OPTIONAL, (*descales, sinks, *tables, workspace), strict=True))
        call = self._take(query, key, value, out, lse, softmax_scale, layout, more, tensors)
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
        more: dict[str, Any],
        tensors: dict[str, Any],
    ) -> Call[Arguments]:
        """View the arrays, and make the outputs that were not given."""
        refuse(check_names(self.plan, tensors))
        check_layout(layout)
        query_view, query = arrays.view("query", query)
        key_view, key = arrays.view("key", key)
        value_view, value = arrays.view("value", value)
        # Outputs are made only for a plausible query; the checks report errors.
        if len(query_view.shape) == 4 - self.plan.is_ragged and query_view.device >= 0:
            if out is None:
                shape = (*query_view.shape[:-1], self.plan.value_depth)
                out = arrays.empty(query, shape, DTYPE_NAMES[self.plan.out_dtype])
            if lse is None and self.plan.lse:
                *batch, rows, heads, _ = query_view.shape
                if layout == "bhsd":
                    rows, heads = heads, rows
                lse = arrays.empty(query, (*batch, heads, rows), "float32")
        out_view, kept_out = view_optional("out", out)
        lse_view, kept_lse = view_optional("lse", lse)
        views = {name: view_optional(name, array) for name, array in more.items()}
        given = {name: view_optional(name, array) for name, array in tensors.items()}
        kept = [array for _, array in (*views.values(), *given.values())]
        scale = self.plan.depth**-0.5 if softmax_scale is None else as_scale(softmax_scale)
        return Call(
            Arguments(
                query_view,
                key_view,
                value_view,
                out_view,
                lse_view,
                scale,
                layout,
                **{name: view for name, (view, _) in views.items()},
                tensors=tuple((name, view) for name, (view, _) in given.items()),
            ),
            out,
            (query, key, value, kept_out, kept_lse, *kept),
            lse,
        )

    def list_blocks(
        self, query: Any, key: Any, *, layout: str = "bshd", **tensors: Any
    ) -> dict[str, Any]:
        """Return the lists that a kernel with ``blocks: listed`` takes, by argument name.

        query and key are those of a call, of which only the shapes count; ``tensors`` are those of
        the config's ``parameters`` that the mask reads, with ``__dlpack__``. The mask is evaluated
        for every row and key by CuPy, on its current stream, and the host waits: keep the result,
        which is right for all calls with these tensors and shapes, also of a captured graph.

        Raises ArgumentError for a kernel that takes no lists, or a tensor that is not given.
        """
        cupy = load_cupy()
        check_layout(layout)
        if not self.plan.lists_blocks:
            raise refusal("blocks", "walked", "a kernel generated with blocks: listed")
        views = [arrays.view(name, one)[0] for name, one in (("query", query), ("key", key))]
        refuse(wrong_axes(self.plan, dict(zip(("query", "key"), views, strict=True)), layout))
        if layout == "bhsd":
            views = [swap_rows_and_heads(view) for view in views]
        read = self.plan.mask.tensors_read
        for name in sorted(read - set(tensors)):
            raise refusal(name, "nothing", "the tensor that the mask reads")
        with cupy.cuda.Device(views[0].device):
            given = {name: cupy.from_dlpack(tensors[name]) for name in read}
            sizes = list_sizes(self.plan, views[0].shape, views[1].shape)
            lists = list_blocks(self.plan.mask, sizes, given, cupy)
            cupy.cuda.get_current_stream().synchronize()
        return lists

    def workspace_bytes(self, device: int | None = None, *, splits: int = 0) -> int:
        """Return the bytes of a workspace on a GPU, the current one if None; 0 for kernels without.

        They do not depend on the problem, unless ``split_keys`` is a number of keys: ``splits``
        is then the most of a call: sequences * key heads * tiles of each * splits of the most keys.
        """
        if not self.plan.splits_keys:
            return 0
        ordinal = load_cupy().cuda.runtime.getDevice() if device is None else device
        return self.plan.workspace_bytes(device_info(ordinal).multiprocessors, splits)

    def _workspace_of(self, arguments: Arguments) -> int:
        checked = check_arguments(self.plan, arguments)
        multiprocessors = device_info(arguments.device).multiprocessors
        schedule = plan_schedule(self.plan, checked.size, multiprocessors)
        return self.plan.workspace_bytes(multiprocessors, schedule.num_tiles)

    def _blocks_bytes_of(self, arguments: Arguments) -> int:
        size = check_arguments(self.plan, arguments).size
        return given_list_bytes(self.plan, size)

    @property
    def _list_words(self) -> str:
        return "partial results" if self.plan.splits_keys else super()._list_words

    @property
    def _first(self) -> str:
        return "query"

    def _check(self, arguments: Arguments) -> object:
        return check_arguments(self.plan, arguments)

    def _list_bytes(self, arguments: Arguments) -> int:
        """Return the bytes of the list of a ragged batch, or of partial results.

        Any number for wrong arguments.
        """
        if self.plan.splits_keys and arguments.workspace is None:
            return self._workspace(arguments)
        if self.plan.takes_blocks:
            return self._blocks_bytes(arguments)
        offsets, shape = arguments.query_offsets, arguments.query.shape
        if self.plan.tile_list is None or offsets is None:
            return 0
        rows = (*shape, 0, 0)[1 if arguments.layout == "bhsd" else 0]
        sequences = max(offsets.shape, default=0)
        return ENTRY_BYTES * (2 + rows // self.plan.tile_list.tile_rows + sequences)

    def _pack(self, arguments: Arguments, counter: int, tile_list: int = 0) -> Packed:
        """Check the arguments and turn them into a launch; the results are kept."""
        checked = check_arguments(self.plan, arguments)
        device = arguments.query.device
        multiprocessors = device_info(device).multiprocessors
        schedule = plan_schedule(self.plan, checked.size, multiprocessors)
        check_count(schedule.largest_count, multiprocessors)
        refuse(
            check_workspace_size(
                self.plan, arguments.workspace, multiprocessors, schedule.num_tiles
            )
        )
        if not schedule.grid:
            return Packed(0, ParameterBlock(()))
        self._enter_context(device)
        values = {**scalar_values(checked, schedule), "tile_counter": counter}
        values["tile_list"] = tile_list
        given = arguments.workspace
        values |= workspace_values(self.plan, tile_list if given is None else given.pointer)
        for tensor_map in self.plan.tensor_maps:
            spec = describe(
                tensor_map,
                checked.tensor(tensor_map.tensor),
                fallback_pointer=checked.query.pointer,
            )
            values[tensor_map.parameter] = encode(spec)
        listing = self.plan.tile_list
        parameters = pack(self.plan.parameters, values)
        if listing is None:
            return Packed(schedule.grid, parameters)
        before = pack(listing.parameters, values)
        return Packed(schedule.grid, parameters, before, listing.grid(schedule.num_tiles))


def scalar_values(checked: CheckedArguments, schedule: Schedule) -> dict[str, bytes | int | float]:
    """Every kernel parameter except the tensor maps and the tile counter, by name."""
    size = checked.size
    out_batch, out_row, out_head, element = checked.out.strides
    query_batch, query_row, query_head, query_element = checked.query.strides
    return {
        "out": checked.out.pointer,
        "lse": _pointer(checked.lse),
        "query": checked.query.pointer,
        **{name: _pointer(view) for name, view in checked.descales.items()},
        "sinks": _pointer(checked.sinks),
        **{f"given_{name}": view.pointer for name, view in checked.given.items()},
        "batch": size.batch,
        "query_heads": size.query_heads,
        "heads_per_key_head": size.heads_per_key_head,
        "key_heads": checked.key.shape[2],
        "query_rows": size.query_rows,
        "key_rows": size.key_rows,
        "query_batch_stride": query_batch // query_element,
        "query_row_stride": query_row // query_element,
        "query_head_stride": query_head // query_element,
        "out_batch_stride": out_batch // element,
        "out_row_stride": out_row // element,
        "out_head_stride": out_head // element,
        "softmax_scale": checked.softmax_scale,
        "softmax_scale_log2": checked.softmax_scale * LOG2_E,
        "num_short_tiles": schedule.num_short_tiles,
        "tiles_per_head": schedule.tiles_per_head,
        "num_tiles": schedule.num_tiles,
        "heads_per_group": schedule.heads_per_group,
        "group_keys": schedule.group_keys,
        "max_tiles": schedule.tiles_per_head,
        **{name: view.pointer for name, view in checked.tables.items()},
        **_page_values(checked),
    }


def _page_values(checked: CheckedArguments) -> dict[str, int]:
    """Return the parameters that place a sequence's keys: rows, table entries, steps of a map."""
    table = checked.tables.get("page_table")
    row_steps, head_steps = place_steps(checked.value)
    return {
        "value_row_steps": row_steps,
        "value_head_steps": head_steps,
        "key_page_rows": rows_between(checked.key),
        "value_page_rows": rows_between(checked.value),
        "page_table_stride": 0 if table is None else table.strides[0] // 4,
        "cache_pages": checked.key.shape[0],
    }


def _pointer(view: TensorView | None) -> int:
    return 0 if view is None else view.pointer
