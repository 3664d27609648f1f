"""Hostile files of all kinds for everything that reads or writes files. No output has a misleading
character, and an output file is complete or missing."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from iopstui.errors import IopstuiError
from iopstui.features.fleet.program.merge_rows import merge_files
from iopstui.features.reports.files import report
from iopstui.features.selftest.evidence import selftest_text
from iopstui.features.selftest.judge import judge_bundle
from iopstui.output.replay import replay_headless
from iopstui.recording import layout as form

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDING = (FIXTURES / "recordings" / "second-demo.iops").read_bytes()
RESULT = (FIXTURES / "fiologs" / "clients.json").read_bytes()
LOG = (FIXTURES / "fiologs" / "raw_clat.1.log").read_bytes()
BUNDLE = gzip.decompress((FIXTURES / "selftest" / "virtio-1-queue.gz").read_bytes())
SETTINGS = settings(
    max_examples=5, deadline=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
# control characters except tab and line end, half surrogate pairs, bidirectional marks
MISLEADING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
TEXTS = st.sampled_from(
    ["\x1b]0;x\x07", "\x1b[2J", "\u202egnp.exe", "\ud800", "\udc80x", "\x9b31m", "a\rb", "\u2028",
     "\x00", "=cmd|' /c x'!A0", "\u2066", "</script>", "|`<b>", "\x7f", "x" * 300, ""]
)  # fmt: skip
Change = Callable[[str], str]


def changed_texts(value: Any, draw: Change) -> Any:
    """A JSON value in which ``draw`` has changed some texts."""
    if isinstance(value, str):
        return draw(value)
    if isinstance(value, list):
        return [changed_texts(part, draw) for part in value]
    if isinstance(value, dict):
        return {key: changed_texts(part, draw) for key, part in value.items()}
    return value


def recording_chunks() -> Iterator[tuple[bytes, float, Any]]:
    """Kind, time and value of each chunk of the fixture, but only the first samples."""
    at = len(form.MAGIC)
    stream: Any = None
    samples = 0
    while at < len(RECORDING):
        kind, t, length, _ = form.HEAD.unpack(RECORDING[at : at + form.HEAD.size])
        at += form.HEAD.size
        payload, at = RECORDING[at : at + length], at + length
        if kind == form.KEY:
            stream = zlib.decompressobj()
        is_sample = kind in (form.KEY, form.SAMPLE)
        data = (stream if is_sample else zlib.decompressobj()).decompress(payload)
        samples += is_sample
        if not is_sample or samples < 6:
            yield kind, t, json.loads(data)


CHUNKS = list(recording_chunks())


def hostile_recording(draw: Change) -> bytes:
    """The recording with changed texts and correct checksums."""
    parts = [form.MAGIC]
    for kind, t, value in CHUNKS:
        if kind == form.HEADER:
            changed = {**value, "header": changed_texts(value["header"], draw)}
        elif kind == form.EVENT:
            changed = [value[0], changed_texts(value[1], draw)]
        else:
            changed, kind = changed_texts(value, draw), form.KEY
        payload = zlib.compress(json.dumps(changed).encode())
        parts.append(form.head(kind, t, payload) + payload)
    return b"".join(parts)


def hostile_result(draw: Change) -> bytes:
    begin = RESULT.index(b"{")
    document, _ = json.JSONDecoder().raw_decode(RESULT[begin:].decode())
    return RESULT[:begin] + json.dumps(changed_texts(document, draw), indent=2).encode()


def hostile_fleet(draw: Change) -> bytes:
    clat = {"mean": 5.0, "n": 3, "p99": 5, "max": 5}
    part = {"ios": 3, "bytes": 4096, "clat": clat, "bins_of": "clat"}
    lines = [
        {"event": "frame", "host": draw("host"), "step": 1, "t": second + 1.0, "flags": [],
         "wall_ms": 1e12 + 1000 * second, "seconds": 1.0, "kernel": {},
         "fio": {"seconds": 1.0, "read": {**part, "bins": {"5": 3}}, "total": part}}
        for second in range(3)
    ]  # fmt: skip
    lines.append({"event": "step_finished", "host": draw("host"), "exit_code": 1,
                  "error": draw("error"), "summary": {"rows": []}})  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def hostile_bundle(draw: Change) -> bytes:
    return gzip.compress(json.dumps(changed_texts(json.loads(BUNDLE), draw)).encode(), 1)


MAKERS: dict[str, Callable[[Change], bytes]] = {
    "r.iops": hostile_recording, "r.json": hostile_result, "r.jsonl": hostile_fleet,
    "x_clat.1.log": lambda draw: LOG, "r.gz": hostile_bundle,
}  # fmt: skip


def outputs(path: Path) -> Iterator[tuple[str, str]]:
    """The output of each writer for the file, by the writer's name. Errors must be messages."""
    # a bundle is refused before the kind matters
    for kind in ("md",) if path.suffix == ".gz" else ("md", "html", "csv", "json"):
        out = path.with_name(f"out.{kind}")
        error = ""
        try:
            report([str(path)], str(out), kind)
        except IopstuiError as problem:
            error = f"{problem.message} {problem.hint}"
        assert out.exists() == (not error), error
        yield f"report {kind}", out.read_bytes().decode() if out.exists() else error
        out.unlink(missing_ok=True)
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    readers: dict[str, Callable[[], object]] = {
        "merge": lambda: merge_files([str(path)], [], 1.0, "all", "table"),
        "bundle": lambda: print(selftest_text(*judge_bundle(path), 80)),
        **{kind: lambda kind=kind: replay_headless(str(path), kind)  # type: ignore[misc]
           for kind in ("table", "csv", "jsonl", "plain")},
    }  # fmt: skip
    if path.suffix == ".gz":
        readers = {"bundle": readers["bundle"]}
    for name, read in readers.items():
        out_text, err_text = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out_text), contextlib.redirect_stderr(err_text):
            try:
                read()
            except IopstuiError as problem:
                print(problem.message, problem.hint)
        yield name, out_text.getvalue() + err_text.getvalue()


def check_outputs(name: str, content: bytes) -> None:
    sys.modules["iopstui.features.fleet.program.merge_rows"].__dict__["_malformed_hosts"].clear()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(content)
        for writer, text in outputs(path):
            assert not (found := MISLEADING.search(text)), (writer, found)
            for line in text.splitlines() if writer == "jsonl" else [text]:
                if line.startswith("{"):
                    flat = json.dumps(json.loads(line), ensure_ascii=False)
                    assert not MISLEADING.search(flat), (writer, flat[:200])
            if writer == "report csv":
                cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
                assert not [cell for cell in cells if cell.startswith(("=", "@"))]


# a log has no texts
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "x_clat.1.log"])
@SETTINGS
@given(data=st.data())
def test_hostile_texts_reach_no_output(name: str, data: st.DataObject) -> None:
    chosen, share = data.draw(TEXTS), data.draw(st.sampled_from([1, 2, 7]))
    count = 0

    def draw(text: str) -> str:
        nonlocal count
        count += 1
        # in some places the words that decide what is read stay
        return text + chosen if count % share == 0 else text

    check_outputs(name, MAKERS[name](draw))


@pytest.mark.parametrize("name", MAKERS)
@SETTINGS
@given(data=st.data())
def test_damaged_files_are_read_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(MAKERS[name](lambda text: text))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=12))
    check_outputs(name, bytes(content))
