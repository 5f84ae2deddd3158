"""Names that cannot be a folder's prefix: PREFIX.h or PREFIX.py would shadow another."""

from __future__ import annotations

import keyword
import sys


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


C_HEADERS = _words("""
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
    stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib
    stdnoreturn string tgmath threads time uchar wchar wctype
""")
SYSTEM_HEADERS = _words("""
    aio alloca cpio dirent dl dlfcn elf endian err fcntl fnmatch ftw getopt glob grp iconv
    io langinfo libgen link malloc memory mqueue ndbm netdb nl_types poll process pthread
    pwd regex sched search semaphore spawn strings sysexits syslog tar termios trace
    ucontext ulimit unistd utime utmpx values wordexp windef windows winbase winnt winsock
    winsock2
""")
CUDA_HEADERS = _words("""
    cublas cublas_v2 cublaslt cuda cuda_bf16 cuda_device_runtime_api cuda_fp16 cuda_fp4
    cuda_fp6 cuda_fp8 cuda_runtime cuda_runtime_api cudart cudnn cufft cufile cupti curand
    cusolver cusparse cutensor device_functions driver_types math_constants nccl nvjitlink
    nvml nvrtc nvtx vector_types vector_functions
""")
CPP_WORDS = _words("""
    alignas alignof and_eq auto bitand bitor bool case catch char char16_t char32_t
    char8_t co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit decltype default delete do double dynamic_cast enum explicit export extern
    false float friend goto inline int long mutable namespace new noexcept not_eq nullptr
    operator or_eq private protected public register reinterpret_cast requires restrict
    short signed sizeof static static_assert static_cast std struct switch template this
    thread_local throw true typedef typeid typename typeof union unsigned using virtual
    void volatile wchar_t xor xor_eq
""")
PACKAGES = _words("""
    cupy fa4gen flash_attn jax jaxlib numpy pybind11 torch triton tvm tvm_ffi
""")


def what_has(name: str) -> str | None:
    """Return the use of this name by a header, module or word; None for a free name."""
    if name in C_HEADERS:
        return f"the header {name}.h of C"
    if name in SYSTEM_HEADERS:
        return f"the system's header {name}.h"
    if name in CUDA_HEADERS:
        return f"CUDA's header {name}.h"
    if name in CPP_WORDS or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "a word of C++ or Python"
    if name in sys.stdlib_module_names:
        return "a module of Python"
    if name in PACKAGES:
        return "a Python package that adapters import"
    return None
