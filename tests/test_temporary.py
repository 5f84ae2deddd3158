"""A command that is ended while it writes leaves nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_render_that_is_ended_while_writing(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "one.yaml").write_text(CONFIG)
    script = textwrap.dedent(
        f"""
        import os, sys, time
        from pathlib import Path
        from fa4gen.cli.main import main
        write_bytes = Path.write_bytes
        def ended(path, data):
            write_bytes(path, data)
            if path.name.startswith(".one_barriers"):
                os.kill(os.getpid(), {int(ending)})
                time.sleep(60)
        Path.write_bytes = ended
        sys.exit(main(["render", "one.yaml"]))
        """
    )
    process = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert process.returncode == (143 if ending == signal.SIGTERM else 130)
    assert not (tmp_path / "generated").exists()
