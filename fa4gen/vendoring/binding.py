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

_I64 = ctypes.c_int64
_POINTER = ctypes.c_void_p


class Tensor(ctypes.Structure):
    """``<prefix>_tensor``: strides count elements."""

    _fields_ = (
        ("data", _POINTER),
        ("batch_stride", _I64),
        ("row_stride", _I64),
        ("head_stride", _I64),
    )


class Matrix(ctypes.Structure):
    """``<prefix>_matrix``."""

    _fields_ = (("data", _POINTER), ("batch_stride", _I64), ("stride", _I64))


class AttentionArgs(ctypes.Structure):
    """``<prefix>_attention_args``."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("batch", _I64),
        ("query_rows", _I64),
        ("key_rows", _I64),
        ("query_heads", _I64),
        ("key_heads", _I64),
        ("query", Tensor),
        ("key", Tensor),
        ("value", Tensor),
        ("out", Tensor),
        ("lse", _POINTER),
        ("query_descale", _POINTER),
        ("key_descale", _POINTER),
        ("value_descale", _POINTER),
        ("softmax_scale", ctypes.c_double),
        ("workspace", _POINTER),
        ("workspace_bytes", ctypes.c_size_t),
        ("sinks", _POINTER),
        ("query_offsets", _POINTER),
        ("key_offsets", _POINTER),
        ("key_lengths", _POINTER),
        ("page_table", _POINTER),
        ("page_table_stride", _I64),
        ("most_pages", _I64),
        ("pages", _I64),
        ("tensors", _POINTER * MOST_TENSORS),
    )


class GemmArgs(ctypes.Structure):
    """``<prefix>_gemm_args``."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("batch", _I64),
        ("m", _I64),
        ("n", _I64),
        ("k", _I64),
        ("a", Matrix),
        ("b", Matrix),
        ("c", Matrix),
        ("out", Matrix),
        ("alpha", ctypes.c_double),
        ("beta", ctypes.c_double),
        ("workspace", _POINTER),
        ("workspace_bytes", ctypes.c_size_t),
    )


class Problem(ctypes.Structure):
    """``<prefix>_problem``."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("family", ctypes.c_int),
        ("dtype", ctypes.c_int),
        ("out_dtype", ctypes.c_int),
        ("batch", _I64),
        ("query_rows", _I64),
        ("key_rows", _I64),
        ("query_heads", _I64),
        ("key_heads", _I64),
        ("depth", _I64),
        ("value_depth", _I64),
        ("mask", ctypes.c_int),
        *((name, _I64) for name in mask_numbers()),
        *((name, ctypes.c_double) for name in score_numbers()),
        ("lse", ctypes.c_int),
        ("m", _I64),
        ("n", _I64),
        ("k", _I64),
        ("a_m_major", ctypes.c_int),
        ("b_n_major", ctypes.c_int),
        ("residual", ctypes.c_int),
        ("activation", ctypes.c_char_p),
        ("page_size", _I64),
        ("sinks", ctypes.c_int),
        ("query_offsets", ctypes.c_int),
        ("key_offsets", ctypes.c_int),
        ("key_lengths", ctypes.c_int),
    )


class Prepared(ctypes.Structure):
    """``<prefix>_prepared``."""

    _fields_ = (("words", ctypes.c_uint64 * 160),)


STRUCTS: Final = {
    "tensor": Tensor,
    "matrix": Matrix,
    "attention_args": AttentionArgs,
    "gemm_args": GemmArgs,
    "problem": Problem,
    "prepared": Prepared,
}
"""By the name behind the prefix."""
Args = AttentionArgs | GemmArgs


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
