"""Command lines of `iopstui serve` that are refused, and their messages."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from program import iopstui

from iopstui.errors import Missing
from iopstui.features.serve import command_serve as command

Refused = Callable[[], object]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "What should be served?"), (("run", "."), "cannot show 'run'"),
        (("live",), "needs a target"), (("live", ".", "--plain"), "replace the screen"),
        (("replay", "demo", "--format", "csv"), "replace the screen"),
        (("replay", "nosuch.iops"), "does not exist"), (("replay",), "FILE"),
        (("replay", "lines"), "cannot show the recording of a fleet"),
        (("live", ".", "--port", "80"), "it belongs before live"),
        (("replay", "demo", "--host=0.0.0.0"), "it belongs before replay"),
        (("--port", "65536", "replay", "demo"), "not a port number from 0 to 65535"),
        (("--viewers", "0", "replay", "demo"), "not a number from 1 to 64"),
        (("--viewers-cpu", "9999", "replay", "demo"), "may not use CPU 9999"),
        (("--host", "192.0.2.1", "--port", "0", "replay", "demo"), "Choose an address"),
        (("live", ".", "--nosuch"), "there is no option --nosuch"),
    ],
)  # fmt: skip
def test_wrong_command_lines(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    (tmp_path / "lines").write_text('{"event":"frame"}\n')
    result = iopstui("serve", *args, cwd=tmp_path)
    assert result.returncode == 2 and says in result.stderr and not result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["lines"]


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        result = iopstui("serve", "--port", port, "replay", "demo", cwd=tmp_path)
    assert result.returncode == 2 and "Address already in use" in result.stderr
    assert "--port 8001" in result.stderr


def test_without_the_extra_the_message_explains_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Missing, match="textual-serve") as missing:
        command._require_extra()
    assert missing.value.hint == f"Install it: {sys.executable} -m pip install '{command.EXTRA}'"
    # the same as pyproject.toml's
    project = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    assert f'web = ["{command.EXTRA}"]' in project
