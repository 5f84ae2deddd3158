"""Merging of partial results of attention, as a Python function on GPU arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.runtime import arrays
from fa4gen.runtime.kernel import Call, Kernel, Launch, Packed, view_optional
from fa4gen.runtime.merge_arguments import MERGE_DTYPES, MergeArguments, check_merge_arguments
from fa4gen.runtime.parameters import ParameterBlock, pack

if TYPE_CHECKING:
    from fa4gen.designs.merge.model import MergePlan


class MergeKernel(Kernel[MergeArguments]):
    """A compiled merging kernel; call it with arrays, and it writes and returns the output.

    Thread-safe. Modules are made at the first use and kept; keep the object as long as a CUDA graph
    that contains its launches.
    """

    def __init__(self, plan: MergePlan, cubin: bytes) -> None:
        """Take the kernel of ``plan``, compiled; no GPU is touched before the first call."""
        super().__init__(plan, cubin)
        self.plan = plan

    def __call__(self, parts: Any, part_lse: Any, *, out: Any = None, lse: Any = None) -> Any:
        """Merge attention over parts of the keys into attention over all of them.

        ``parts`` is (parts, batch, rows, heads, depth) of the kernel's dtype, ``part_lse`` float32
        (parts, batch, heads, rows), as attention kernels write them: any number of parts. Ragged
        batches have no axis of batches. Strides are free as long as columns are contiguous, and
        other strides and addresses of ``parts`` and ``out`` are multiples of 16 bytes. A part
        without keys for a row has -inf there, and its output may be anything, NaN included. Rows
        with no other parts give zeros and -inf.

        Returns ``out``, of the kernel's out_dtype, or ``(out, lse)`` where it writes the merged
        log-sum-exp, (batch, heads, rows): either is allocated when not given. ``out`` may be one of
        ``parts``, ``lse`` one of ``part_lse``, and else they overlap nothing. Log-sum-exps of +inf
        give NaN. Sums are float32, in the order of the parts: equal calls give equal bits.

        The kernel is enqueued as an AttentionKernel is, and can be captured after a first call.

        Raises ArgumentError, which names the argument, before anything is launched, and
        MissingCapabilityError where there is no GPU.
        """
        call = self._take(parts, part_lse, out, lse)
        self._enqueue(call)
        return (call.out, call.lse) if self.plan.lse else call.out

    def prepare(self, parts: Any, part_lse: Any, *, out: Any = None, lse: Any = None) -> Launch:
        """Check a call and prepare everything for it, to be launched as often as needed.

        Arguments and errors are those of the call itself.
        """
        call = self._take(parts, part_lse, out, lse)
        self._enqueue(call, launch=False)
        return Launch(self, call)

    def _take(self, parts: Any, part_lse: Any, out: Any, lse: Any) -> Call[MergeArguments]:
        view, parts = arrays.view("parts", parts)
        lse_view, part_lse = arrays.view("part_lse", part_lse)
        if len(view.shape) in (4, 5) and view.device >= 0:
            *lead, rows, heads, depth = view.shape[1:]
            if out is None:
                shape = (*lead, rows, heads, depth)
                out = arrays.empty(parts, shape, MERGE_DTYPES[self.plan.out_dtype])
            if lse is None and self.plan.lse:
                lse = arrays.empty(parts, (*lead, heads, rows), "float32")
        out_view, kept_out = view_optional("out", out)
        own_lse, kept_lse = view_optional("lse", lse)
        arguments = MergeArguments(view, lse_view, out_view, own_lse)
        return Call(arguments, out, (parts, part_lse, kept_out, kept_lse), lse)

    @property
    def _first(self) -> str:
        return "parts"

    def _check(self, arguments: MergeArguments) -> Any:
        return tuple(check_merge_arguments(self.plan, arguments).views)

    def _pack(self, arguments: MergeArguments, counter: int, tile_list: int = 0) -> Packed:
        """Check the arguments and turn them into a launch; the results are kept."""
        del counter, tile_list
        checked = check_merge_arguments(self.plan, arguments)
        if not checked.num_rows:
            return Packed(0, ParameterBlock(()))
        self._enter_context(arguments.device)
        grid = -(-checked.num_rows // self.plan.BM)
        return Packed(grid, pack(self.plan.parameters, checked.values()))
