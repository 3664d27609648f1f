"""The file for node_exporter and the port: whole at any time, and nobody else's."""

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
from iopstui.model.block.target import Target
from iopstui.output.export import listener
from iopstui.output.export.exports import Exports, exporting
from iopstui.output.export.exposition import OPENMETRICS_TYPE, TEXT_TYPE
from iopstui.output.export.listener import REQUEST_TIMEOUT_S
from iopstui.output.export.textfile import FIRST_LINE, Textfile

TARGET = Target("file", "/data/a", "vda", ("vda",))


def measured(textfile: Path, keep: bool = False) -> list[str]:
    """A whole session; what was told of the file."""
    told: list[str] = []
    with exporting(str(textfile), None, "host-1", told.append, keep) as exports:
        sink = exports.sink_of(TARGET, told.append)
        for event in session("3.42-a-randread-grp"):
            sink(event)
    return told


def test_the_file_is_gone_in_the_end(tmp_path: Path) -> None:
    assert measured(tmp_path / "a.prom") == []
    assert list(tmp_path.iterdir()) == []


def test_of_a_run_it_stays_and_says_that_it_is_over(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert measured(tmp_path / "a.prom", keep=True) == []
    finally:
        os.umask(before)
    (made,) = tmp_path.iterdir()
    assert stat.S_IMODE(made.stat().st_mode) == 0o644
    found = read(made.read_text(), modern=False)
    assert found["iopstui_up"].value() == 0 and found["iopstui_frames_total"].value() == 5


def test_it_is_there_before_anything_is_measured(tmp_path: Path) -> None:
    with exporting(str(tmp_path / "a.prom"), None, "host-1", print):
        found = read((tmp_path / "a.prom").read_text(), modern=False)
        assert found["iopstui_frames_total"].value() == 0


def test_a_reader_has_the_old_or_the_new_and_never_a_part(tmp_path: Path) -> None:
    file = Textfile(str(tmp_path / "a.prom"))
    file.write(FIRST_LINE + " old\n")
    with open(tmp_path / "a.prom") as reader:
        file.write(FIRST_LINE + " new\n")
        assert reader.read() == FIRST_LINE + " old\n"
    assert (tmp_path / "a.prom").read_text() == FIRST_LINE + " new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.prom"]
    file.close()


def test_another_of_iopstui_s_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text(FIRST_LINE + " x\n")
    measured(tmp_path / "a.prom", keep=True)
    (tmp_path / "b.prom").write_text("node_x 1\n")
    (tmp_path / "c.prom").symlink_to(tmp_path / "a.prom")
    (tmp_path / "d.prom").mkdir()
    os.mkfifo(tmp_path / "e.prom")
    before = (tmp_path / "a.prom").read_bytes()
    for name in "bcde":
        with pytest.raises(UsageError, match="exists and"):
            measured(tmp_path / f"{name}.prom")
    assert (tmp_path / "a.prom").read_bytes() == before
    assert (tmp_path / "b.prom").read_text() == "node_x 1\n"


def test_a_link_that_waits_where_the_new_file_is_made_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    (tmp_path / f".a.prom.{os.getpid()}").symlink_to(victim)
    measured(tmp_path / "a.prom", keep=True)
    assert victim.read_text() == "whole" and (tmp_path / "a.prom").is_file()


@pytest.mark.parametrize("name", ["a", "a.txt", "", "no/a.prom", "a.prom/b.prom", "nul\0.prom"])
def test_a_file_that_nobody_would_read_or_write(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text("")
    with pytest.raises(UsageError) as said:
        Textfile(f"{tmp_path}/{name}" if name else "")
    assert said.value.hint


def test_a_disk_that_becomes_full_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "gone").mkdir()
    exports = Exports(str(tmp_path / "gone" / "a.prom"), None, "host-1", keep=True)
    sink = exports.sink_of(TARGET, told.append)
    # as full as can be: nothing can be made in it
    (tmp_path / "gone" / "a.prom").unlink()
    (tmp_path / "gone").rmdir()
    for event in session("3.42-a-randread-grp"):
        sink(event)
    exports.close()
    assert told == ["cannot write --textfile (No such file or directory); measuring continues"]


@pytest.fixture
def served() -> Iterator[Exports]:
    with exporting(None, 0, "host-1", lambda text: None) as exports:
        sink = exports.sink_of(TARGET, print)
        for event in session("3.42-a-randread-grp"):
            sink(event)
        yield exports


def get(url: str, **headers: str) -> tuple[str, str]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_a_scrape_gets_openmetrics(served: Exports) -> None:
    kind, text = get(served.url)
    assert kind == OPENMETRICS_TYPE
    assert read(text, modern=True)["iopstui_frames"].value("_total") == 5


def test_who_knows_only_the_older_format_gets_that(served: Exports) -> None:
    kind, text = get(served.url, Accept="text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    assert kind == TEXT_TYPE
    assert read(text, modern=False)["iopstui_frames_total"].value() == 5
    both = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5"
    assert get(served.url, Accept=both)[0] == OPENMETRICS_TYPE


def test_only_on_this_machine(served: Exports) -> None:
    for headers, path in (({"Host": "rebound.example"}, "/metrics"), ({}, "/etc/passwd")):
        with pytest.raises(urllib.error.HTTPError) as said:
            get(served.url.removesuffix("/metrics") + path, **headers)
        assert said.value.code == (403 if headers else 404)
        said.value.close()
    port = int(served.url.split(":")[2].split("/")[0])
    with socket.socket() as other:
        # bound to one address of the loopback network: another one is free
        other.bind(("127.0.0.2", port))


@pytest.fixture
def dripping(served: Exports) -> Iterator[threading.Event]:
    """Somebody who sends a byte of a request again and again, until he is hung up on."""
    port = int(served.url.split(":")[2].split("/")[0])
    hung_up, over = threading.Event(), threading.Event()

    def drip(client: socket.socket) -> None:
        while not over.wait(0.05):
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
        over.set()
        thread.join()


def test_who_never_ends_his_request_holds_up_nobody_for_long(
    served: Exports, dripping: threading.Event
) -> None:
    assert get(served.url)[0] == OPENMETRICS_TYPE
    assert dripping.wait(REQUEST_TIMEOUT_S)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "REQUEST_TIMEOUT_S", 30.0)


def test_the_end_waits_for_nobody(
    patient: None, served: Exports, dripping: threading.Event
) -> None:
    began = time.monotonic()
    served.close()
    assert dripping.wait(10.0) and time.monotonic() - began < 10.0


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"Cannot listen on port {port}"):
            Exports(None, port, "host-1", keep=False)
