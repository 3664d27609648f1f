"""An internal error prints one message; its details are in a file."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from iopstui import cli
from iopstui.model.metrics import fields
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Backend


async def test_the_screen_prints_no_traceback() -> None:
    app = IopstuiApp(Backend(lambda path: None, dict, []))  # type: ignore[arg-type, return-value]
    output = io.StringIO()
    app.error_console = Console(file=output, width=400)
    with pytest.raises(ZeroDivisionError):
        async with app.run_test():
            app.call_later(lambda: 1 // 0)
    message = output.getvalue().strip()
    assert message.startswith("iopstui: internal error: ZeroDivisionError")
    assert len(message.splitlines()) == 1
    assert "test_crash" in Path(message.split()[-1]).read_text()


def test_the_command_line_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(width: int) -> str:
        raise ZeroDivisionError("nobody\nexpected this")

    monkeypatch.setattr(fields, "fields_table", broken)
    assert cli.main(["fields"]) == 1
    stderr = capsys.readouterr().err
    assert "ZeroDivisionError: nobody expected this" in stderr
    assert "Traceback" not in stderr
    assert os.path.exists(stderr.split()[-1])
