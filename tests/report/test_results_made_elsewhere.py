"""Results of fio as other programs store them: several in a file, wrapped, of other versions, from
logs."""

from __future__ import annotations

import base64
import bz2
import csv
import gzip
import html
import io
import json
import lzma
import pprint
import quopri
import re
import subprocess
from collections.abc import Callable, Mapping
from email.mime.text import MIMEText
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import yaml  # type: ignore[import-untyped]
from fio_recordings import NAMES, unpacked

from iopstui.errors import UsageError
from iopstui.features.reports.files import rendered
from iopstui.features.reports.formats import ReportOptions
from iopstui.model.fio.log_lines import Logs, read_log
from iopstui.recording.foreign import read_result, read_results

BEGAN_MS = 1_795_731_763_855
OPTIONS = {"name": "a", "filename": "/data/f1", "rw": "randread", "bs": "4k"}


def direction(ios: int, ms: int) -> dict[str, Any]:
    latency = {"min": 1000, "max": 90_000, "mean": 5000.0, "stddev": 1.0, "N": ios}
    return {
        "io_bytes": 4096 * ios, "io_kbytes": 4 * ios, "bw_bytes": 4096 * ios * 1000 // ms,
        "bw": 4 * ios * 1000 // ms, "iops": ios * 1000 / ms, "runtime": ms, "total_ios": ios,
        "clat_ns": {**latency, "percentile": {"50.000000": 4000, "99.000000": 9000}},
        "lat_ns": latency,
    }  # fmt: skip


def document(
    name: str = "a", ios: int = 2000, ms: int = 2000, began_ms: int = BEGAN_MS, **options: str
) -> dict[str, Any]:
    ended_ms = began_ms + ms
    row = {
        "jobname": name, "groupid": 0, "error": 0, "eta": 0, "elapsed": -(-ms // 1000),
        "job options": {**OPTIONS, "name": name, **options}, "read": direction(ios, ms),
    }  # fmt: skip
    return {
        "fio version": "fio-3.33", "timestamp": ended_ms // 1000, "timestamp_ms": ended_ms,
        "jobs": [row],
    }  # fmt: skip


def fio_layout(value: object) -> str:
    return json.dumps(value, indent=2, separators=(",", " : ")) + "\n"


def report(path: Path, *more: Path, **options: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(rendered([path, *more], "json", ReportOptions(**options)))
    return data


def rows(path: Path) -> list[tuple[int, str, int]]:
    """Run, job and I/Os of each row of a report."""
    return [
        (run["step"], row["name"], row["directions"]["read"]["total_ios"])
        for run in report(path)["recordings"][0]["runs"]
        for row in run["summary"]["rows"]
    ]


TWO = [document("a"), document("b", 600, began_ms=BEGAN_MS + 4000)]
SAME = [document("a"), document("a", began_ms=BEGAN_MS + 3000)]


@pytest.mark.parametrize(
    "write",
    [
        lambda documents: "".join(map(fio_layout, documents)),
        lambda documents: json.dumps(documents),
        lambda documents: json.dumps(documents, indent=2),
        lambda documents: json.dumps(documents, indent=0),
        lambda documents: "\n".join(map(json.dumps, documents)),
        lambda documents: json.dumps({"results": [{"fio": d} for d in documents]}, indent=4),
    ],
)
@pytest.mark.parametrize("documents", [TWO, SAME])
def test_each_result_of_a_file_is_a_run(
    write: Callable[[list[dict[str, Any]]], str], documents: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    path.write_text(write(documents))
    ios = [2000, 600 if documents is TWO else 2000]
    assert rows(path) == [(1, "a", ios[0]), (2, documents[1]["jobs"][0]["jobname"], ios[1])]
    text = rendered([path], "md")
    assert "2 runs" in text and "Verified" not in text and "--status-interval)" not in text
    with pytest.raises(UsageError, match="holds 2 runs"):
        read_result(path)


@pytest.mark.parametrize("name", NAMES)
def test_documents_of_one_fio_are_one_run(name: str, tmp_path: Path) -> None:
    assert len(read_results(unpacked(name, tmp_path))) == 1


def test_runs_stand_where_they_were_in_time(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("".join(map(fio_layout, TWO)))
    runs = report(path)["recordings"][0]["runs"]
    assert [(run["begin"], run["end"]) for run in runs] == [(0, 2), (4, 6)]


@pytest.mark.parametrize(
    "change",
    [
        lambda line, n: f"2026-01-01T00:00:00.{n:09}Z {line}",
        lambda line, n: f"2026-01-01T00:00:{n % 60:02}.{n:09}+01:00 stdout F {line}",
        lambda line, n: f"[pod/fio-x7k2p/fio] {line}",
        lambda line, n: f"fio-1  | {line}",
        lambda line, n: f"Nov {n % 9 + 1:2} 10:00:{n % 60:02} host fio[77]: {line}",
        lambda line, n: f"0: {line}",
        lambda line, n: json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "x"},
                                   separators=(",", ":")),
        lambda line, n: json.dumps({"_PID": "7", "MESSAGE": line}),
        lambda line, n: f"2026-11-28 05:00:00.{n:09} +0000 kube.fio: " + json.dumps({"log": line}),
        lambda line, n: f"\x1b[32m{line}\x1b[0m",
        lambda line, n: line.replace('"', '\x1b[34;1m"', 1) + "\x1b[0m\x1b]0;title\x07",
    ],
)  # fmt: skip
def test_the_prefix_of_each_line_is_taken_off(
    change: Callable[[str, int], str], tmp_path: Path
) -> None:
    path = tmp_path / "log.txt"
    lines = ["fio: starting", *fio_layout(document()).splitlines(), ""]
    path.write_text("".join(f"{change(line, n)}\n" for n, line in enumerate(lines)))
    assert rows(path) == [(1, "a", 2000)]


def test_lines_of_two_pods_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    pods = [fio_layout(each).splitlines() for each in TWO]
    mixed = [f"[pod/{n}/fio] {line}\n" for lines in zip(*pods, strict=True)
             for n, line in enumerate(lines)]  # fmt: skip
    path.write_text("".join(mixed))
    assert rows(path) == [(1, "a", 2000), (2, "b", 600)]


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-16"),
        lambda text: b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"),
        lambda text: text.encode("utf-8-sig"),
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(text.encode("utf-16")),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: b"\0\0\xfe\xff" + text.encode("utf-32-be"),
        lambda text: text.encode("utf-32-le"),
        lambda text: text.encode("utf-32-be"),
        lambda text: b"\0" * 4096 + text.encode(),
    ],
)
def test_other_encodings_are_read(encode: Callable[[str], bytes], tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(encode(fio_layout(document())))
    assert rows(path) == [(1, "a", 2000)]


ANSIBLE = {"changed": True, "rc": 0, "stderr": ""}


@pytest.mark.parametrize(
    "wrap",
    [
        json.dumps,
        lambda text: "ok: [h] => " + json.dumps(
            {**ANSIBLE, "stdout": text.rstrip(), "stdout_lines": text.splitlines()}, indent=4
        ),
        lambda text: "h | CHANGED => " + json.dumps({**ANSIBLE, "stdout": f"fio: start\n{text}"}),
        lambda text: json.dumps({"stdout_lines": text.splitlines()}),
        lambda text: json.dumps({"plays": [{"hosts": {"h": json.dumps({"log": text})}}]}),
        lambda text: json.dumps([{"out": json.dumps(json.loads(text))}]),
        lambda text: f'time="10:00" level=info msg={json.dumps(text)} rc="0"',
        lambda text: f"fio: start\n\nINFO {json.dumps(text)}\nWARN a \" alone",
    ],
)  # fmt: skip
def test_a_document_in_a_string_of_json_is_read(wrap: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(wrap(fio_layout(document("a\x1b[2J"))))
    assert rows(path) == [(1, "a?[2J", 2000)]


def test_equal_jobs_of_two_hosts_of_ansible_are_two_runs(tmp_path: Path) -> None:
    hosts = {f"h{n}": {"stdout": fio_layout(document(ios=2000 + n))} for n in (0, 40)}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"plays": [{"tasks": [{"hosts": hosts}]}]}))
    assert rows(path) == [(1, "a", 2000), (2, "a", 2040)]


AWKWARD = """it's "5" \\x41 & <é> #"""


def csv_of(text: str, **options: Any) -> str:
    out = io.StringIO()
    csv.writer(out, **options).writerows([["host", "note", "result"], ["n1", "", text]])
    return out.getvalue()


def logfmt_of(text: str, quotes_all: bool) -> str:
    """Each line as a log library writes it; some libraries quote only what needs quotes."""
    return "".join(
        f"time=10:00 level=info msg={json.dumps(line) if quotes_all or len(line) > 1 else line}\n"
        for line in ["fio: start", *text.splitlines()]
    )


def numbered(text: str, form: str) -> str:
    return "".join(f"{form.format(n)}{line}\n" for n, line in enumerate(text.splitlines(), 1))


def boxed(text: str, side: str) -> str:
    width = max(map(len, text.splitlines()))
    rows = "".join(f"{side} {line:{width}} {side}\n" for line in text.splitlines())
    return f"+{'-' * width}+\n{rows}+{'-' * width}+\n"


def colored(text: str) -> str:
    """The text in colours, as jq -C prints it."""
    key = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)')
    return key.sub("\x1b[34;1m\\1\x1b[0m\x1b[1;39m\\2\x1b[0m", text)


def of_kubernetes(text: str) -> str:
    """A container's log, in which a long line is split."""
    line, head = json.dumps(json.loads(text)), "2026-11-28T10:11:12.000000001Z stdout"
    parts = [line[at : at + 90] for at in range(0, len(line), 90)]
    return f"{head} F fio: start\n" + "".join(
        f"{head} {'P' if part is not parts[-1] else 'F'} {part}\n" for part in parts
    )


def of_node(text: str) -> str:
    """The text as console.dir of Node.js prints an object."""
    text = re.sub(r'"([A-Za-z_]\w*)"(?= ?:)', r"\1", text)
    return re.sub(
        r'"((?:[^"\\]|\\.)*)"',
        lambda match: "'" + match[1].replace("'", r"\'").replace(r"\"", '"') + "'",
        text,
    )


@pytest.mark.parametrize(
    "spell",
    [
        csv_of,
        lambda text: csv_of(json.dumps(json.loads(text)), delimiter=";"),
        html.escape,
        lambda text: f"<td>{html.escape(json.dumps(json.loads(text)))}</td>".replace("quot", "#34"),
        lambda text: html.escape(csv_of(text)),
        lambda text: f"out: {json.loads(text)!r}\n",
        lambda text: pprint.pformat({**json.loads(text), "ok": True, "none": None}),
        lambda text: f"{{'rc': 0, 'stdout': {text!r}}}",
        lambda text: repr(text.encode()),
        lambda text: "n1\t" + text.replace("\\", r"\\").replace("\n", r"\n") + "\n",
        lambda text: f"result={quote(text)}&rc=0",
        lambda text: f"result={quote_plus(json.dumps(json.loads(text)))}\n",
        lambda text: f"Nov 28 10:00:00 h fio[7]: {text.replace(chr(10), '#012')}\n",
        lambda text: yaml.safe_dump({"rc": 0, "stdout": text}),
        lambda text: yaml.safe_dump({"rc": 0, "stdout": text}, default_style='"', indent=4),
        lambda text: yaml.safe_dump({"rc": 0, "stdout": json.dumps(json.loads(text))}),
        lambda text: logfmt_of(text, True),
        lambda text: logfmt_of(text, False),
        lambda text: numbered(text, "{:6}\t"),
        lambda text: numbered(text, "{:>6}  "),
        lambda text: numbered(text, "{}:"),
        lambda text: numbered(text, "out.json:{}:"),
        lambda text: "".join(f" {line:<60}+\n" for line in text.splitlines()) + "(1 row)\n",
        lambda text: text.replace("  ", "\u00a0 "),
        lambda text: re.sub(r"(?m)(?<=[]}])$(?=\n *[]}])", ",", text),
        lambda text: numbered(text, "{:4} "),
        lambda text: numbered(text, "{:4}   \u2502 "),
        lambda text: boxed(text, "|"),
        lambda text: boxed(text, "\u2502"),
        lambda text: boxed(text, "\u2551"),
        lambda text: boxed(numbered(text, "{:4} \u2502 "), "\u2502"),
        lambda text: colored(text).replace("\x1b", "^["),
        lambda text: colored(text).replace("\x1b", ""),
        lambda text: json.dumps({"log": colored(text), "stream": "stdout"}),
        lambda text: json.dumps({"out": [{"text": colored(text)}]}),
        lambda text: html.escape(html.escape(text)),
        lambda text: html.escape(text).replace("\n", "<br/>\n"),
        lambda text: html.escape(text).replace("\n", "<br>").replace("  ", "&nbsp; "),
        lambda text: re.sub("(&quot;.*?&quot;)", r"<span class='s'>\1</span>", html.escape(text)),
        lambda text: f"<p>{html.escape(repr(json.loads(text)))}</p>",
        lambda text: re.sub(r"([{}\[\]])", r"\\\1", text),
        lambda text: re.sub(r"(?<=[a-z])_", r"\_", text),
        lambda text: re.sub(r'" ?: ', '" => ', text).replace("null", "nil"),
        lambda text: quopri.encodestring(json.dumps(json.loads(text)).encode()).decode(),
        lambda text: re.sub("(.{72})", r"\1\n", json.dumps(json.loads(text))) + "\n",
        lambda text: json.dumps({"data": {"text/plain": [repr(json.loads(text))]}}),
        lambda text: json.dumps({"data": {"text/plain": [repr(text)]}}),
        of_kubernetes,
        of_node,
    ],
)
def test_json_in_the_spelling_of_another_format_is_read(
    spell: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "log.txt"
    path.write_text(spell(fio_layout(document(AWKWARD))), "utf-8")
    assert rows(path) == [(1, AWKWARD, 2000)]


@pytest.mark.parametrize("quotes", ["“”", "„“", "””"])
def test_the_quotes_of_a_word_processor_are_read(quotes: str, tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    text = re.sub('"([^"]*)"', rf"{quotes[0]}\1{quotes[1]}", fio_layout(document("job")))
    path.write_text(text, "utf-8")
    assert rows(path) == [(1, "job", 2000)]


@pytest.mark.parametrize(
    "log",
    [
        lambda row, _: [row(n) for n in range(2)],
        lambda row, text: {"result": [{"stream": {"pod": n}, "values": [
            [str(at), line] for at, line in enumerate(text(n).splitlines())
        ]} for n in range(2)]},
        lambda row, _: {"hits": {"hits": row(0)}, "more": {"events": row(1)}},
    ],
)  # fmt: skip
def test_rows_that_hold_a_line_each_are_put_together(
    log: Callable[..., Any], tmp_path: Path
) -> None:
    # as CloudWatch, Loki and Elasticsearch export logs
    def text(number: int) -> str:
        return fio_layout(document(ios=2000 + number))

    def row(number: int) -> list[Any]:
        lines = ["fio: start", *text(number).splitlines()]
        return [{"timestamp": at, "_source": {"host": "h", "line": line}} 
                for at, line in enumerate(lines)]  # fmt: skip

    path = tmp_path / "log.json"
    path.write_text(json.dumps(log(row, text), indent=1))
    assert rows(path) == [(1, "a", 2000), (2, "a", 2001)]


def test_rows_that_are_not_in_order_are_no_result(tmp_path: Path) -> None:
    lines = [{"line": line} for line in fio_layout(document()).splitlines()]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(lines[::-1]))
    with pytest.raises(UsageError, match="no complete fio JSON"):
        rendered([path], "md")


@pytest.mark.parametrize(
    ("text", "form", "command"),
    [
        (yaml.safe_dump(document()), "YAML", "python3 -c 'import json, sys, yaml; "),
        (yaml.safe_dump([{"h": document()}]), "YAML", "python3 -c 'import json, sys, yaml; "),
        (yaml.safe_dump(document(), default_flow_style=True), "YAML", "python3 -c "),
        (base64.encodebytes(fio_layout(document()).encode()).decode(), "base64", "base64 -d "),
        (base64.b64encode(json.dumps(document()).encode()).decode(), "base64", "base64 -d "),
        (
            MIMEText(fio_layout(document()), "plain", "utf-8").as_string(),
            "base64 in an e-mail",
            "python3 -c 'import email, sys; ",
        ),
    ],
)
def test_a_result_that_is_no_json_is_refused_with_the_command_that_makes_it(
    text: str, form: str, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "result"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"has fio's result as {form}, which iopstui") as error:
        rendered([path], "md")
    assert error.value.hint is not None and error.value.hint.endswith(f"{path} > RESULT.json")
    made = subprocess.run(
        error.value.hint.removeprefix("Make JSON of it: ").replace("RESULT.json", "/dev/stdout"),
        shell=True, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert error.value.hint.startswith(f"Make JSON of it: {command}")
    path.write_text(made.stdout)
    assert rows(path) == [(1, "a", 2000)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda lines: [*lines[:9], "[... 40 lines omitted ...]", *lines[20:]],
         r"it is not JSON from line 10 on: \[\.\.\. 40 lines omitted \.\.\.\]"),
        (lambda lines: lines[:30], r"it ends in line \d+, before the end of its JSON"),
    ],
)  # fmt: skip
def test_where_a_document_is_cut_is_said(
    change: Callable[[list[str]], list[str]], place: str, tmp_path: Path
) -> None:
    path = tmp_path / "result"
    path.write_text("\n".join(change(fio_layout(document()).splitlines())))
    with pytest.raises(UsageError, match=f"contains no complete fio JSON: {place}"):
        rendered([path], "md")


@pytest.mark.parametrize(
    ("begin", "command"),
    [
        (bz2.compress(b"{}"), "bunzip2"), (lzma.compress(b"{}"), "unxz"),
        (b"\x28\xb5\x2f\xfd\4", "unzstd"), (b"\x04\x22\x4d\x18\4", "unlz4"),
        (b"PK\3\4\n", "unzip"),
    ],
)  # fmt: skip
def test_files_compressed_otherwise_are_refused_with_the_command_that_unpacks_them(
    begin: bytes, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "result"
    path.write_bytes(begin + b"\0" * 40)
    with pytest.raises(UsageError, match="is compressed") as error:
        rendered([path], "md")
    assert error.value.hint == f"Unpack it first: {command} {path}"


def test_a_compressed_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out.json.gz"
    path.write_bytes(gzip.compress(fio_layout(TWO).encode())[:-20])
    with pytest.raises(UsageError, match="cut off or damaged"):
        rendered([path], "md")


@pytest.mark.parametrize("word", ["nan", "-nan", "NaN", "inf"])
def test_a_figure_without_a_value_is_unknown(word: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    text = fio_layout(document()).replace('"mean" : 5000.0', f'"mean" : {word}')
    path.write_text(text)
    figures = report(path)["recordings"][0]["runs"][0]["summary"]["rows"][0]["directions"]["read"]
    assert figures["clat_mean_ns"] is None and figures["total_ios"] == 2000
    assert "2 figures: fio wrote nan or inf instead of a number" in rendered([path], "md")


def test_decimal_commas_are_read(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(
        fio_layout(document()).replace("1000.0", "1000,250000").replace("5000.0", "5000,5")
    )
    figures = report(path)["recordings"][0]["runs"][0]["summary"]["rows"][0]["directions"]["read"]
    assert (figures["iops"], figures["clat_mean_ns"]) == (1000.25, 5000.5)


# -- clients


def client_row(host: str, ios: int, port: int = 8765, **options: str) -> dict[str, Any]:
    [row] = document("w1", ios, ios)["jobs"]
    del row["elapsed"]
    return {**row, "job options": {**OPTIONS, **options}, "hostname": host, "port": port}


def of_clients(*client_rows: Mapping[str, Any]) -> dict[str, Any]:
    return {"fio version": "fio-3.33", "timestamp": 1795732304, "client_stats": list(client_rows)}


def test_the_newest_rows_of_each_client_count(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    interim = [client_row(host, ios) for ios in (900, 1900, 3000) for host in ("host-b", "host-a")]
    total = {**client_row("host-a", 5000), "jobname": "All clients"}
    path.write_text(fio_layout(of_clients(*interim[:4], total, *interim[4:])))
    assert rows(path) == [(1, "host-b: w1", 3000), (1, "host-a: w1", 3000)]


def test_clones_of_a_client_are_no_older_rows(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    clones = [client_row("host-a", ios, numjobs="2") for ios in (900, 901, 3000, 3001)]
    path.write_text(fio_layout(of_clients(*clones)))
    assert rows(path) == [(1, "w1", 3000), (1, "w1", 3001)]


def test_two_servers_of_one_host_keep_their_ports(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(fio_layout(of_clients(client_row("n1", 10), client_row("n1", 20, 8766))))
    assert rows(path) == [(1, "n1:8765: w1", 10), (1, "n1:8766: w1", 20)]


# -- fio 2, repeated options


def test_fio_2_counts_kib_and_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    clat = {"min": 39, "max": 12000, "mean": 245.5, "percentile": {"50.000000": 96, "0.00": 0}}
    read = {"io_bytes": 1_280_000, "bw": 128_000, "iops": 8000.0, "runtime": 10_000, "clat": clat,
            "slat": {"mean": 1.5}}  # fmt: skip
    job = {"jobname": "r", "error": 0, "job options": {"bs": "16k"}, "read": read}
    old = {"fio version": "fio-2.17", "timestamp": 1_500_000_000, "jobs": [job]}
    path.write_text(fio_layout(old))
    [run] = report(path)["recordings"][0]["runs"]
    figures = run["summary"]["rows"][0]["directions"]["read"]
    assert figures["io_bytes"] == 1_310_720_000 and figures["bw_bytes"] == 131_072_000
    assert figures["clat_mean_ns"] == 245_500 and figures["lat_max_ns"] == 12_000_000
    assert figures["percentiles"] == {"p50": 96_000}
    # the file has no count of I/Os
    assert figures["total_ios"] is None and figures["completed"] is None
    assert "| 1 | r | read | – | 8000.0 |" in rendered([path], "md")


def test_all_file_names_of_a_job_count(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    more = '"filename" : "f1",\n "size" : "4m",\n "filename" : "f2"'
    path.write_text(fio_layout(document()).replace('"filename" : "/data/f1"', more))
    text = rendered([path], "md")
    assert "| target | f1:f2 |" in text and "\nfilename=f1:f2\n" in text


# -- against a volume


@pytest.mark.parametrize("missing", [False, True])
def test_one_document_is_compared_with_a_volume(missing: bool, tmp_path: Path) -> None:
    from iopstui.cli.options import parse_volume

    volume = parse_volume("aws/gp3,size=500g", "--against")
    path = tmp_path / ("x_iops.1.log" if missing else "out.json")
    path.write_text("500, 1000, 0, 0\n1000, 1000, 0, 0\n" if missing else fio_layout(document()))
    text = rendered([path], "md", ReportOptions(against=volume))
    assert "No run did any I/O" not in text
    if missing:
        assert "the file has no usable bandwidth of the run" in text
    else:
        assert "| volume IOPS | 3,000 IOPS | 1,000 IOPS | 33 % |" in text


# -- logs


def csv_rows(*paths: Path) -> list[tuple[float, float]]:
    """Time and IOPS of each row."""
    table = list(csv.reader(rendered(list(paths), "csv").splitlines()))[1:]
    return [(float(row[0]), float(row[2])) for row in table]


def test_jobs_in_one_log_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "h_iops.log"
    block = "".join(f"{at}, 1000, 0, 0, 0\n" for at in range(500, 3001, 500))
    path.write_text(3 * block)
    assert csv_rows(path) == [(1, 3000), (2, 3000), (3, 3000)]
    assert "| 1 | h | read | – | 3000.0 |" in rendered([path], "md")


def test_the_wall_clock_of_logs_places_jobs_in_time(tmp_path: Path) -> None:
    paths = [tmp_path / f"ep_iops.{job}.log" for job in (1, 2)]
    for path, second in zip(paths, (0, 4), strict=True):
        begin = 1_700_000_000_000 + 1000 * second
        path.write_text("".join(f"{begin + at}, 1000, 0, 0, 0\n" for at in range(500, 3001, 500)))
    assert csv_rows(*paths) == [(t, 1000) for t in (1, 2, 3, 5, 6, 7)]
    text = rendered(paths, "md")
    assert "| 1 | ep | read | – | 1000.0 |" in text and "when the jobs began" not in text


def test_the_times_of_json_place_jobs_in_time(tmp_path: Path) -> None:
    result = document("a", write_iops_log="ep")
    result["jobs"].append({**result["jobs"][0], "jobname": "b"})
    for number, row in enumerate(result["jobs"]):
        row["job_start"] = BEGAN_MS + 4000 * number
    (tmp_path / "out.json").write_text(fio_layout(result))
    paths = [tmp_path / f"ep_iops.{job}.log" for job in (1, 2)]
    for path in paths:
        path.write_text("".join(f"{at}, 1000, 0, 0, 0\n" for at in range(500, 3001, 500)))
    assert csv_rows(tmp_path / "out.json", *paths) == [(t, 1000) for t in (1, 2, 3, 5, 6, 7)]


def test_a_delayed_job_stands_later_by_its_options(tmp_path: Path) -> None:
    # before fio 3.36 its JSON does not say when a job began
    jobs = (("a", 3000, 3000, {}), ("b", 3000, 3000, delayed("b", startdelay="4")))
    result = together(*jobs)
    for row in result["jobs"]:
        row["job options"]["write_iops_log"] = "ep"
    (tmp_path / "out.json").write_text(fio_layout(result))
    paths = [tmp_path / f"ep_iops.{job}.log" for job in (1, 2)]
    for path in paths:
        path.write_text("".join(f"{at}, 1000, 0, 0, 0\n" for at in range(500, 3001, 500)))
    assert csv_rows(tmp_path / "out.json", *paths) == [(t, 1000) for t in (1, 2, 3, 5, 6, 7)]


def test_an_empty_log_beside_others_is_no_error(tmp_path: Path) -> None:
    # fio's log of submission latencies is empty for synchronous engines
    empty, log = tmp_path / "x_slat.1.log", tmp_path / "x_clat.1.log"
    empty.touch()
    log.write_text("0, 900, 0, 4096\n999, 800, 0, 4096\n")
    assert "x_slat.1.log: it is empty" in rendered([log, empty], "md")
    with pytest.raises(UsageError, match="has no log lines"):
        rendered([empty], "md")


def test_maxima_are_no_means(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(fio_layout(document(write_lat_log="m", log_max_value="1")))
    log = tmp_path / "m_clat.1.log"
    log.write_text("1000, 900000, 0, 0\n2000, 800000, 0, 0\n")
    text = rendered([tmp_path / "out.json", log], "md")
    assert "maxima of windows (log_max_value)" in text and "maxima over time windows" in text
    assert list(Logs([read_log("clat", log.read_text().splitlines())], maxima=True).rows()) == []


@pytest.mark.parametrize("size", [0, 4096])
def test_a_log_of_too_many_seconds_is_refused(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iopstui.model.fio import log_lines

    monkeypatch.setattr(log_lines, "MAX_WINDOWS", 1000)
    monkeypatch.setattr(log_lines, "MAX_BUCKETS", 1000)
    path = tmp_path / "x_clat.1.log"
    path.write_text("".join(f"{at * 1000}, 7, 0, {size}\n" for at in range(2000)))
    with pytest.raises(UsageError, match=r"is too large: more than 1,000 .*"):
        rendered([path], "md")


def test_two_lines_that_are_weeks_apart_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "x_lat.1.log"
    path.write_text("0, 5, 0, 4096\n2500000000, 5, 0, 4096\n")
    with pytest.raises(UsageError, match="a log of 29 days"):
        rendered([path], "md")


# -- jobs that did not run at the same time


def measured(path: Path) -> str:
    sentence: str = report(path)["recordings"][0]["overview"]["measured"]
    return sentence


def together(*more: tuple[str, int, int, dict[str, Any]]) -> dict[str, Any]:
    """One result of several jobs; for each its name, I/Os, run time (ms) and further fields of its
    row."""
    rows = [{**document(name, ios, ms)["jobs"][0], **row} for name, ios, ms, row in more]
    return {**document(), "jobs": rows}


def delayed(name: str, **options: str) -> dict[str, Any]:
    return {"job options": {**OPTIONS, "name": name, **options}}


@pytest.mark.parametrize(
    ("jobs", "seconds", "iops"),
    [
        # fio's own "Run status group" has 4,000 I/Os in 3 s, too
        ([("a", 1000, 1000, {}), ("b", 3000, 3000, {})], 3, "1.33k"),
        ([("a", 2000, 2000, {}), ("b", 600, 2000, delayed("b", startdelay="2"))], 4, "650"),
        ([("a", 2000, 2000, {}), ("b", 600, 2000, delayed("b", wait_for="a"))], 4, "650"),
        ([("a", 2000, 2000, {"job_start": 5000}), ("b", 600, 2000, {"job_start": 9000})],
         6, "433"),
        ([("a", 2000, 2000, {}), ("b", 600, 2010, {})], 2, "1.30k"),
        ([("a", 1, 1000, {}), ("b", 1, 1, {})], 1, "2.00"),
    ],
)  # fmt: skip
def test_rates_are_added_only_of_jobs_that_ran_at_the_same_time(
    jobs: list[Any], seconds: int, iops: str, tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    path.write_text(fio_layout(together(*jobs)))
    assert f"for {seconds} s: {iops} IOPS" in measured(path)


def test_reads_that_verify_follow_the_writes(tmp_path: Path) -> None:
    row = document(rw="write", verify="crc32c")["jobs"][0]
    path = tmp_path / "out.json"
    path.write_text(fio_layout({**document(), "jobs": [{**row, "write": direction(4000, 2000)}]}))
    assert "for 4 s: 1.50k IOPS" in measured(path)


def test_unified_reporting_of_both_kinds_counts_each_io_once(tmp_path: Path) -> None:
    row = document(rw="randrw", unified_rw_reporting="both")["jobs"][0]
    row |= {"write": direction(2000, 2000), "mixed": direction(4000, 2000)}
    path = tmp_path / "out.json"
    path.write_text(fio_layout({**document(), "jobs": [row]}))
    assert "for 2 s: 2.00k IOPS (1.00k read, 1.00k write), 7.81 MiB/s" in measured(path)


def test_equal_jobs_of_two_pods_are_two_runs(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    pods = [fio_layout(document(ios=ios)).splitlines() for ios in (2000, 2040)]
    path.write_text("".join(f"[pod/{n}/fio] {line}\n" for lines in zip(*pods, strict=True)
                            for n, line in enumerate(lines)))  # fmt: skip
    assert rows(path) == [(1, "a", 2000), (2, "a", 2040)]


@pytest.mark.parametrize("change", [{"max": 50_000}, {"job_start": BEGAN_MS + 1}])
def test_equal_jobs_of_two_machines_in_one_file_are_two_runs(
    change: dict[str, Any], tmp_path: Path
) -> None:
    first, second = document(ios=2000), document(ios=2040)
    first["jobs"][0]["job_start"] = second["jobs"][0]["job_start"] = BEGAN_MS
    (second["jobs"][0] if "job_start" in change else second["jobs"][0]["read"]["clat_ns"]).update(
        change
    )
    path = tmp_path / "out.json"
    path.write_text(fio_layout(first) + fio_layout(second))
    assert rows(path) == [(1, "a", 2000), (2, "a", 2040)]


def test_a_result_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(2 * fio_layout(document()))
    assert "By fio's JSON, fio ran a " in measured(path)


@pytest.mark.parametrize("prefix", ["out.json:", "+", "> "])
def test_the_prefixes_of_grep_and_diff_are_taken_off(prefix: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("".join(f"{prefix}{line}\n" for line in fio_layout(document()).splitlines()))
    assert rows(path) == [(1, "a", 2000)]


# -- figures that are missing, or impossible


@pytest.mark.parametrize("stated", ['"iops" : nan', '"iops" : [1]', '"unknown" : 1'])
def test_a_rate_without_a_value_is_made_of_the_counts(stated: str, tmp_path: Path) -> None:
    result = together(("a", 2000, 2000, {}), ("b", 1000, 2000, {}))
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result).replace('"iops" : 1000.0', stated))
    assert "for 2 s: 1.50k IOPS" in measured(path)


def test_percentiles_of_lat_are_shown_where_fio_has_none_of_clat(tmp_path: Path) -> None:
    result = document()
    read = result["jobs"][0]["read"]
    read["lat_ns"] = {**read["lat_ns"], "percentile": read["clat_ns"].pop("percentile")}
    read["lat_ns"]["mean"] = 8000.0
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    [run] = report(path)["recordings"][0]["runs"]
    figures = run["summary"]["rows"][0]["directions"]["read"]
    assert (figures["percentiles_of"], figures["percentiles"]["p99"]) == ("lat", 9000)
    # so the mean beside them is lat's, too
    assert "| read (lat) | 2000 | 1000.0 | 3.91 | 8.00 µs | 4.00 µs | 9.00 µs |" in rendered(
        [path], "md"
    )


def test_a_disk_whose_use_is_no_number_is_still_reported(tmp_path: Path) -> None:
    disks = [{"name": name, "read_ios": 7, "write_ios": 0, "util": 12.25} 
             for name in ("sda", "sdb")]  # fmt: skip
    disks.append({"name": "sdc", "read_ios": -5, "write_ios": "x", "util": 1e9})
    path = tmp_path / "out.json"
    text = fio_layout({**document(), "disk_util": disks})
    path.write_text(text.replace('"util" : 12.25', '"util" : -nan', 1))
    text = rendered([path], "md")
    assert "| disk sda, fio's count | 7 reads, 0 writes |" in text
    assert "| disk sdb, fio's count | 7 reads, 0 writes, util 12.2 % |" in text
    assert "| disk sdc, fio's count | unknown reads, unknown writes |" in text


@pytest.mark.parametrize("value", [None, "many", True, [1], {}, "-5"])
@pytest.mark.parametrize("name", ["total_ios", "io_bytes", "runtime"])
def test_a_count_that_is_no_number_is_not_taken_for_0(
    name: str, value: Any, tmp_path: Path
) -> None:
    result = document()
    result["jobs"][0]["read"][name] = value
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    with pytest.raises(UsageError, match="impossible figures of a"):
        rendered([path], "md")


def test_numbers_as_texts_are_read(tmp_path: Path) -> None:
    result = document()
    result["jobs"][0]["read"].update(total_ios="2000", runtime="2000")
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    assert "for 2 s: 1.00k IOPS" in measured(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [("mean", 1e9), ("bins", {"100": 2**62, "200": 2**62})],
)
def test_impossible_latencies_are_refused(place: str, value: Any, tmp_path: Path) -> None:
    result = document()
    result["jobs"][0]["read"]["clat_ns"][place] = value
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    with pytest.raises(UsageError, match="impossible figures of a: it is damaged"):
        rendered([path], "md")


@pytest.mark.parametrize(
    ("percentiles", "possible"),
    [
        ({"50.000000": 9000, "99.000000": 4000}, False),
        ({"50.000000": 4000, "99.000000": 900_000_000}, False),
        ({"99.000000": 9000, "50.000000": 4000, "99.900000": 90_500}, True),
        ({"50.000000": 9000, "99.000000": 9000, "100.000000": 9000}, True),
        ({"0.00": 0, "many": 5}, True),
        # fio 3.1
        ({"50.000000": 4000, "99.000000": 9000, "100.000000": 0}, True),
    ],
)
def test_percentiles_rise_to_the_maximum_at_most(
    percentiles: dict[str, int], possible: bool, tmp_path: Path
) -> None:
    result = document()
    result["jobs"][0]["read"]["clat_ns"]["percentile"] = percentiles
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    if possible:
        assert "1.00k IOPS" in measured(path)
    else:
        with pytest.raises(UsageError, match="impossible figures of a: it is damaged"):
            rendered([path], "md")


@pytest.mark.parametrize("error", ["EIO", None, [5], True])
def test_an_error_that_is_no_number_is_refused(error: Any, tmp_path: Path) -> None:
    result = document()
    result["jobs"][0]["error"] = error
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    with pytest.raises(UsageError, match="impossible figures of a"):
        rendered([path], "md")


@pytest.mark.parametrize("failed", [0, 1234])
def test_failed_ios_of_a_job_that_went_on_are_warned_of(failed: int, tmp_path: Path) -> None:
    result = document()
    result["jobs"][0]["total_err"] = failed
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    assert ("warning: a: 1,234 I/Os failed" in rendered([path], "md")) == bool(failed)


@pytest.mark.parametrize("at_ms", [-5000, 2**62])
def test_a_time_of_no_calendar_is_refused(at_ms: int, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(fio_layout({**document(), "timestamp_ms": at_ms}))
    with pytest.raises(UsageError, match="impossible figures of a: it is damaged"):
        rendered([path], "md")


@pytest.mark.parametrize("figure", [("iops", 5000.0), ("bw_bytes", 5), ("io_bytes", 5)])
def test_a_rate_that_its_counts_contradict_is_warned_of(
    figure: tuple[str, Any], tmp_path: Path
) -> None:
    result = document()
    result["jobs"][0]["read"].update([figure])
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    assert "Warning: fio's rates contradict its own counts" in rendered([path], "md")


def test_rates_of_jobs_without_a_time_are_unknown(tmp_path: Path) -> None:
    # fio 3.28 states a run time of 0 for jobs that it gave up
    path = unpacked("3.28-x-interleaved", tmp_path)
    assert "for an unknown time: p99" in measured(path)
    assert "| 1 | IL | read | 32332 | – | – | 488" in rendered([path], "md")


def test_a_job_that_did_nothing_has_no_time(tmp_path: Path) -> None:
    result = document()
    read = dict.fromkeys(("total_ios", "io_bytes", "io_kbytes", "runtime", "iops", "bw"), 0)
    result["jobs"][0]["read"] = {**read, "bw_bytes": 0}
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    assert "for an unknown time: it reported no figures" in measured(path)


def test_rows_without_figures_are_no_result(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(fio_layout({**document(), "jobs": [None, 3, "x", {}]}))
    with pytest.raises(UsageError, match="no complete fio JSON"):
        rendered([path], "md")


def test_equal_rates_of_runs_have_no_range(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("".join(map(fio_layout, SAME)))
    assert "2 times on /data/f1: 1.00k IOPS each." in measured(path)


@pytest.mark.parametrize("figure", [("iops", -5.0), ("total_ios", -1), ("io_bytes", 10**30),
                                    ("bw_bytes", 1e308), ("runtime", 2**62)])  # fmt: skip
def test_impossible_figures_are_refused(figure: tuple[str, Any], tmp_path: Path) -> None:
    result = document()
    result["jobs"][0]["read"].update([figure])
    path = tmp_path / "out.json"
    path.write_text(fio_layout(result))
    with pytest.raises(UsageError, match="impossible figures of a: it is damaged, or not fio's"):
        rendered([path], "md")


# -- options


def test_an_option_cannot_begin_another_one_of_the_job_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    forged = document("a]\nrw=write", filename="f1\n[evil]\nfilename=/dev/sda\nrw=write")
    path.write_text(fio_layout(forged))
    lines = rendered([path], "md").splitlines()
    assert "[a] rw=write]" in lines and "filename=f1 [evil] filename=/dev/sda rw=write" in lines
    assert not {"[evil]", "rw=write", "filename=/dev/sda"} & set(lines)


def test_jobs_that_share_a_name_keep_their_options(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    row = document()["jobs"][0]
    other = {**row, "job options": {**OPTIONS, "bs": "8k"}}
    path.write_text(fio_layout({**document(), "jobs": [row, row, other]}))
    text = rendered([path], "md")
    assert text.count("\n[a]\n") == 2 and "\nbs=4k\n" in text and "\nbs=8k\n" in text


def test_options_of_another_job_of_the_group_do_not_describe_it(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    row = document(rw="randwrite", bs="8k")["jobs"][0]
    path.write_text(fio_layout({**document(), "jobs": [{**row, "write": direction(600, 2000)}]}))
    text = rendered([path], "md")
    assert "fio ran a on /data/f1" in text
    assert "for a group (group_reporting) fio writes only those of the last job" in text


@pytest.mark.parametrize("name", ["bssplit", "bsrange"])
def test_a_list_of_sizes_goes_before_a_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(fio_layout(document(**{name: "4k/60:64k/40"})))
    assert "4k/60:64k/40 QD 1)" in measured(path) and "randread 4k QD" not in measured(path)
