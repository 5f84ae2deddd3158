from __future__ import annotations

import pytest

from fa4gen.cli.main import main


@pytest.mark.parametrize(
    "command",
    [
        ["tune", "x", "--problem", "1x1x1", "--budget"],
        ["sweep", "x", "--time-limit"],
    ],
)
@pytest.mark.parametrize("number", ["nan", "-1"])
def test_no_range_has_a_number_that_is_none(command, number, capsys) -> None:
    assert main([*command, number]) == 2
    assert command[-1] in capsys.readouterr().err
