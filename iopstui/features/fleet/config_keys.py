"""Configuration keys that only a fleet uses: their checks, commands and defaults."""

from __future__ import annotations

import argparse


def _layout(text: str) -> str:
    from iopstui.features.fleet.screen.hosts import LAYOUT_PANELS, LAYOUT_WORDS
    from iopstui.ui.core.preferences import parse_layout

    try:
        return str(parse_layout(text, LAYOUT_PANELS, LAYOUT_WORDS))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


KEYS = {"fleet-layout": (_layout, ("fleet", "replay"), "hosts by name")}
