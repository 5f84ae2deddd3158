"""A vendored library from Python: its structs as in include/<prefix>.h, its functions with types.

The structs are those of ABI version 1, whatever the prefix is.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from fa4gen.designs.common.declared import MOST_TENSORS
from fa4gen.masks import mask_numbers
from fa4gen.scores import score_numbers

if TYPE_CHECKING:
    from pathlib import Path

WORKSPACE_ALIGNMENT: Final = 16

_TYPES: Final[dict[str, Any]] = {
    "size_t": ctypes.c_size_t,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
}
_POINTER = ctypes.c_void_p
_I64 = ctypes.c_int64
_SIZE = ("struct_size", "size_t")
_WORKSPACE = (("workspace", "pointer"), ("workspace_bytes", "size_t"))


def _all(word: str, *names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, word) for name in names)


FIELDS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "tensor": (("data", "pointer"), *_all("int64", "batch_stride", "row_stride", "head_stride")),
    "matrix": (("data", "pointer"), *_all("int64", "batch_stride", "stride")),
    "scales": (("data", "pointer"), *_all("int64", "batch_stride", "stride", "k_stride")),
    "row_numbers": (
        ("data", "pointer"),
        *_all("int64", "batch_stride", "head_stride", "row_stride"),
    ),
    "attention_args": (
        _SIZE,
        *_all("int64", "batch", "query_rows", "key_rows", "query_heads", "key_heads"),
        *_all("tensor", "query", "key", "value", "out"),
        *_all("pointer", "lse", "query_descale", "key_descale", "value_descale"),
        ("softmax_scale", "double"),
        *_WORKSPACE,
        *_all("pointer", "sinks", "query_offsets", "key_offsets", "key_lengths", "page_table"),
        *_all("int64", "page_table_stride", "most_pages", "pages"),
        ("tensors", f"pointer {MOST_TENSORS}"),
    ),
    "gemm_args": (
        _SIZE,
        *_all("int64", "batch", "m", "n", "k"),
        *_all("matrix", "a", "b", "c", "out"),
        *_all("double", "alpha", "beta"),
        *_WORKSPACE,
        *_all("scales", "scale_a", "scale_b"),
        *_all("pointer", "row_offsets", "row_counts", "row_index"),
        *_all("int64", "row_index_stride", "a_rows"),
        *_all("pointer", "out_index", "row_weights"),
        ("out_rows", "int64"),
        ("out_scales", "scales"),
        ("out_amax", "pointer"),
        ("out_tensor_scale", "pointer"),
    ),
    "merge_args": (
        _SIZE,
        *_all("int64", "num_parts", "batch", "rows", "heads"),
        ("parts", "tensor"),
        ("part_stride", "int64"),
        ("part_lse", "row_numbers"),
        ("part_lse_stride", "int64"),
        ("out", "tensor"),
        ("lse", "row_numbers"),
    ),
    "problem": (
        _SIZE,
        *_all("int", "family", "dtype", "out_dtype"),
        *_all("int64", "batch", "query_rows", "key_rows", "query_heads", "key_heads"),
        *_all("int64", "depth", "value_depth"),
        ("mask", "int"),
        *_all("int64", *mask_numbers()),
        *_all("double", *score_numbers()),
        ("lse", "int"),
        *_all("int64", "m", "n", "k"),
        *_all("int", "a_m_major", "b_n_major", "residual"),
        ("activation", "text"),
        ("page_size", "int64"),
        *_all("int", "sinks", "query_offsets", "key_offsets", "key_lengths"),
        *_all("int64", "scale_a_rows", "scale_b_rows"),
        *_all("int", "scales_ue8m0", "gate_interleaved"),
        ("scale_depth", "int64"),
        *_all("int", "scales_in_atoms", "groups", "gathered_rows"),
        ("out_scale_columns", "int64"),
        *_all("int", "c_dtype", "out_scales_ue8m0", "scattered_rows", "amax"),
        ("out_scales_in_atoms", "int"),
    ),
    "prepared": (("words", "uint64 160"),),
}
"""The structs by the names behind the prefix: fields with a type of C in a word, or another struct;
of an array, how many follow."""


def _fields(name: str, **structs: Any) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a struct as ctypes has them."""

    def of(word: str) -> Any:
        kind, _, count = word.partition(" ")
        one = structs.get(kind) or _TYPES[kind]
        return one * int(count) if count else one

    return tuple((field, of(word)) for field, word in FIELDS[name])


class Tensor(ctypes.Structure):
    """``<prefix>_tensor``: strides count elements."""

    _fields_ = _fields("tensor")


class Matrix(ctypes.Structure):
    """``<prefix>_matrix``."""

    _fields_ = _fields("matrix")


class Scales(ctypes.Structure):
    """``<prefix>_scales``."""

    _fields_ = _fields("scales")


class RowNumbers(ctypes.Structure):
    """``<prefix>_row_numbers``."""

    _fields_ = _fields("row_numbers")


class AttentionArgs(ctypes.Structure):
    """``<prefix>_attention_args``."""

    _fields_ = _fields("attention_args", tensor=Tensor)


class GemmArgs(ctypes.Structure):
    """``<prefix>_gemm_args``."""

    _fields_ = _fields("gemm_args", matrix=Matrix, scales=Scales)


class MergeArgs(ctypes.Structure):
    """``<prefix>_merge_args``."""

    _fields_ = _fields("merge_args", tensor=Tensor, row_numbers=RowNumbers)


class Problem(ctypes.Structure):
    """``<prefix>_problem``."""

    _fields_ = _fields("problem")


class Prepared(ctypes.Structure):
    """``<prefix>_prepared``."""

    _fields_ = _fields("prepared")


STRUCTS: Final = {
    "tensor": Tensor,
    "matrix": Matrix,
    "scales": Scales,
    "row_numbers": RowNumbers,
    "attention_args": AttentionArgs,
    "gemm_args": GemmArgs,
    "merge_args": MergeArgs,
    "problem": Problem,
    "prepared": Prepared,
}
"""By the name behind the prefix."""
Args = AttentionArgs | GemmArgs | MergeArgs


class Binding:
    """The functions of a vendored library, by their names without the prefix."""

    def __init__(self, library: Path, prefix: str) -> None:
        """Load ``library``; OSError where it is none, AttributeError where a function is absent."""
        self.path = library
        self.prefix = prefix
        self._library = ctypes.CDLL(str(library))
        size, integer, text = ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p
        self.status_text = self._function("status_text", text, integer)
        self.kernel_count = self._function("kernel_count", integer)
        self.kernel_at = self._function("kernel_at", _POINTER, integer)
        self.kernel_name = self._function("kernel_name", text, _POINTER)
        self.kernel_arch = self._function("kernel_arch", text, _POINTER)
        self.kernel_sha256 = self._function("kernel_sha256", integer, _POINTER, text)
        self.kernel_traits = self._function("kernel_traits", integer, _POINTER, _POINTER)
        self.best = self._function("best", integer, integer, _POINTER, _POINTER)
        self.load = self._function("load", integer, _POINTER)
        self.workspace_bytes = self._function("workspace_bytes", _I64, _POINTER, _POINTER)
        self.workspace_init = self._function("workspace_init", integer, _POINTER, size, _POINTER)
        self.prepare = self._function("prepare", integer, _POINTER, _POINTER, _POINTER)
        self.launch_prepared = self._function("launch_prepared", integer, _POINTER, _POINTER)
        self.prepare_graph = self._function("prepare_graph", integer, _POINTER)
        self.release_graph = self._function("release_graph", integer, _POINTER)

    @property
    def unload(self) -> Any:
        """The function that unloads all kernels; AttributeError in a folder of an older fa4gen."""
        return self._function("unload", ctypes.c_int)

    @property
    def attention(self) -> Any:
        """The family's function; AttributeError where the folder has no attention kernel."""
        return self._function("attention", ctypes.c_int, _POINTER, _POINTER, _POINTER)

    @property
    def gemm(self) -> Any:
        """The family's function; AttributeError where the folder has no matrix product."""
        return self._function("gemm", ctypes.c_int, _POINTER, _POINTER, _POINTER)

    @property
    def merge(self) -> Any:
        """The family's function; AttributeError where the folder has no merging kernel."""
        return self._function("merge", ctypes.c_int, _POINTER, _POINTER, _POINTER)

    def kernel(self, symbol: str) -> KernelBinding:
        """Return the functions of the kernel called ``symbol``, the prefix included."""
        return KernelBinding(self, symbol)

    def words(self, status: int) -> str:
        """Return a status in words, as the library has them."""
        text: bytes = self.status_text(status)
        return text.decode()

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        return self.typed(f"{self.prefix}_{name}", result, *arguments)

    def typed(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return the function of the whole name ``name``."""
        function = getattr(self._library, name)
        function.restype = result
        function.argtypes = arguments
        return function


class KernelBinding:
    """The functions that one kernel has of its own."""

    def __init__(self, library: Binding, symbol: str) -> None:
        self.library = library
        self.symbol = symbol
        self.launch = library.typed(symbol, ctypes.c_int, _POINTER, _POINTER)
        self.workspace_bytes = library.typed(f"{symbol}_workspace_bytes", _I64, _POINTER)
        self.handle: int = library.typed(f"{symbol}_kernel", _POINTER)()

    def sha256(self) -> str:
        """Return the hash of the kernel's machine code as the library computes it."""
        space = ctypes.create_string_buffer(65)
        status = self.library.kernel_sha256(self.handle, space)
        if status:
            raise ValueError(self.library.words(status))
        return space.value.decode()
