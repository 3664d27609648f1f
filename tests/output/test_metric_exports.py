"""The file for node_exporter, and the port for Prometheus."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from metrics_text import read
from session_frames import session

from iopstui.errors import UsageError
from iopstui.features.exports import exports
from iopstui.features.exports.exports import FIRST_LINE, Exports, Textfile, exporting
from iopstui.features.exports.metrics import OPENMETRICS_TYPE, TEXT_TYPE
from iopstui.model.block.target import Target

TARGET = Target("file", "/data/a", "vda", ("vda",))


def export_session(textfile: Path, keep: bool = False) -> list[str]:
    """Export a session to ``textfile``. Return the messages."""
    messages: list[str] = []
    with exporting(str(textfile), None, "host-1", messages.append, keep) as exports:
        sink = exports.sink_of(TARGET, messages.append)
        for event in session("3.42-a-randread-grp"):
            sink(event)
    return messages


def test_the_file_is_removed_at_the_end(tmp_path: Path) -> None:
    assert export_session(tmp_path / "a.prom") == []
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_run_stays_with_up_0(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert export_session(tmp_path / "a.prom", keep=True) == []
    finally:
        os.umask(before)
    (exported_file,) = tmp_path.iterdir()
    assert stat.S_IMODE(exported_file.stat().st_mode) == 0o644
    families = read(exported_file.read_text(), modern=False)
    assert families["iopstui_up"].value() == 0 and families["iopstui_frames_total"].value() == 5


def test_the_file_exists_before_the_first_measurement(tmp_path: Path) -> None:
    with exporting(str(tmp_path / "a.prom"), None, "host-1", print):
        families = read((tmp_path / "a.prom").read_text(), modern=False)
        assert families["iopstui_frames_total"].value() == 0


def test_the_file_is_replaced_atomically(tmp_path: Path) -> None:
    file = Textfile(str(tmp_path / "a.prom"))
    file.write(FIRST_LINE + " old\n")
    with open(tmp_path / "a.prom") as reader:
        file.write(FIRST_LINE + " new\n")
        assert reader.read() == FIRST_LINE + " old\n"
    assert (tmp_path / "a.prom").read_text() == FIRST_LINE + " new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.prom"]
    file.close()


def test_only_a_file_of_iopstui_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text(FIRST_LINE + " x\n")
    export_session(tmp_path / "a.prom", keep=True)
    (tmp_path / "b.prom").write_text("node_x 1\n")
    (tmp_path / "c.prom").symlink_to(tmp_path / "a.prom")
    (tmp_path / "d.prom").mkdir()
    os.mkfifo(tmp_path / "e.prom")
    before = (tmp_path / "a.prom").read_bytes()
    for name in "bcde":
        with pytest.raises(UsageError, match="exists and"):
            export_session(tmp_path / f"{name}.prom")
    assert (tmp_path / "a.prom").read_bytes() == before
    assert (tmp_path / "b.prom").read_text() == "node_x 1\n"


def test_a_symlink_at_the_temporary_path_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    (tmp_path / f".a.prom.{os.getpid()}").symlink_to(victim)
    export_session(tmp_path / "a.prom", keep=True)
    assert victim.read_text() == "whole" and (tmp_path / "a.prom").is_file()


@pytest.mark.parametrize("name", ["a", "a.txt", "", "no/a.prom", "a.prom/b.prom", "nul\0.prom"])
def test_an_unusable_path_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text("")
    with pytest.raises(UsageError) as raised:
        Textfile(f"{tmp_path}/{name}" if name else "")
    assert raised.value.hint


def test_a_write_error_is_reported_once(tmp_path: Path) -> None:
    messages: list[str] = []
    (tmp_path / "gone").mkdir()
    exports = Exports(str(tmp_path / "gone" / "a.prom"), None, "host-1", keep=True)
    sink = exports.sink_of(TARGET, messages.append)
    # like a full disk: no file can be created
    (tmp_path / "gone" / "a.prom").unlink()
    (tmp_path / "gone").rmdir()
    for event in session("3.42-a-randread-grp"):
        sink(event)
    exports.close()
    assert messages == ["cannot write --textfile (No such file or directory); measuring continues"]


@pytest.fixture
def running_exports() -> Iterator[Exports]:
    with exporting(None, 0, "host-1", lambda text: None) as exports:
        sink = exports.sink_of(TARGET, print)
        for event in session("3.42-a-randread-grp"):
            sink(event)
        yield exports


def get(url: str, **headers: str) -> tuple[str, str]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_a_scrape_gets_openmetrics(running_exports: Exports) -> None:
    kind, text = get(running_exports.url)
    assert kind == OPENMETRICS_TYPE
    assert read(text, modern=True)["iopstui_frames"].value("_total") == 5


def test_a_client_of_the_older_format_gets_it(running_exports: Exports) -> None:
    kind, text = get(running_exports.url, Accept="text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    assert kind == TEXT_TYPE
    assert read(text, modern=False)["iopstui_frames_total"].value() == 5
    accept = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5"
    assert get(running_exports.url, Accept=accept)[0] == OPENMETRICS_TYPE


def test_the_port_serves_this_machine_only(running_exports: Exports) -> None:
    for headers, path in (({"Host": "rebound.example"}, "/metrics"), ({}, "/etc/passwd")):
        with pytest.raises(urllib.error.HTTPError) as raised:
            get(running_exports.url.removesuffix("/metrics") + path, **headers)
        assert raised.value.code == (403 if headers else 404)
        raised.value.close()
    port = int(running_exports.url.split(":")[2].split("/")[0])
    with socket.socket() as other_socket:
        # only one address of the loopback network is bound
        other_socket.bind(("127.0.0.2", port))


@pytest.fixture
def slow_client(running_exports: Exports) -> Iterator[threading.Event]:
    """A client that sends a request byte by byte. The event is set when the server hangs up."""
    port = int(running_exports.url.split(":")[2].split("/")[0])
    hung_up, stop = threading.Event(), threading.Event()

    def drip(client: socket.socket) -> None:
        while not stop.wait(0.05):
            try:
                client.sendall(b"a")
            except OSError:
                hung_up.set()
                return

    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        thread = threading.Thread(target=drip, args=(client,))
        thread.start()
        yield hung_up
        stop.set()
        thread.join()


def test_a_slow_client_does_not_block_others_for_long(
    running_exports: Exports, slow_client: threading.Event
) -> None:
    assert get(running_exports.url)[0] == OPENMETRICS_TYPE
    assert slow_client.wait(60)


@pytest.fixture
def long_request_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "REQUEST_TIMEOUT_S", 30.0)


def test_close_does_not_wait_for_clients(
    long_request_timeout: None, running_exports: Exports, slow_client: threading.Event
) -> None:
    began = time.monotonic()
    running_exports.close()
    assert slow_client.wait(10.0) and time.monotonic() - began < 10.0


def test_a_port_in_use_is_an_error() -> None:
    with socket.socket() as listening_socket:
        listening_socket.bind(("127.0.0.1", 0))
        listening_socket.listen()
        port = listening_socket.getsockname()[1]
        with pytest.raises(UsageError, match=f"Cannot listen on port {port}"):
            Exports(None, port, "host-1", keep=False)
