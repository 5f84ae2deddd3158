"""Files that are kept and executed later are used only where no other user can write them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from fa4gen.cache_folder import is_own, keep_own
from fa4gen.emulator.recorder.build import NoCompilerError, build_driver
from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.standin import build_stand_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not hasattr(os, "getuid"), reason="Windows keeps a user's folder from others"
)


def recorder(cache: Path) -> Path:
    return build_driver(cache) / "libcuda.so"


def stand_in(cache: Path) -> Path:
    return build_stand_in(cache)


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-ins are for Linux")
@pytest.mark.parametrize("build", [recorder, stand_in])
def test_a_library_that_others_can_write_is_compiled_again(
    build: Callable[[Path], Path], tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        library = build(tmp_path)
        assert is_own(library)
        made = library.stat().st_mtime_ns
        assert build(tmp_path).stat().st_mtime_ns == made
        for changed in (library, library.parent):
            changed.chmod(0o777)
            library.write_bytes(b"another's")
            assert build(tmp_path).read_bytes() != b"another's"
            assert is_own(library)
    except (NoCompilerError, MissingCapabilityError) as error:
        pytest.skip(str(error))
    finally:
        os.umask(before)


def test_a_file_is_own_with_its_folder(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "file"
    assert not is_own(path)
    path.touch()
    path.chmod(0o666)
    tmp_path.chmod(0o777)
    assert not is_own(path)
    keep_own(path)
    assert is_own(path)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    assert not is_own(path)
