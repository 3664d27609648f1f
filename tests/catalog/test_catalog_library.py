"""Volume files: the shipped ones name a source for each figure; mistakes in others are reported."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.catalog import load_provider, read_catalog
from iopstui.errors import UsageError
from iopstui.model.volumes.schema import parse_provider

FILES = sorted(Path(__file__).parents[2].joinpath("volumes").glob("*.toml"))
GOOD = """
title = "Mine"
[source.doc]
page = "Page"
date = 2024-05-31
[class.fast]
title = "Fast"
iops = { base = 1000, per_gib = 3, max = 9000, source = "doc" }
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_files_pass_the_linter(path: Path) -> None:
    provider, problems = load_provider(path)
    assert problems == []
    assert provider.classes
    used = set()
    for one in provider.classes:
        used |= {formula.source for formula in one.formulas.values()} | set(one.cited.values())
        assert all(formula.source in one.sources for formula in one.formulas.values())
    for source in provider.sources.values():
        assert source.page and datetime.date.fromisoformat(source.date)
        # this provider's pages have no addresses of their own
        assert source.url or provider.name == "vng"
    assert used


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "volumes"


def write(own: Path, text: str | bytes, name: str = "mine.toml") -> Path:
    own.mkdir(exist_ok=True)
    path = own / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_files_of_the_user_are_added(own: Path) -> None:
    write(own, GOOD)
    catalog = read_catalog(own)
    assert catalog.problems == ()
    assert catalog.volume("fast").id == "mine/fast"
    assert catalog.volume("mine/fast").sources["doc"].date == "2024-05-31"


def test_a_file_of_the_user_replaces_a_shipped_class(own: Path) -> None:
    write(own, GOOD.replace("class.fast", "class.gp2"), "aws.toml")
    assert read_catalog(own).volume("aws/gp2").title == "Fast"
    assert read_catalog(own).volume("aws/gp3").title != "Fast"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "is not TOML"),
        ("a = [[[", "is not TOML"),
        (b"\xff\xfe", "not UTF-8"),
        ("", "has neither"),
        (GOOD.replace(', source = "doc"', ""), "class.fast.iops: no source"),
        (GOOD.replace('"doc" }', '"dok" }'), "there is no [source.dok]"),
        (GOOD.replace("date = 2024-05-31", ""), "source.doc: date must be a day"),
        (GOOD.replace("2024-05-31", '"May"'), "must be a day"),
        (GOOD.replace("base = 1000", "base = -1"), "base must be a number"),
        (GOOD.replace("base = 1000", "base = true"), "base must be a number"),
        (GOOD.replace("max = 9000", "max = 10"), "base is above max"),
        (GOOD.replace("per_gib", "per_gb"), "unknown key per_gb"),
        (GOOD.replace("base = 1000, per_gib = 3, max = 9000,", ""), "has no value"),
        (GOOD.replace("base = 1000, per_gib = 3, max = 9000", "steps = [[9, 1], [3, 2]]"),
         "steps must rise"),
        (GOOD.replace("base = 1000, per_gib = 3, max = 9000", "steps = [[9, 1, 2]]"), "pairs"),
        (GOOD.replace("class.fast", 'class."fa st"'), "names may have letters"),
        (GOOD.replace("iops =", "throughput ="), "unit must be MB/s or MiB/s"),
        (GOOD.replace("iops = {", "iops = 5 # {"), "must be a table"),
        (GOOD + 'random_size = "4x"', "random_size must be a block size"),
        (GOOD + "[instance.big]", "needs uncached"),
    ],
)  # fmt: skip
def test_a_file_with_a_mistake_is_named_and_not_used(
    own: Path, text: str | bytes, words: str
) -> None:
    path = write(own, text)
    catalog = read_catalog(own)
    assert len(catalog.problems) == 1
    assert words in catalog.problems[0] and str(path) in catalog.problems[0]
    assert not any(one.startswith("mine/") for one in catalog.classes)
    assert catalog.volume("gp2")


def test_what_is_no_file(own: Path) -> None:
    own.mkdir()
    os.mkfifo(own / "pipe.toml")
    (own / "gone.toml").symlink_to("nowhere")
    (own / "dir.toml").mkdir()
    write(own, b"# " + b"x" * (1 << 20), "long.toml")
    assert len(read_catalog(own).problems) == 4


@pytest.mark.parametrize(
    ("name", "meant"),
    [("aws/gp4", "aws/gp"), ("aliyun/essd-p1", "aliyun/essd-pl1"), ("essd-pl9", "essd-pl"),
     ("azure/premium", "azure/premium-v2")],
)  # fmt: skip
def test_near_names_are_offered(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match="No volume class") as raised:
        read_catalog(Path("/nonexistent")).volume(name)
    assert meant in raised.value.hint
    assert "iopstui volumes" in raised.value.hint


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["class", "source", "a", "iops", "throughput", "burst", "steps", "unit",
                         "base", "size", "provision", "latency", "title", "notes", "models"]),
        inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["class", "source", "instance", "title"]), values))
def test_nonsense_is_told_never_raised(data: dict[str, object]) -> None:
    _, problems = parse_provider(data, "x")
    assert problems
