"""The layout of a fleet's dashboard as it is kept in the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.features.fleet.screen.hosts import NAME, ORDERS
from iopstui.ui.core.saved_layout import DOT_SECONDS, HEAT_MAP, PERCENTILES

PANELS = ("iops", "latency", "numbers", "hosts", "runs")
"""As the keys 1 to 5 choose them."""
HOSTS = PANELS.index("hosts")
BY, REVERSED, MAP, ROWS = "by-", "reversed", "map", "rows"


@dataclass(frozen=True, slots=True)
class FleetLayout:
    """``panel`` is the open one on a small screen, ``order`` that of the hosts, ``as_map`` the
    choice between map and rows (``None``: depends on the number of hosts). As text: the words of
    everything that is not the default, e.g. "latency by-util map"."""

    panel: str = PANELS[HOSTS]
    heat_map: bool = False
    percentiles: bool = False
    seconds: int = DOT_SECONDS[0]
    order: str = NAME
    reverse: bool = False
    as_map: bool | None = None

    def __str__(self) -> str:
        words = (
            self.panel if self.panel != PANELS[HOSTS] else "",
            HEAT_MAP if self.heat_map else "",
            PERCENTILES if self.percentiles else "",
            f"{self.seconds}s" if self.seconds != DOT_SECONDS[0] else "",
            f"{BY}{self.order}" if self.order != NAME else "",
            REVERSED if self.reverse else "",
            "" if self.as_map is None else MAP if self.as_map else ROWS,
        )
        return " ".join(word for word in words if word)


def parse_fleet_layout(text: str) -> FleetLayout:
    """Parse the words of a layout, in any order. Raises ValueError for an unknown word."""
    words = text.split()
    lengths = {f"{seconds}s": seconds for seconds in DOT_SECONDS}
    orders = {f"{BY}{order}": order for order in ORDERS}
    allowed = (*PANELS, HEAT_MAP, PERCENTILES, *lengths, *orders, REVERSED, MAP, ROWS)
    wrong = next((word for word in words if word not in allowed), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not one of {', '.join(allowed)}")
    return FleetLayout(
        next((word for word in words if word in PANELS), PANELS[HOSTS]),
        HEAT_MAP in words,
        PERCENTILES in words,
        next((lengths[word] for word in words if word in lengths), DOT_SECONDS[0]),
        next((orders[word] for word in words if word in orders), NAME),
        REVERSED in words,
        next((word == MAP for word in words if word in (MAP, ROWS)), None),
    )
