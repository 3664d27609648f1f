"""The keys that open a page, and close it again."""

from __future__ import annotations

from iopstui.ui.core.key import Key

FINDINGS = Key("f", "f")
HELP = Key("question_mark,f1", "?")
PLACES = Key("o", "o")
RUNS = Key("v", "v")
SETTINGS = Key("k", "k")
USERS = Key("u", "u")
