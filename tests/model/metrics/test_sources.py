"""A source of samples is one entry of a list: everything that shows it follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from iopstui.linux.counters.sampler import KernelSampler
from iopstui.model import sources
from iopstui.model.figures.figure import SECONDS, Figure
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.sources import SOURCES, figures, parse_pressure

PRESSURE = b"""some avg10=0.11 avg60=2.46 avg300=2.57 total=923954904
full avg10=0.01 avg60=0.50 avg300=0.53 total=204993427
"""


def frames(grown_us: int) -> list[Frame]:
    """A second each, in which ``some`` grew by ``grown_us`` µs and ``full`` by half of that."""
    builder = FrameBuilder(opened=["vda"])
    found = []
    for n, raw in enumerate(made.raws(made.RUN)):
        assert raw.kernel is not None
        counters = {"some": grown_us * n, "full": grown_us * n // 2}
        kernel = replace(raw.kernel, more={"pressure": counters},
                         monotonic_ns=10**12 + n * 10**9)  # fmt: skip
        found.append(builder.feed(replace(raw, kernel=kernel)))
    return found


def test_pressure_as_the_kernel_writes_it() -> None:
    assert parse_pressure(PRESSURE) == {"some": 923_954_904, "full": 204_993_427}


def test_before_linux_5_13_there_was_no_full_line_for_cpus() -> None:
    assert parse_pressure(PRESSURE.splitlines(keepends=True)[0]) == {"some": 923_954_904}


@given(st.integers(0, 2**62), st.integers(0, 10**9), st.floats(0.25, 60))
def test_a_counter_s_growth(before: int, grown: int, seconds: float) -> None:
    def used(now: int) -> dict[str, float | None]:
        counters = {"package": now}, {"package": before}
        return figures({"power": counters[0]}, {"power": counters[1]}, seconds)["power"]

    def waited(now: int) -> float | None:
        return figures({"pressure": {"some": now}}, {"pressure": {"some": before}}, seconds)[
            "pressure"
        ]["some"]

    assert used(before + grown)["package"] == pytest.approx(grown / seconds / 1e6)
    assert used(before - 1)["package"] is None, "it went backwards"
    assert waited(before + grown) == pytest.approx(min(100.0, grown / seconds / 1e4))


def test_every_figure_is_in_the_registry() -> None:
    for source in SOURCES:
        for figure in source.figures:
            field = BY_ID[f"kernel.{source.name}.{figure.name}"]
            assert (field.unit, field.meaning) == (figure.unit, figure.meaning)
            assert field.source == (source.place or f"/proc/{source.file}")
            assert bool(source.place) is not bool(source.file)


@pytest.mark.parametrize("content", [None, b"", b"some total", b"some total=x\n", b"\xff\n"])
def test_a_file_that_is_not_there_or_another_is_missing(
    tmp_path: Path, content: bytes | None
) -> None:
    tree = Tree(tmp_path)
    if content is not None:
        (tree.roots.proc / "pressure").mkdir(parents=True)
        (tree.roots.proc / "pressure/io").write_bytes(content)
    sampler = KernelSampler(tree.roots, ["vda"], [])
    try:
        first, second = sampler.sample(), sampler.sample()
    finally:
        sampler.close()
    assert not first.more.get("pressure") and not second.more.get("pressure")
    assert FrameBuilder().feed(replace(made.raws(made.RUN)[0], kernel=first)).more == {}


def test_another_source_takes_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(data: bytes) -> sources.Counters:
        return {"forks": int(data)}

    forks = Figure("forks", "1/s", "processes made", "forks", SECONDS)
    more = (*SOURCES, sources.Source("load", "loadavg", parse, (forks,)))
    monkeypatch.setattr(sources, "SOURCES", more)
    found = sources.figures({"load": {"forks": 30}}, {"load": {"forks": 10}}, 2.0)
    assert found == {"load": {"forks": 10.0}}
