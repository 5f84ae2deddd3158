"""The files of a recording: it needs a C compiler, and none of the other projects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_CUTE = Path(__file__).parent / "cute"
_INSTALL = """
import sys, types
from pathlib import Path
for name in ("cutlass", "cutlass.utils"):
    sys.modules[name] = types.ModuleType(name)
import cutlass
cutlass.utils = sys.modules["cutlass.utils"]
import standin
print(standin.install("sm_90a", Path(sys.argv[1])).folder)
"""


@pytest.mark.skipif(shutil.which(os.environ.get("CC", "cc")) is None, reason="needs a C compiler")
def test_the_stand_in_leaves_nothing_among_the_temporary_files(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environ = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(_CUTE)}
    folder = tmp_path / "cute"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _INSTALL, folder],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder)]
    assert [path.name for path in folder.iterdir()] == ["libstandin.so"]
    assert list(temporary.iterdir()) == []
