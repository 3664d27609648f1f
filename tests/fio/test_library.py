from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.cli.program import build_parser
from iopstui.errors import Missing, UsageError
from iopstui.fio import library as jobs
from iopstui.fio.job_text import read_job
from iopstui.fio.library import (
    LABELS,
    find_job,
    find_shipped,
    load_job,
    parse_header,
    publisher,
    publisher_heading,
    shipped_jobs,
)
from iopstui.output.pages.jobs import explain, jobs_json, jobs_table

SHIPPED = shipped_jobs()
BY_NAME = {job.name: job for job in SHIPPED}
each_job = pytest.mark.parametrize("job", SHIPPED, ids=lambda job: job.name)


def options(name: str) -> dict[str, dict[str, str]]:
    """Section -> option -> value, read without the code under test."""
    found: dict[str, dict[str, str]] = {}
    for line in BY_NAME[name].text.splitlines():
        if line.startswith("["):
            section = found[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            option, _, value = line.partition("=")
            section[option] = value
    return found


# --- what is shipped


def test_every_job_the_documents_ask_for_is_there() -> None:
    kingsoft = {f"ksyun-qd1-{rw}" for rw in ("randwrite", "randread", "randrw")} | {
        f"ksyun-qd32-{rw}" for rw in ("randwrite", "randread", "randrw", "write", "read", "rw")
    }
    others = {
        "essd-1m-iops",
        "optane-qd8",
        "measuring-iops",
        "azure-write",
        "azure-read",
        "azure-readwrite",
    }
    vng = {"vng-randrw", "vng-randread", "vng-randwrite"}
    plain = {"fit", "mixed-4k", "passthrough-4k", "precondition", "promise", "randread-4k",
             "randwrite-4k", "seqread-1m", "seqwrite-1m", "write-and-trim",
             "zoned-write"}  # fmt: skip
    assert set(BY_NAME) == kingsoft | others | vng | plain


@each_job
def test_header_is_complete(job: jobs.ShippedJob) -> None:
    header = parse_header(job.text)
    assert tuple(header) == LABELS[: len(header)] and len(header) >= len(LABELS) - 1
    assert all(header.values())
    assert header["Writes"] in ("yes", "no")


def test_one_command_does_what_the_document_s_script_does() -> None:
    essd = BY_NAME["essd-1m-iops"]
    command = "--job essd-1m-iops --bind queues --knob rq_affinity=2 --destroy-data DEV"
    assert essd.run == f"iopstui run DEV {command}"
    shown = explain(essd, 80).partition("your device):\n\n")[2]
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(essd.run), "as it is copied"
    top = build_parser()
    for job in BY_NAME.values():
        if job.run:
            arguments = top.parse_args(shlex.split(job.run)[1:])
            assert (arguments.job, arguments.target) == (job.name, ["DEV"])
            assert arguments.destroy_data == (["DEV"] if job.writes else [])


@each_job
def test_each_job_has_an_engine_and_none_says_where_it_works(job: jobs.ShippedJob) -> None:
    sections = options(job.name)
    # fio loads an engine only when it runs the job, and not every job runs in a test
    assert sections["global"]["ioengine"] in ("libaio", "io_uring", "io_uring_cmd", "sync")
    for section in sections.values():
        assert "directory" not in section
        assert "/" not in section.get("filename", "")


def test_fio_understands_them(fio: str, tmp_path: Path) -> None:
    """fio parses all of them in one start and names what it does not understand."""
    files = [str(job.path) for job in SHIPPED]
    done = subprocess.run([fio, "--parse-only", *files], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    assert b"unrecognized" not in done.stderr + done.stdout


def test_fio_agrees_that_these_do_not_write(fio: str, tmp_path: Path) -> None:
    files = [str(job.path) for job in SHIPPED if not job.writes]
    command = [fio, "--readonly", "--parse-only", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert files and done.returncode == 0, done.stderr.decode(errors="replace")


@pytest.mark.parametrize(
    "job", [job for job in SHIPPED if job.writes], ids=lambda job: str(job.name)
)
def test_fio_agrees_that_it_writes(job: jobs.ShippedJob, fio: str, tmp_path: Path) -> None:
    command = [fio, "--readonly", "--parse-only", str(job.path)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode != 0


@pytest.mark.parametrize("name", [n for n in BY_NAME if n.startswith("ksyun-")])
def test_kingsoft_options(name: str) -> None:
    _, depth, rw = name.split("-")
    common = options(name)["global"]
    assert common["iodepth"] == depth.removeprefix("qd")
    assert common["bs"] == ("4k" if rw.startswith("rand") else "1m")
    assert (common["size"], common["runtime"], common["numjobs"]) == ("1000G", "300", "1")
    assert common["direct"] == "1" and common["ioengine"] == "libaio"
    assert [s["rw"] for s in list(options(name).values())[1:]] == [rw]


@pytest.mark.parametrize("rw", ["randrw", "randread", "randwrite"])
def test_vng_options(rw: str) -> None:
    found = options(f"vng-{rw}")
    assert found["TGS"]["readwrite"] == rw
    assert found["TGS"].get("rwmixread") == ("75" if rw == "randrw" else None)
    common = found["global"]
    assert (common["gtod_reduce"], common["iodepth"], common["size"]) == ("1", "64", "4G")
    assert "runtime" not in common


def test_measuring_iops_has_three_stonewalls_and_four_sections() -> None:
    found = options("measuring-iops")
    assert found.pop("global")["bsrange"] == "2-16k"
    assert {name: "stonewall" in section for name, section in found.items()} == {
        "zufälligschreiben": True,
        "sequentiellschreiben": True,
        "zufälliglesen": True,
        "sequentielllesen": False,
    }


def test_azure_writers_are_paced_only_beside_readers() -> None:
    both = options("azure-readwrite")
    assert both["writer1"]["rate_iops"] == "3200"
    assert "rate_iops" not in both["reader1"]
    assert "rate_iops" not in options("azure-write")["writer1"]
    assert {n: options(f"azure-{n}")["global"]["iodepth"] for n in ("read", "write")} == {
        "read": "256",
        "write": "256",
    }
    assert both["global"]["iodepth"] == "128"


def test_essd_job_splits_its_cpus_but_leaves_them_to_the_machine() -> None:
    common = options("essd-1m-iops")["global"]
    assert common["cpus_allowed_policy"] == "split"
    assert "cpus_allowed" not in common
    assert common["numjobs"] == "10"


# --- the comment block


def test_header_joins_continuation_lines() -> None:
    text = "# Title: one\n#   two\n#\n# Writes: no\n\n# Measures: not in the block\n[job]\n"
    assert parse_header(text) == {"Title": "one two", "Writes": "no"}


def test_a_label_counts_once_and_a_colon_makes_no_label() -> None:
    assert parse_header("# Title: a\n# Note: b\n# Title: c\n") == {"Title": "a Note: b Title: c"}


@pytest.mark.parametrize(
    "text", ["", "[job]\nrw=read\n", "# just a remark\n[job]\n", "\n# Title: x"]
)
def test_a_file_without_a_block_gives_nothing(text: str) -> None:
    assert parse_header(text) == {}


words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
sentences = st.lists(words, min_size=1, max_size=12)


@given(st.dictionaries(st.sampled_from(LABELS), sentences, min_size=1), st.integers(1, 4))
def test_wrapping_loses_nothing(block: dict[str, list[str]], each: int) -> None:
    text = ""
    for label, sentence in block.items():
        lines = [" ".join(sentence[i : i + each]) for i in range(0, len(sentence), each)]
        text += f"# {label}: " + "\n#   ".join(lines) + "\n"
    wanted = {label: " ".join(sentence) for label, sentence in block.items()}
    assert parse_header(text + "\n[job]\n") == wanted


@given(st.text())
def test_any_text_has_a_header_or_none(text: str) -> None:
    assert set(parse_header(text)) <= set(LABELS)


def test_a_block_that_does_not_say_is_taken_for_a_writing_one(tmp_path: Path) -> None:
    file = tmp_path / "own.fio"
    file.write_bytes(b"# Title: \xff\n[job]\n")
    job = load_job(file)
    assert (job.name, job.writes, job.title) == ("own", True, "�")


# --- finding one


def test_a_name_is_found_and_so_is_a_beginning_only_one_has() -> None:
    assert find_job("mixed-4k") == BY_NAME["mixed-4k"].path
    assert find_job("essd") == BY_NAME["essd-1m-iops"].path
    assert find_job("mixed-4k.fio") == BY_NAME["mixed-4k"].path
    assert find_shipped("measuring").name == "measuring-iops"


def test_a_whole_name_is_never_ambiguous() -> None:
    # the name of azure-readwrite begins in the same way
    assert find_shipped("azure-read").name == "azure-read"


@pytest.mark.parametrize("find", [find_job, find_shipped])
@pytest.mark.parametrize(
    ("name", "meant"),
    [("randred-4k", "randread-4k"), ("vng", "vng-randrw"), ("MIXED-4k", "mixed-4k")],
)
def test_a_wrong_name_says_what_was_probably_meant(
    find: Callable[[str], object], name: str, meant: str
) -> None:
    with pytest.raises(UsageError) as caught:
        find(name)
    assert meant in caught.value.hint and repr(name) in caught.value.message


@pytest.mark.parametrize("name", ["", "zzzzzz", "\x00", "x" * 5000, "\udcff"])
def test_nonsense_is_a_usage_error(name: str) -> None:
    for find in (find_job, find_shipped):
        with pytest.raises(UsageError) as caught:
            find(name)
        assert "iopstui jobs" in caught.value.hint


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").write_text("[a]\n")
    (tmp_path / "essd").write_text("[a]\n")
    (tmp_path / "mixed-4k").write_text("[a]\n")
    assert find_job("own") == Path("own")
    assert find_job("essd") == Path("essd"), "a file goes before the beginning of a name"
    assert find_job("mixed-4k") == BY_NAME["mixed-4k"].path, "a shipped name goes before a file"
    assert find_job("./mixed-4k") == Path("mixed-4k")
    assert find_job(str(tmp_path / "own")) == tmp_path / "own"


def test_a_missing_file_names_the_shipped_job_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_job(str(tmp_path / "mixed-4k.fio"))
    assert "does not exist" in caught.value.message
    assert "mixed-4k" in caught.value.hint


def test_a_copy_is_not_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = BY_NAME["mixed-4k"].path
    copy = tmp_path / original.name
    copy.write_bytes(original.read_bytes())
    link = tmp_path / "link"
    link.symlink_to(original)
    assert jobs.is_shipped(original) and jobs.is_shipped(link)
    assert not jobs.is_shipped(copy) and not jobs.is_shipped(tmp_path / "none")
    monkeypatch.setattr("iopstui.__file__", str(tmp_path / "__init__.py"))
    assert not jobs.is_shipped(original), "nothing is shipped where the jobs are missing"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package without jobs, in a directory that the test fills."""
    (tmp_path / "iopstui").mkdir()
    monkeypatch.setattr("iopstui.__file__", str(tmp_path / "iopstui" / "__init__.py"))
    return tmp_path


def test_installed_jobs_are_inside_the_package(package: Path) -> None:
    for where in ("jobs", "iopstui/jobs"):
        (package / where).mkdir()
    assert jobs.jobs_directory() == package / "iopstui" / "jobs"


def test_somebody_elses_jobs_directory_is_not_ours(package: Path) -> None:
    (package / "jobs").mkdir()
    with pytest.raises(Missing):
        shipped_jobs()
    (package / "pyproject.toml").touch()
    assert shipped_jobs() == ()


# --- showing them


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_table_names_every_job_and_fits(width: int) -> None:
    table = jobs_table(SHIPPED, width)
    rows = table.splitlines()[1:-2]
    headings = {publisher_heading(job.source) for job in SHIPPED}
    named = [row for row in rows if row and row[0] != " " and row not in headings]
    assert [row.split()[0] for row in named] == list(BY_NAME)
    for job in SHIPPED:
        assert job.title in " ".join(table.split())
    if width >= 80:
        assert all(len(row) <= width for row in rows)
    assert table.splitlines()[0].split() == ["JOB", "WRITES", "DESCRIPTION"]


def test_general_jobs_come_first_and_each_publisher_has_a_heading() -> None:
    assert [publisher_heading(job.source) for job in SHIPPED[:11]] == [
        *["general"] * 10,
        "Alibaba Cloud",
    ]
    table = jobs_table(SHIPPED, 80).splitlines()
    places = [table.index(words) for words in (
        "general", "Alibaba Cloud", "Kingsoft Cloud EBS", "Martin Steigerwald", "Microsoft Azure",
        "VNG Cloud",
    )]  # fmt: skip
    assert places == sorted(places) and all(table[place - 1] == "" for place in places)
    assert table[places[0] + 1].startswith("fit")
    assert table[places[-1] + 1].startswith("vng-randread ")


def test_where_a_job_is_from() -> None:
    assert publisher("Microsoft Azure, a page (x, y)") == "Microsoft Azure"
    assert publisher("iopstui; a note, and more") == publisher("iopstui.") == publisher("") == ""
    assert publisher_heading("") == "general"


def test_an_empty_table_has_a_head() -> None:
    assert jobs_table((), 80).startswith("JOB")


@each_job
def test_explaining_says_everything(job: jobs.ShippedJob) -> None:
    text = explain(job, 80)
    flat = " ".join(text.split())
    for part in (job.title, job.measures, job.source, job.look_at, job.teaches):
        assert part in flat
    for section, values in options(job.name).items():
        assert f"[{section}]" in text
        for option, value in values.items():
            assert f"    {option}={value}" in text or (not value and f"    {option}\n" in text)
    assert all(len(line) <= 80 and line == line.rstrip() for line in text.splitlines())
    assert ("--destroy-data" in text) == job.writes, "for a writing one alone"


def test_nothing_of_a_job_file_acts_on_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "evil.fio"
    file.write_text("# Title: \x1b[2Jred\n# Look at: a\x07\n\n[\x1b]0;x\x07]\nrw=read\n")
    job = load_job(file)
    for text in (explain(job, 80), jobs_table([job], 80)):
        assert text.replace("\n", "").isprintable()


def test_json_is_json() -> None:
    found = json.loads(json.dumps(jobs_json(SHIPPED)))
    assert [job["name"] for job in found] == list(BY_NAME)
    assert all(job["writes"] is BY_NAME[job["name"]].writes for job in found)
    assert set(found[0]) == {
        "name", "title", "writes", "measures", "source", "look_at", "teaches", "path", "text",
        "run",
    }  # fmt: skip


def test_a_file_that_cannot_be_looked_at_is_not_said_to_be_missing(tmp_path: Path) -> None:
    loop = tmp_path / "loop.fio"
    loop.symlink_to(loop)
    with pytest.raises(UsageError, match="Too many levels of symbolic links: the job file"):
        read_job(find_job(str(loop)))
