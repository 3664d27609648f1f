"""`--volume` on the screen: its limits on the charts, its credits in the first line."""

from __future__ import annotations

from pathlib import Path

import pytest
import ui_fakes as fakes
from test_app import running, screen_text

from iopstui.catalog import read_catalog
from iopstui.cli.options import parse_volume
from iopstui.errors import UsageError
from iopstui.model.volumes.promised import promised_figures
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.draw.style import UTF8

CATALOG = read_catalog(Path("/nonexistent"))


async def render_volume(size: tuple[int, int], volume: str, gib: float) -> str:
    fake = fakes.FakeController()
    app = IopstuiApp(
        Backend(lambda paths: fake, lambda: fakes.DEVICES, fakes.JOBS,
                volume=promised_figures(CATALOG.volume(volume), gib)),
        FirstView(("/dev/nvme0n1",), "mixed-4k", run_at_once=False), Appearance(UTF8),
    )  # fmt: skip
    app.fake = fake  # type: ignore[attr-defined]
    async with app.run_test(size=size) as pilot:
        await running(app, pilot, 3)
        return screen_text(app)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_credits_are_in_the_first_line_and_limits_on_the_chart(
    size: tuple[int, int],
) -> None:
    # the fakes do more IOPS than the volume's burst allows, so its lines are below their curve
    text = await render_volume(size, "aws/gp2", 100)
    assert "gp2: burst for ≤ " in text.splitlines()[0]
    assert UTF8.level * 8 in text


async def test_without_credits_the_class_is_named() -> None:
    text = await render_volume((120, 36), "vng/nvme-5000", 100)
    assert text.splitlines()[0].split()[:3] == ["home", "›", "nvme-5000"]


async def test_a_limit_far_above_all_values_does_not_flatten_them() -> None:
    text = await render_volume((120, 36), "aliyun/essd-pl3", 20_000)
    assert UTF8.level * 8 not in text


@pytest.mark.parametrize("text, iops", [
    ("aws/gp2,size=100g", 300), ("aws/gp3,size=100g,iops=6000,throughput=500MiB/s", 6000),
    ("azure/p60,instance=Standard_D8ds_v4,cached", 16000),
])  # fmt: skip
def test_the_option_names_the_volume_and_its_figures(text: str, iops: float) -> None:
    assert parse_volume(text).iops["read"] == iops


@pytest.mark.parametrize("text, says", [
    ("aws/gp2", "depend on the size"), ("aws/gp9,size=1g", "aws/gp9"),
    ("aws/gp2,size=x", "'x' is not a size"), ("aws/gp2,colour=red", "'colour' is not one of its"),
    ("aws/gp2,size", "not a size"), ("azure/p60,cached=yes", "'cached' is not one of its"),
    ("azure/p60,instance=none", "none"), ("aws/gp2,size=1g,size=2g", "given twice"),
    ("azure/p60,throughput=5", "cannot be bought separately"), ("", "names no class"),
])  # fmt: skip
def test_bad_volume_options_are_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_volume(text)
