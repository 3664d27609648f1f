"""An answer and its parts."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, WARNING, CRITICAL = "good", "warning", "critical"
SIGNS = {GOOD: "●", WARNING: "▲", CRITICAL: "■"}
RANKS = {CRITICAL: 0, WARNING: 1, GOOD: 2}
WAITS, NOTHING, UNKNOWN = "waits", "nothing", "unknown"
"""Whether I/Os wait for the disk or for a limit on the way to it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``rule`` names the row of the table that won; ``text`` is what is so, with what it is
    compared with. ``who`` uses the disk ("": not known), ``next`` is one step ("": none is
    needed). ``verdict`` is one of WAITS, NOTHING and UNKNOWN."""

    disk: str
    rule: str
    state: str
    text: str
    verdict: str = NOTHING
    who: str = ""
    next: str = ""

    @property
    def sentence(self) -> str:
        """ "▲ vda is busy: ... · fio (965) does 64 % of its bytes"."""
        who = f" · {self.who}" if self.who else ""
        return f"{SIGNS[self.state]} {self.text}{who}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it another answer: figures alone do not."""
        return self.disk, self.rule, self.state, self.verdict
