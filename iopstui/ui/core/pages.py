"""The keys that open a page, and close it again."""

from __future__ import annotations

from iopstui.ui.core.key import Key

FINDINGS = Key("f", "f")
HELP = Key("question_mark,f1", "?")
PROBE_KEY = Key("i", "i")
LESSONS = Key("l", "l")
LOG = Key("e", "e")
PROCESSES = Key("u", "u")
QUEUE_MAP = Key("o", "o")
RUNS = Key("v", "v")
SETTINGS = Key("k", "k")
SLOWEST = Key("x", "x")
THEMES = Key("T", "T")
WAITS_KEY = Key("W", "W")
WORKLOAD = Key("C", "C")
