"""Job files are rewritten so that fio understands them exactly as iopstui does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.fio.inspect import END
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import AmbiguousLine, canonical_text

PLAIN = """\
# a comment stays
[global]
  rw = randread ; inline
bs=4k	# with a tab
filename=/dev/${DISK}

[a]
numjobs=4 ; four
time_based
"""


NO_OPTION = "this is not the name of a fio option"
ALONE = "a section is [name], alone on its line"
INCLUDED = "other files are not included; put their lines here"
DECIMAL = "write a plain decimal number"
SIZE = "write a plain size, such as 4k or 1g"
CONTROL = "it has control characters in it"
REPLACED = "fio would replace {} and calculate; write the number"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[iopstui-end]", "iopstui marks the end of the file with this name"),
        ("include more.inc", INCLUDED),
        ("includex=1", INCLUDED),
        *((f"{name}=0x2", DECIMAL) for name in ("numjobs", "nrfiles", "iodepth", "loops")),
        ("nrfiles=(2*3)", DECIMAL),
        ("iodepth=1e2", DECIMAL),
        *((f"{name}=0x10", SIZE) for name in (
            "size", "filesize", "file_size", "io_size", "io_limit", "offset", "bs", "blocksize",
            "ba",
        )),
        *((f"size=1{sign}2", SIZE) for sign in "()*/+"),
        ("size=$mb_memory*1024", REPLACED.format("$mb_memory")),
        ("bs=$pagesize", REPLACED.format("$pagesize")),
        ("description=see $ncpus", REPLACED.format("$ncpus")),
        ("[globals]", "fio takes every name that begins so for [global]"),
        ("[a", ALONE),
        ("[a] rw=read", ALONE),
        ("[a]]", ALONE),
        ("[" + "x" * 121 + "]", "the name is longer than 120 bytes"),
        ("[" + "ä" * 61 + "]", "the name is longer than 120 bytes"),
        ("filename=a\x0bb", CONTROL),
        ("filename=a\rb", CONTROL),
        ("filename=a\x9fb", CONTROL),
        ("FILENAME=a", "fio's options are in lower case: filename"),
        ("Exec_Prerun=a", "fio's options are in lower case: exec_prerun"),
        ("numjobs=0", "write 1 or more"),
        ("${NAME}=a", NO_OPTION),
        ("file name=a", NO_OPTION),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused_with_its_line(line: str, why: str) -> None:
    with pytest.raises(AmbiguousLine) as caught:
        canonical_text(f"[a]\n# two\n{line}\nrw=read\n", {})
    assert caught.value.line == 3
    assert caught.value.message == f"line 3: {line!r}: {why}"


def test_the_longest_line_and_the_longest_name() -> None:
    for line in ("description=" + "x" * 1988, "[" + "x" * 120 + "]", "d=a\xa0e"):
        assert canonical_text(f"[a]\n{line}\n", {}).split("\n")[1] == line
    assert canonical_text("[a]\nd\t=\te\n", {}).split("\n")[1] == "d=e"
    line = "description=" + "x" * 1989
    with pytest.raises(AmbiguousLine) as caught:
        canonical_text(f"[a]\n{line}\n", {})
    assert caught.value.message == f"line 2: {line[:30]!r}...: it is longer than 2000 bytes"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a#b", "fio cuts a value at # and ;"), ("a;b", "fio cuts a value at # and ;"),
        ("${A}", "fio would look for an environment variable in it"),
        ("$ncpus", REPLACED.format("$ncpus")),
        (" a", "fio would strip blanks or control characters"),
        ("a\x1fb", "fio would strip blanks or control characters"),
        ("a\x7fb", "fio would strip blanks or control characters"),
        ("x" * 2001, "it is longer than 2000 bytes"), ("x" * 2000, ""), ("a b", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_value_that_fio_would_read_as_another(value: str, why: str) -> None:
    assert jobfile.why_unsafe(value) == why


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("iodepth", "'iodepth' is not of the form OPTION=VALUE", "For example: --set iodepth=32"),
        ("=4", "'=4' is not of the form OPTION=VALUE", "For example: --set iodepth=32"),
        ("Bs=4k", "'Bs=4k' is not a fio option", "See: fio --cmdhelp=all"),
        ("include=x", "'include=x' is not a fio option", "See: fio --cmdhelp=all"),
        (
            "bs=4k rw=read",
            "'bs=4k rw=read' has more than one option",
            "One at a time: --set bs=4k",
        ),
        (
            "bs=4k, rw=read",
            "'bs=4k, rw=read' has more than one option",
            "One at a time: --set bs=4k",
        ),
        ("bs=4k#", "'bs=4k#' is not accepted: fio cuts a value at # and ;", ""),
        ("numjobs=0x2", f"'numjobs=0x2' is not accepted: {DECIMAL}", ""),
    ],
)
def test_what_set_does_not_take(text: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobfile.parse_override(text)
    assert (caught.value.message, caught.value.hint) == (f"--set {says}.", hint)


SAME = ("bs blocksize bsrange blocksize_range bssplit", "rw readwrite", "runtime timeout",
        "direct buffered", "io_size io_limit", "name jobname", "size filesize", "numjobs",
        "filename directory", "iodepth", "ioengine")  # fmt: skip


@pytest.mark.parametrize("names", SAME)
def test_an_option_is_replaced_under_each_of_its_names(names: str) -> None:
    for name in names.split():
        assert jobfile.option_names(name) == frozenset(names.split())
        old = "".join(f"{one}=old\n" for one in names.split())
        text = f"[global]\n{old}[a]\n{old}".rstrip()
        assert jobfile.with_overrides(text, {name: "new"}) == f"[global]\n[a]\n{name}=new\n"
        (job,) = jobfile.effective_sections(f"[global]\n{old}[a]\n{name}=new\n")
        places = {"filename", "directory"}  # for fio one does not replace the other
        rest = dict.fromkeys(places & set(names.split()), "old")
        if name in ("bs", "blocksize"):
            rest = dict.fromkeys(("bsrange", "blocksize_range", "bssplit"), "old")
        elif name in ("bsrange", "blocksize_range"):
            rest = dict.fromkeys(("bs", "blocksize", "bssplit"), "old")
        elif name == "bssplit":
            rest = dict.fromkeys(("bs", "blocksize", "bsrange", "blocksize_range"), "old")
        assert job.options == {**rest, name: "new"}


def test_an_option_before_any_section_is_refused() -> None:
    with pytest.raises(AmbiguousLine, match="before the first"):
        canonical_text("rw=read\n[a]\n", {})


def test_a_variable_brings_nothing_but_a_value() -> None:
    for value in ("x#y", "x;y", "a\nrw=write", "${OTHER}", "$ncpus", " x"):
        with pytest.raises(AmbiguousLine):
            canonical_text("[a]\nfilename=${V}\n", {"V": value, "OTHER": "o"})


def test_variables_that_are_not_set_are_named() -> None:
    text = canonical_text("[a]\nfilename=${NOWHERE}/x\n#${NOT_THIS}\nbs=${BS}\n", {"BS": "4k"})
    assert list(jobfile.unset_variables(text)) == [("NOWHERE", "filename=${NOWHERE}/x")]
    assert not list(jobfile.unset_variables(jobfile.with_overrides(text, {"filename": "/dev/x"})))


@pytest.mark.parametrize(
    "text", ["bs=4k#", "filename=a;b", "numjobs=0x2", "include=x", "bs=$ncpus"]
)
def test_set_refuses_ambiguous_input(text: str) -> None:
    with pytest.raises(UsageError):
        jobfile.parse_override(text)


def test_only_some_sections() -> None:
    text = "[global]\nbs=4k\n[a]\nrw=read\n[b]\nrw=write\n[global]\nbs=8k\n[c]\n"
    assert (
        jobfile.only_sections(text, [0, 2])
        == "[global]\nbs=4k\n[a]\nrw=read\n[global]\nbs=8k\n[c]\n"
    )


LINE = st.text(alphabet="ab[]#;=$ {}\t\r\x0b\n0x", max_size=12)


@example("; \x0b")
@given(st.lists(LINE, max_size=6).map("\n".join))
def test_what_is_taken_means_the_same_when_read_again(text: str) -> None:
    try:
        once = canonical_text(text, {"a": "1"})
    except AmbiguousLine:
        return
    assert canonical_text(once, {}) == once
    for section in jobfile.sections(once):
        for value in section.options.values():
            assert not set("#;\r\x0b") & set(value)


HEAD = st.sampled_from(["[a]", "[b x]", " [c]", "[d] # x", "[e", "[global]", "[globalx]", "# [f]"])
OPTION = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["bs", "numjobs", "nrfiles", "size", "description", "rw", "time_based", "x"]),
    st.sampled_from(["=", " = ", "", "=="]),
    st.sampled_from(["4k", "2", "0x2", "read", "randread", "a b", "$ncpus", "(1+1)"]),
    st.sampled_from(["", "\t", "\r", " "]),
    st.sampled_from(["", "#c", " ; c", ";#"]),
)


@given(st.lists(st.one_of(HEAD, OPTION), max_size=7).map("\n".join))
def test_fio_understands_the_very_same(
    tmp_path_factory: pytest.TempPathFactory, fio: str, text: str
) -> None:
    """What fio reports of our text is what our reader finds in it, and no more."""
    try:
        ours = canonical_text(text, {})
    except AmbiguousLine:
        return
    file = tmp_path_factory.mktemp("job") / "x.fio"
    file.write_text(ours + END)
    said = subprocess.run([fio, "--parse-only", "--debug=parse", str(file)], capture_output=True,
                          text=True).stdout  # fmt: skip
    names = re.findall(r"^parse +\d+ Parsing section \[(.*)\]$", said, re.M)
    found = [section.name for section in jobfile.sections(ours)]
    # fio stops at the first section it does not accept
    assert names == [*found, "iopstui-end"][: len(names)]


def test_the_end_is_no_option_of_any_fio(fio: str) -> None:
    listed = subprocess.run([fio, "--cmdhelp=all"], capture_output=True, text=True).stdout
    assert "iopstui" not in listed and END.count("[") == 1
    assert Path(fio).exists()
