"""Calls the adapter for Python over the stand-in driver: run as a program, with the stand-in's path
and the folder. Prints, as JSON, the traceback of each case by its name, empty where it holds.

A process of its own, in which libcuda.so.1 is the stand-in.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

BF16 = ml_dtypes.bfloat16
FP8 = ml_dtypes.float8_e4m3fn
FIRST_BLOCK = 0x700000000000


class Cases:
    """The cases: each method but those that begin with an underscore."""

    def __init__(self, stand_in_path: Path, folder: Path) -> None:
        from fa4gen.vendoring.binding import Binding
        from fa4gen.vendoring.standin import SimulatedDevice, StandIn
        from tests.vendoring.adapters.folders import FakeArray, import_file

        self.driver = ctypes.CDLL(str(stand_in_path))
        self.driver.more_set_capture.argtypes = (ctypes.c_uint64, ctypes.c_uint64)
        self.stand_in = StandIn(stand_in_path)
        self.device = SimulatedDevice
        self.folder = folder
        self.acme = import_file(folder / "adapters/python/acme.py")
        self.c = Binding(folder / "libacme.so", "acme")
        self.fake = FakeArray

    def _ready(self, current: int = 0) -> None:
        """Device 2 is of another architecture; the library asks each for its own only once."""
        self.stand_in.reset()
        self.stand_in.set_devices(*map(self.device, ("sm_90a", "sm_90a", "sm_100a")))
        self.stand_in.set_current(current)
        self.driver.more_set_capture(0, 0)

    def _array(self, *shape: int, dtype: Any = BF16) -> Any:
        """Like the GPU's, an array whose address is a multiple of 256."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = np.zeros(size + 256, np.uint8)
        start = -raw.ctypes.data % 256
        return self.fake(raw[start : start + size].view(dtype).reshape(shape))

    def _view(self, array: Any, *axes: int) -> Any:
        return self.fake(array.array.transpose(axes))

    def _tensor(self, array: Any, batch: int, row: int, head: int) -> Any:
        from fa4gen.vendoring.binding import Tensor

        strides = [stride // array.array.itemsize for stride in array.array.strides]
        return Tensor(array.array.ctypes.data, strides[batch], strides[row], strides[head])

    def _same_as_c(self, kernel: str, args: Any) -> None:
        """The adapter has launched once: C with these arguments makes the same launch and maps."""
        launches, maps = self.stand_in.launches, self.stand_in.maps
        launch = launches[-1]
        assert maps, kernel
        of_kernel = self.c.kernel(f"acme_{kernel}")
        if of_kernel.workspace_bytes(ctypes.byref(args)):
            args.workspace = FIRST_BLOCK
            memory = [int.from_bytes(p, "little") for p in launch.parameters if len(p) == 8]
            inside = [m for m in memory if FIRST_BLOCK <= m < FIRST_BLOCK + (1 << 30)]
            assert len(inside) == len(launches), memory  # the counter, and the list of tiles
            args.workspace = min(inside)
            args.workspace_bytes = of_kernel.workspace_bytes(ctypes.byref(args))
        status = of_kernel.launch(ctypes.byref(args), launch.stream)
        assert not status, self.c.words(status)
        again = self.stand_in.launches[len(launches) :]
        assert [replace(one, order=0) for one in again] == [
            replace(one, order=0) for one in launches
        ]
        new_maps = self.stand_in.maps[len(maps) :]
        assert [replace(m, order=0, target=0) for m in new_maps] == [
            replace(m, order=0, target=0) for m in maps
        ]

    def best_is_the_kernel_that_c_picks(self) -> None:
        self._ready()
        problem = {
            "family": "attention", "dtype": "bf16", "out_dtype": "bf16", "batch": 2,
            "query_rows": 512, "key_rows": 512, "query_heads": 8, "key_heads": 2,
            "depth": 128, "value_depth": 128, "mask": "causal", "lse": True,
        }  # fmt: skip
        assert self.acme.best(0, **problem) is self.acme.d128_causal_bf16
        product = {
            "family": "gemm", "dtype": "bf16", "out_dtype": "bf16", "batch": 1,
            "m": 300, "n": 200, "k": 100, "b_n_major": False, "residual": "row",
        }  # fmt: skip
        traits = self._traits("gemm_bf16_bias_gelu_sm90")
        product["b_n_major"] = bool(traits.b_n_major)
        product["activation"] = traits.activation.decode()
        assert self.acme.best(1, **product) is self.acme.gemm_bf16_bias_gelu_sm90
        for device, other in ((2, {}), (0, {"mask": "none"}), (0, {"depth": 64})):
            with pytest.raises(ValueError, match="problem: expected a kernel of these traits"):
                self.acme.best(device, **{**problem, **other})

    def best_names_what_is_no_problem(self) -> None:
        self._ready()
        for wrong, said in (
            ({"rows": 3}, "rows is no field"),
            ({"struct_size": 3}, "struct_size is no field"),
            ({"family": "attention", "mask": "casual"}, "mask: expected one of"),
            ({"family": "attention", "query_rows": -1}, "problem: expected extents from 0"),
            ({}, "problem: expected family"),
        ):
            with pytest.raises(ValueError, match=said):
                self.acme.best(**wrong)

    def _traits(self, kernel: str) -> Any:
        from fa4gen.vendoring.binding import Problem

        traits = Problem(struct_size=ctypes.sizeof(Problem))
        handle = self.c.kernel(f"acme_{kernel}").handle
        assert self.c.kernel_traits(handle, ctypes.byref(traits)) == 0
        return traits

    def attention_makes_the_launch_of_c(self) -> None:
        from fa4gen.vendoring.binding import AttentionArgs

        for layout in ("bshd", "bhsd"):
            self._ready()
            row, head = (1, 2) if layout == "bshd" else (2, 1)

            def shaped(rows: int, heads: int, layout: str = layout) -> Any:
                return (2, rows, heads, 128) if layout == "bshd" else (2, heads, rows, 128)

            query, out = self._array(*shaped(300, 8)), self._array(*shaped(300, 8))
            key, value = self._array(*shaped(420, 2)), self._array(*shaped(420, 2))
            lse = self._array(2, 8, 300, dtype=np.float32)
            result = self.acme.d128_causal_bf16(
                query, key, value, out=out, lse=lse, softmax_scale=0.3, layout=layout, stream=77
            )
            assert result == (out, lse)
            assert self.stand_in.launches[0].stream == 77
            args = AttentionArgs(
                struct_size=ctypes.sizeof(AttentionArgs),
                batch=2, query_rows=300, key_rows=420, query_heads=8, key_heads=2,
                query=self._tensor(query, 0, row, head),
                key=self._tensor(key, 0, row, head),
                value=self._tensor(value, 0, row, head),
                out=self._tensor(out, 0, row, head),
                lse=lse.array.ctypes.data,
                softmax_scale=0.3,
            )  # fmt: skip
            self._same_as_c("d128_causal_bf16", args)

    def ragged_batches_make_the_launches_of_c(self) -> None:
        from fa4gen.vendoring.binding import AttentionArgs, Tensor

        for layout in ("bshd", "bhsd"):
            self._ready()
            row, head = (0, 1) if layout == "bshd" else (1, 0)

            def shaped(rows: int, heads: int, layout: str = layout) -> Any:
                return (rows, heads, 128) if layout == "bshd" else (heads, rows, 128)

            query, out = self._array(*shaped(300, 8)), self._array(*shaped(300, 8))
            key, value = self._array(*shaped(420, 2)), self._array(*shaped(420, 2))
            lse = self._array(8, 300, dtype=np.float32)
            offsets = [self._array(8, dtype=np.int32) for _ in range(2)]
            self.acme.d128_ragged_causal_bf16(
                query, key, value, out=out, lse=lse, layout=layout, stream=77,
                query_offsets=offsets[0], key_offsets=offsets[1],
            )  # fmt: skip
            assert [one.stream for one in self.stand_in.launches] == [77, 77]

            def tensor(array: Any, row: int = row, head: int = head) -> Tensor:
                strides = [stride // array.array.itemsize for stride in array.array.strides]
                return Tensor(array.array.ctypes.data, 0, strides[row], strides[head])

            args = AttentionArgs(
                struct_size=ctypes.sizeof(AttentionArgs),
                batch=7, query_rows=300, key_rows=420, query_heads=8, key_heads=2,
                query=tensor(query), key=tensor(key), value=tensor(value), out=tensor(out),
                lse=lse.array.ctypes.data,
                query_offsets=offsets[0].array.ctypes.data,
                key_offsets=offsets[1].array.ctypes.data,
            )  # fmt: skip
            self._same_as_c("d128_ragged_causal_bf16", args)

    def a_larger_ragged_batch_has_a_larger_list(self) -> None:
        self._ready()
        lists = set()
        for rows in (300, 300, 30_000):
            query, out = (self._array(rows, 1, 128) for _ in range(2))
            key = self._array(420, 1, 128)
            lse = self._array(1, rows, dtype=np.float32)
            offsets = self._array(8, dtype=np.int32)
            self.acme.d128_ragged_causal_bf16(
                query, key, key, out=out, lse=lse, stream=77,
                query_offsets=offsets, key_offsets=offsets,
            )  # fmt: skip
            lists.add(self.stand_in.launches[-2].parameters[2])
        assert len(lists) == 2

    def partial_results_have_a_workspace(self) -> None:
        """Even shares need one size, splits one that grows with the problem."""
        from fa4gen.config.find import find_configs
        from fa4gen.config.load import load_config
        from fa4gen.designs.build import build_plan

        self._ready()
        places: dict[str, set[bytes]] = {
            "decode_d128_bf16": set(),
            "decode_d128_splits_bf16": set(),
        }
        for keys in (500, 500, 90_000):
            for name, found in places.items():
                query, out = self._array(1, 1, 8, 128), self._array(1, 1, 8, 128)
                key = self._array(1, keys, 2, 128)
                lse = self._array(1, 8, 1, dtype=np.float32)
                lengths = self._array(1, dtype=np.int32)
                more = {"key_lengths": lengths} if "splits" in name else {}
                getattr(self.acme, name)(query, key, key, out=out, lse=lse, stream=33, **more)
                (launch,) = self.stand_in.launches[-1:]
                (config,) = find_configs((name,))
                plan = build_plan(load_config(config).config)
                parameters = [row.name for row in plan.parameters]
                found.add(launch.parameters[parameters.index("partials")])
        assert [len(found) for found in places.values()] == [1, 2]

    def pages_and_sinks_are_passed(self) -> None:
        from fa4gen.vendoring.binding import AttentionArgs, Tensor

        self._ready()
        name = "d64_paged64_window_sinks_bf16"
        query, out = self._array(30, 8, 64), self._array(30, 8, 64)
        offsets = self._array(4, dtype=np.int32)
        key, value = self._array(11, 64, 2, 64), self._array(11, 64, 2, 64)
        lse = self._array(8, 30, dtype=np.float32)
        sinks = self._array(8, dtype=np.float32)
        lengths = self._array(3, dtype=np.int32)
        table = self.fake(self._array(3, 9, dtype=np.int32).array[:, :5])
        has_lse = bool(self._traits(name).lse)
        getattr(self.acme, name)(
            query, key, value, out=out, **({"lse": lse} if has_lse else {}), stream=9,
            sinks=sinks, query_offsets=offsets, key_lengths=lengths, page_table=table,
        )  # fmt: skip
        args = AttentionArgs(
            struct_size=ctypes.sizeof(AttentionArgs),
            batch=3, query_rows=30, key_rows=64, query_heads=8, key_heads=2,
            query=Tensor(query.array.ctypes.data, 0, 8 * 64, 64),
            key=self._tensor(key, 0, 1, 2),
            value=self._tensor(value, 0, 1, 2),
            out=Tensor(out.array.ctypes.data, 0, 8 * 64, 64),
            lse=lse.array.ctypes.data if has_lse else None,
            sinks=sinks.array.ctypes.data,
            query_offsets=offsets.array.ctypes.data,
            key_lengths=lengths.array.ctypes.data,
            page_table=table.array.ctypes.data,
            page_table_stride=9, most_pages=5, pages=11,
        )  # fmt: skip
        self._same_as_c(name, args)

    def scales_of_pages_are_passed(self) -> None:
        from fa4gen.config.find import find_configs
        from fa4gen.config.load import load_config
        from fa4gen.designs.build import build_plan

        self._ready()
        name = "decode_d128_paged64_kv_fp8_page_bf16"
        query, out = self._array(3, 1, 8, 128), self._array(3, 1, 8, 128)
        key, value = (self._array(11, 64, 2, 128, dtype=np.uint8) for _ in "kv")
        lse = self._array(3, 8, 1, dtype=np.float32)
        scales = {
            f"{word}_descale": self._array(11, 2, dtype=np.float32) for word in ("key", "value")
        }
        tables = {
            "key_lengths": self._array(3, dtype=np.int32),
            "page_table": self._array(3, 5, dtype=np.int32),
        }
        launch = getattr(self.acme, name)
        launch(query, key, value, out=out, lse=lse, stream=9, **scales, **tables)
        (config,) = find_configs((name,))
        parameters = [row.name for row in build_plan(load_config(config).config).parameters]
        made = self.stand_in.launches[-1].parameters
        for word, array in {**scales, **tables}.items():
            passed = int.from_bytes(made[parameters.index(word)], "little")
            assert passed == array.array.ctypes.data, word
        assert int.from_bytes(made[parameters.index("key_page_rows")], "little") == 64
        for word, wrong, message in (
            ("key_descale", self._array(3, 2, dtype=np.float32), r"shape \(11, 2\), got \(3, 2\)"),
            ("value_descale", self._array(11, 2), "float32, got bfloat16"),
        ):
            with pytest.raises(ValueError, match=f"^{word}: expected {message}"):
                launch(query, key, value, out=out, lse=lse, **{**scales, word: wrong}, **tables)
        with pytest.raises(ValueError, match=r"^key: expected float8_e4m3fn, got bfloat16"):
            launch(query, query, value, out=out, lse=lse, **scales, **tables)

    def a_tensor_that_the_score_reads_is_passed(self) -> None:
        from fa4gen.vendoring.binding import AttentionArgs

        self._ready()
        query, out = self._array(2, 30, 8, 128), self._array(2, 30, 8, 128)
        key, value = self._array(2, 70, 2, 128), self._array(2, 70, 2, 128)
        lse = self._array(2, 8, 30, dtype=np.float32)
        slope = self._array(8, dtype=np.float32)
        launch = self.acme.d128_alibi_causal_bf16
        launch(query, key, value, out=out, lse=lse, slope=slope, stream=9)
        args = AttentionArgs(
            struct_size=ctypes.sizeof(AttentionArgs),
            batch=2, query_rows=30, key_rows=70, query_heads=8, key_heads=2,
            query=self._tensor(query, 0, 1, 2),
            key=self._tensor(key, 0, 1, 2),
            value=self._tensor(value, 0, 1, 2),
            out=self._tensor(out, 0, 1, 2),
            lse=lse.array.ctypes.data,
            tensors=(ctypes.c_void_p * 8)(slope.array.ctypes.data),
        )  # fmt: skip
        self._same_as_c("d128_alibi_causal_bf16", args)
        short, words = self._array(7, dtype=np.float32), self._array(8, dtype=np.int32)
        with pytest.raises(ValueError, match=r"^slope: expected shape \(8\), got \(7,\)"):
            launch(query, key, value, out=out, lse=lse, slope=short, stream=9)
        with pytest.raises(ValueError, match=r"^slope: expected float32, got int32"):
            launch(query, key, value, out=out, lse=lse, slope=words, stream=9)

    def wrong_tables_are_named(self) -> None:
        self._ready()
        query, key = self._array(30, 8, 64), self._array(11, 64, 2, 64)
        good = {
            "out": self._array(30, 8, 64),
            "lse": self._array(8, 30, dtype=np.float32),
            "query_offsets": self._array(4, dtype=np.int32),
            "sinks": self._array(8, dtype=np.float32),
            "key_lengths": self._array(3, dtype=np.int32),
            "page_table": self._array(3, 5, dtype=np.int32),
        }
        name = "d64_paged64_window_sinks_bf16"
        if not self._traits(name).lse:
            del good["lse"]
        function = getattr(self.acme, name)
        for argument, wrong in (
            ("sinks", None),
            ("query_offsets", None),
            ("query_offsets", self._array(0, dtype=np.int32)),
            ("sinks", self._array(7, dtype=np.float32)),
            ("key_lengths", self._array(2, dtype=np.int32)),
            ("key_lengths", self._array(3, dtype=np.float32)),
            ("page_table", self._array(4, 5, dtype=np.int32)),
            ("page_table", self._array(15, dtype=np.int32)),
        ):
            with pytest.raises(ValueError, match=f"^{argument}: expected"):
                function(query, key, key, stream=9, **{**good, argument: wrong})
        short = self._array(11, 63, 2, 64)
        with pytest.raises(ValueError, match=r"^key: expected shape \(pages, 64, "):
            function(query, short, short, stream=9, **good)
        assert not self.stand_in.launches

    def scales_of_fp8_are_passed(self) -> None:
        from fa4gen.vendoring.binding import AttentionArgs

        self._ready(current=2)
        query, key, value = (self._array(1, 300, 2, 512, dtype=FP8) for _ in range(3))
        out = self._array(1, 300, 2, 512)
        lse = self._array(1, 2, 300, dtype=np.float32)
        scales = [self._array(1, 2, dtype=np.float32) for _ in range(3)]
        for array in (query, key, value, out, lse, *scales):
            array.device.id = 2
        self.acme.depth512_dense_fp8(
            query, key, value, out=out, lse=lse, stream=9,
            query_descale=scales[0], value_descale=scales[2],
        )  # fmt: skip
        args = AttentionArgs(
            struct_size=ctypes.sizeof(AttentionArgs),
            batch=1, query_rows=300, key_rows=300, query_heads=2, key_heads=2,
            query=self._tensor(query, 0, 1, 2),
            key=self._tensor(key, 0, 1, 2),
            value=self._tensor(value, 0, 1, 2),
            out=self._tensor(out, 0, 1, 2),
            lse=lse.array.ctypes.data,
            query_descale=scales[0].array.ctypes.data,
            value_descale=scales[2].array.ctypes.data,
        )  # fmt: skip
        self._same_as_c("depth512_dense_fp8", args)

    def products_make_the_launches_of_c(self) -> None:
        from fa4gen.vendoring.binding import GemmArgs, Matrix

        for batch in ((), (3,)):
            self._ready()
            a, weight = self._array(*batch, 200, 72), self._array(136, 72)
            b, c, out = (
                self._view(weight, 1, 0),
                self._array(200, 136),
                self._array(*batch, 200, 136),
            )
            self.acme.gemm_bf16_residual_sm90(a, b, c, out=out, alpha=0.7, beta=-2, stream=5)
            of_one = 1 if batch else 0
            args = GemmArgs(
                struct_size=ctypes.sizeof(GemmArgs),
                batch=3 if batch else 1, m=200, n=136, k=72,
                a=Matrix(a.array.ctypes.data, of_one * 200 * 72, 72),
                b=Matrix(b.array.ctypes.data, 0, 72),
                c=Matrix(c.array.ctypes.data, 0, 136),
                out=Matrix(out.array.ctypes.data, of_one * 200 * 136, 136),
                alpha=0.7, beta=-2,
            )  # fmt: skip
            self._same_as_c("gemm_bf16_residual_sm90", args)

    def the_other_majors_make_the_launch_of_c(self) -> None:
        from fa4gen.vendoring.binding import GemmArgs, Matrix

        self._ready()
        a, b = self._view(self._array(72, 200), 1, 0), self._array(72, 136)
        c = self._array(200, 136, dtype=np.float32)
        self.acme.gemm_bf16_mn_major_sm90(a, b, c, out=c, stream=5)
        args = GemmArgs(
            struct_size=ctypes.sizeof(GemmArgs),
            batch=1, m=200, n=136, k=72,
            a=Matrix(a.array.ctypes.data, 0, 200),
            b=Matrix(b.array.ctypes.data, 0, 136),
            c=Matrix(c.array.ctypes.data, 0, 136),
            out=Matrix(c.array.ctypes.data, 0, 136),
            alpha=1, beta=1,
        )  # fmt: skip
        self._same_as_c("gemm_bf16_mn_major_sm90", args)

    def a_row_for_each_of_a_batch(self) -> None:
        self._a_bias_for_each_of_a_batch("gemm_bf16_bias_gelu_sm90", 136)

    def a_column_for_each_of_a_batch(self) -> None:
        self._a_bias_for_each_of_a_batch("gemm_bf16_column_bias_sm90", 200)

    def _a_bias_for_each_of_a_batch(self, kernel: str, elements: int) -> None:
        from fa4gen.vendoring.binding import GemmArgs, Matrix

        self._ready()
        a, weight = self._array(3, 200, 72), self._array(3, 136, 72)
        bias, out = self._array(3, elements), self._array(3, 200, 136)
        run = getattr(self.acme, kernel)
        run(a, self._view(weight, 0, 2, 1), bias, out=out, stream=5)
        args = GemmArgs(
            struct_size=ctypes.sizeof(GemmArgs),
            batch=3, m=200, n=136, k=72,
            a=Matrix(a.array.ctypes.data, 200 * 72, 72),
            b=Matrix(weight.array.ctypes.data, 136 * 72, 72),
            c=Matrix(bias.array.ctypes.data, elements, 0),
            out=Matrix(out.array.ctypes.data, 200 * 136, 136),
            alpha=1, beta=1,
        )  # fmt: skip
        self._same_as_c(kernel, args)

    def _counter(self, stream: int) -> int:
        """The workspace that a launch on the stream gets."""
        query, out = self._array(1, 300, 2, 128), self._array(1, 300, 2, 128)
        lse = self._array(1, 2, 300, dtype=np.float32)
        self.acme.d128_causal_bf16(query, query, query, out=out, lse=lse, stream=stream)
        launch = self.stand_in.launches[-1]
        memory = [int.from_bytes(p, "little") for p in launch.parameters if len(p) == 8]
        (inside,) = [m for m in memory if FIRST_BLOCK <= m < FIRST_BLOCK + (1 << 30)]
        return inside

    def what_was_prepared_is_launched_again(self) -> None:
        self._ready()
        query, out = self._array(1, 300, 2, 128), self._array(1, 300, 2, 128)
        lse = self._array(1, 2, 300, dtype=np.float32)

        def launch(stream: int, scale: float) -> int:
            self.acme.d128_causal_bf16(
                query, query, query, out=out, lse=lse, softmax_scale=scale, stream=stream
            )
            return len(self.stand_in.maps)

        of_one = launch(0x90, 0.25)
        assert launch(0x90, 0.25) == of_one
        assert launch(0xA0, 0.25) == 2 * of_one  # its workspace is another
        assert launch(0x90, 0.5) == 3 * of_one
        first, second, third, fourth = self.stand_in.launches
        assert replace(first, order=0) == replace(second, order=0)
        assert third.stream == 0xA0
        assert len({first.parameters, third.parameters, fourth.parameters}) == 3

    def each_stream_has_a_workspace(self) -> None:
        self._ready()
        first, other, legacy = self._counter(0x40), self._counter(0x50), self._counter(0)
        assert len({first, other, legacy}) == 3
        zeroed = self.stand_in.memsets
        assert self._counter(0x40) == first
        assert self._counter(1) == legacy
        assert self.stand_in.memsets == zeroed
        assert all(memset.value == 0 for memset in zeroed)

    def workspaces_are_zeroed_before_they_are_used(self) -> None:
        self._ready()
        fresh = type(self.acme._resources)()
        before, self.acme._resources = self.acme._resources, fresh
        try:
            address = self._counter(0x60)
        finally:
            self.acme._resources = before
        (memset,) = self.stand_in.memsets
        assert memset.pointer <= address < memset.pointer + memset.num_bytes
        assert address % 16 == 0
        assert memset.order < self.stand_in.launches[0].order

    def each_graph_has_a_workspace(self) -> None:
        self._ready()
        eager = self._counter(0x70)
        self.driver.more_set_capture(0x70, 1)
        captured = self._counter(0x70)
        assert self._counter(0x70) == captured
        self.driver.more_set_capture(0x70, 2)
        assert self._counter(0x70) not in (eager, captured)
        self.driver.more_set_capture(0, 0)
        assert self._counter(0x70) == eager

    def the_first_launch_may_be_captured(self) -> None:
        self._ready()
        before, self.acme._resources = self.acme._resources, type(self.acme._resources)()
        try:
            self.driver.more_set_capture(0x70, 5)
            self._counter(0x70)
        finally:
            self.acme._resources = before
        assert self.driver.more_mode() == 0

    def a_thread_without_a_context_gets_one(self) -> None:
        self._ready()
        found: list[Any] = []

        def work() -> None:
            self.stand_in.set_current(None, only_this_thread=True)
            found.append(self._counter(0x80))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert len(found) == 1
        assert self.driver.more_depth() == 0

    def the_device_is_that_of_the_arrays(self) -> None:
        self._ready()
        a, weight, out = self._array(64, 64), self._array(64, 64), self._array(64, 64)
        b, c = self._view(weight, 1, 0), self._array(64, 64)
        for array in (a, b, c, out):
            array.device.id = 1
        self.acme.gemm_bf16_residual_sm90(a, b, c, out=out, stream=5)
        assert [launch.device for launch in self.stand_in.launches] == [1]
        assert self.driver.more_depth() == 0

    def threads_share_nothing_but_the_kernels(self) -> None:
        self._ready()
        found: dict[int, set[int]] = {}
        fake, counter = self._array, self.acme._resources.workspace

        def work(stream: int) -> None:
            a, weight, out = fake(64, 64), fake(64, 64), fake(64, 64)
            c = fake(64, 64)
            for _ in range(50):
                self.acme.gemm_bf16_residual_sm90(
                    a, self._view(weight, 1, 0), c, out=out, stream=stream
                )
                found.setdefault(stream, set()).add(counter(0, stream, 8))

        threads = [threading.Thread(target=work, args=(0x1000 + 16 * i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(self.stand_in.launches) == 400
        assert all(len(addresses) == 1 for addresses in found.values())
        assert len(set().union(*found.values())) == 8

    def what_c_refuses_is_a_value_error(self) -> None:
        self._ready()
        a, weight, c = self._array(64, 64), self._array(64, 64), self._array(64, 64)
        b = self._view(weight, 1, 0)
        odd = self.fake(self._array(65, 64).array.reshape(-1)[4 : 4 + 64 * 64].reshape(64, 64))
        wide = self.fake(self._array(64, 68).array[:, :64])
        for arrays, words in (
            ({"a": odd}, "a: "),
            ({"a": wide}, "a: "),
            ({"out": a}, "out: "),
            ({"alpha": float("inf")}, "alpha: "),
        ):
            given = {"a": a, "b": b, "c": c, "out": self._array(64, 64), "stream": 5, **arrays}
            with pytest.raises(ValueError, match=f"^{words}"):
                self.acme.gemm_bf16_residual_sm90(**given)
        assert not self.stand_in.launches

    def another_architecture_is_refused(self) -> None:
        self._ready()
        a, c = self._array(64, 64), self._array(64, 64)
        b = self._view(a, 1, 0)
        for array in (a, b, c):
            array.device.id = 2
        with pytest.raises(ValueError, match=r"^device: expected"):
            self.acme.gemm_bf16_residual_sm90(a, b, c, out=c, stream=5)

    def errors_of_the_driver_are_runtime_errors(self) -> None:
        self._ready()
        a, c = self._array(64, 64), self._array(64, 64)
        b = self._view(self._array(64, 64), 1, 0)
        self.acme.gemm_bf16_residual_sm90(a, b, c, out=c, stream=5)
        self.stand_in.fail("cuLaunchKernelEx", 719)
        with pytest.raises(RuntimeError):
            self.acme.gemm_bf16_residual_sm90(a, b, c, out=c, stream=5)


def run(case: Callable[[], None]) -> str:
    try:
        case()
    except BaseException:  # pytest says in one of these that nothing was raised
        return traceback.format_exc()
    return ""


def main(stand_in: str, folder: str, tests: str) -> None:
    from types import ModuleType

    package = sys.modules.setdefault("tests", ModuleType("tests"))
    package.__path__ = [tests]
    cases = Cases(Path(stand_in), Path(folder))
    names = [name for name in vars(Cases) if not name.startswith("_")]
    print(json.dumps({name: run(getattr(cases, name)) for name in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
