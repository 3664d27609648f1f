"""The dashboard's layout in the configuration."""

from __future__ import annotations

from dataclasses import dataclass

PANELS = ("iops", "latency", "numbers", "cpus", "runs", "completions")
"""In the order of the keys 1 to 6."""
DOT_SECONDS = (1, 2, 5, 10, 30, 60, 300, 900)
"""Seconds that a column of a chart can show."""
ZOOMED, HEAT_MAP, PERCENTILES = "zoomed", "heat-map", "percentiles"


@dataclass(frozen=True, slots=True)
class SavedLayout:
    """``panel`` is the open one on a small screen; ``zoomed``: it fills a large screen, too.
    ``seconds``: per column of a chart. As text: the settings that are not the default, e.g.
    "latency zoomed heat-map 10s"."""

    panel: str = PANELS[0]
    zoomed: bool = False
    heat_map: bool = False
    percentiles: bool = False
    seconds: int = DOT_SECONDS[0]

    def __str__(self) -> str:
        settings = (
            self.panel if self.panel != PANELS[0] or self.zoomed else "",
            ZOOMED if self.zoomed else "",
            HEAT_MAP if self.heat_map else "",
            PERCENTILES if self.percentiles else "",
            f"{self.seconds}s" if self.seconds != DOT_SECONDS[0] else "",
        )
        return " ".join(setting for setting in settings if setting)


def parse_layout(text: str) -> SavedLayout:
    """Parse a layout, whose settings may be in any order. Raises ValueError for another word."""
    settings = text.split()
    lengths = {f"{seconds}s": seconds for seconds in DOT_SECONDS}
    allowed = (*PANELS, ZOOMED, HEAT_MAP, PERCENTILES, *lengths)
    wrong = next((setting for setting in settings if setting not in allowed), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not one of {', '.join(allowed)}")
    return SavedLayout(
        next((setting for setting in settings if setting in PANELS), PANELS[0]),
        ZOOMED in settings,
        HEAT_MAP in settings,
        PERCENTILES in settings,
        next((lengths[setting] for setting in settings if setting in lengths), DOT_SECONDS[0]),
    )
