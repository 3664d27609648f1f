"""An answer and its parts."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.model.findings.advice import NO_ADVICE, Advice

GOOD, WARNING, CRITICAL = "good", "warning", "critical"
SIGNS = {GOOD: "●", WARNING: "▲", CRITICAL: "■"}
RANKS = {CRITICAL: 0, WARNING: 1, GOOD: 2}
OF_A_SECOND = "job"
"""The rule of answers that only have fio's figures of the last second."""
FINDING = "finding-"
"""Rules of answers that are a finding's words begin so."""
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
    next: Advice = NO_ADVICE

    @property
    def sentence(self) -> str:
        """ "▲ vda is busy: ... · fio (965) does 64 % of its bytes"."""
        who = f" · {self.who}" if self.who else ""
        return f"{SIGNS[self.state]} {self.text}{who}"

    @property
    def repeats_finding(self) -> bool:
        """Whether a finding has said the same."""
        return self.rule.startswith(FINDING)

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it news: figures alone do not, and neither do two ways to be well. Who does it
        is news once it is known."""
        if self.state == GOOD:
            return self.state, self.verdict
        return self.state, self.verdict, self.disk, self.rule, "who" if self.who else ""


@dataclass
class AnswerTotal:
    """The last answer of some time, and the worst one before it, with the seconds they are of."""

    last: tuple[float, Answer] | None = None
    worst: tuple[float, Answer] | None = None

    def add(self, t: float, answer: Answer) -> None:
        """An answer was given at second ``t``."""
        self.last = t, answer
        if self.worst is None or RANKS[answer.state] <= RANKS[self.worst[1].state]:
            self.worst = t, answer

    @property
    def answers(self) -> list[tuple[float, Answer]]:
        """The worst one first, then the last one if that is another."""
        both = [pair for pair in (self.worst, self.last) if pair is not None]
        return both[:1] if len(both) == 2 and both[0][1].key == both[1][1].key else both
