"""An answer and its parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from iopstui.model.findings.advice import NO_ADVICE, Advice

GOOD, WARNING, CRITICAL = "good", "warning", "critical"
SIGNS = {GOOD: "●", WARNING: "▲", CRITICAL: "■"}
RANKS = {CRITICAL: 0, WARNING: 1, GOOD: 2}
OF_A_SECOND = "job"
"""The rule of answers that only have fio's figures of the last second."""
GONE = "gone"
"""The rule of the answer on a disk that is no longer there, or has no size any more."""
FINDING = "finding-"
"""The rule of an answer that quotes a finding begins with this."""
WAITS, NOTHING, UNKNOWN = "waits", "nothing", "unknown"
"""Whether I/Os wait for the disk or for a limit on the way to it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``rule`` names the row of the table that won; ``text`` is the statement, with its comparison.
    ``who`` uses the disk ("": not known), ``next`` is one step ("": none is needed). ``verdict`` is
    one of WAITS, NOTHING and UNKNOWN. The figures are means over the last ``over_s`` seconds (0:
    the text says of which, or has none)."""

    disk: str
    rule: str
    state: str
    text: str
    verdict: str = NOTHING
    who: str = ""
    next: Advice = NO_ADVICE
    over_s: int = field(default=0, compare=False)
    reason: str = field(default="", compare=False)
    """The end of ``text``, after fio's figures of a second and where its I/Os are in flight."""
    period: str = field(default="", compare=False)
    """The time that ``text`` names in brackets: the seconds of a finding."""

    @property
    def span(self) -> str:
        """ "over 5 s"; "" if the text says of which time it is, or has no means."""
        return f"over {self.over_s} s" if self.over_s else ""

    @property
    def sentence_with_span(self) -> str:
        """The sentence for a reader who sees no clock beside it."""
        return f"{self.sentence} ({self.span})" if self.span else self.sentence

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
    def text_without_period(self) -> str:
        """``text`` for a reader with another clock."""
        return self.text.replace(f" ({self.period})", "", 1) if self.period else self.text

    @property
    def of_ended_run(self) -> Answer:
        """This answer in the past tense, for after the end of its run."""
        if self.rule != OF_A_SECOND and not self.repeats_finding:
            return self
        text = self.text.replace("fio does", "fio did", 1)
        return replace(self, text=f"Before the run ended: {text}")

    @property
    def key(self) -> tuple[str, ...]:
        """Answers with equal keys are not reported again: other figures, or another rule that finds
        all well, are no news."""
        if self.state == GOOD:
            return self.state, self.verdict
        return self.state, self.verdict, self.disk, self.rule, "who" if self.who else ""


@dataclass
class AnswerTotal:
    """The last answer of a period, and the worst one before it, each with its second."""

    last: tuple[float, Answer] | None = None
    worst: tuple[float, Answer] | None = None

    def add(self, t: float, answer: Answer) -> None:
        """An answer was given at second ``t``."""
        self.last = t, answer
        if self.worst is None or RANKS[answer.state] <= RANKS[self.worst[1].state]:
            self.worst = t, answer

    @property
    def answers(self) -> list[tuple[float, Answer]]:
        """The worst answer, then the last one if it differs."""
        both = [pair for pair in (self.worst, self.last) if pair is not None]
        return both[:1] if len(both) == 2 and both[0][1].key == both[1][1].key else both


# An answer in fewer words, where a line has no room for all of it.
#
# Whole parts are left out in this order: the age of a comparison, how busy the disk is, whether
# anything waits, further figures from the last one on, what is said about the first one, the device
# through which the disk is used, who uses it. The process number always stays.


_ASIDES = re.compile(r" \((?:last |\d+:\d\d|\d+(?: to \d+)?: )[^()]*\)")
"""The age of a comparison, the seconds of a finding, and which runs were points before a run."""
_NUMBER = re.compile(r"(?<![\w(/.-])\d")
"""A figure, but neither a process number nor a digit in a name."""
_PART_ENDS = re.compile(r"(?:[;:.]|,(?! (?:but|and|or|not|none)\b)) ")
"""Where a part ends; a part that qualifies the one before it stays with it."""
_LIST, _LIST_PARTS = re.compile(r"in flight ([\d.]+): ([^;]+)$"), re.compile(r" ([\d.]+)(?:,|$)")
"""Where the I/Os in flight are."""
REST_SHARE = 0.05
"""A smaller part of them is not told."""
_PERSON = re.compile(
    r"(?:(\S+).*? \((\d+)(?:, [^()]*)?\)|(.+?) \((\d+ processes)\)).*?"
    r"( through \S+)? does (all|(?:at least )?\d+ %) of its bytes"
)
_LESS = tuple(map(re.compile, (
    r" \(device p99 [^()]*\)", r" at [\d.]+ % busy\b", r" with [\d.]+k? in flight$",
)))  # fmt: skip
"""Less telling than who uses the disk, or than another part, in the order in which they yield."""
_WAITING = re.compile(r"; (?:nothing waits|no (?:queue|task waits)|tasks wait)\b[^;]*$")
"""Whether anything waits: matters more than how busy the disk is, or that a share is of bytes."""
_ITS_FIGURE = re.compile(r" \([\d.]+k? in flight\)$| of the time$")
MEAN = " on average"
_WAY, _OF_BYTES = re.compile(r" through \S+(?=: )"), " of bytes"
ELLIPSIS = "…"


def shortened(text: str, who: str, room: int, width: Callable[[str], int]) -> tuple[str, str]:
    """(text, who) in at most ``room`` cells with " · " between them; ``width`` counts cells."""
    for words, name in _ranked(text, who):
        if width(f"{words} · {name}" if name else words) <= room:
            return words, name
    *_, (words, _) = _ranked(text, "")
    return _whole_words(words, room, width), ""


def says_what_waits(text: str) -> bool:
    """Whether the text ends with whether anything waits."""
    return _WAITING.search(text) is not None


def short_who(who: str) -> str:
    """ "fio --name=hog (965, container 8c1d2f0a9b7e) through loop0 does 64 % of its bytes" -> "fio
    (965) through loop0: 64 % of bytes"."""
    match = _PERSON.fullmatch(who)
    if match is None:
        return who
    share = "100 %" if match[6] == "all" else match[6].replace("at least ", "≥ ")
    person = f"{match[1] or match[3]} ({match[2] or match[4]}){match[5] or ''}"
    return f"{person}: {share}{_OF_BYTES}"


def _ranked(text: str, who: str) -> Iterator[tuple[str, str]]:
    """What to try, the longest first."""
    yield text, who
    who = short_who(who)
    yield text, who
    asides = [*_ASIDES.finditer(text)][:1]
    texts = [text := _ASIDES.sub("", text)]
    for end in reversed([*_PART_ENDS.finditer(text)]):
        shorter = text[: end.start()] + _rest(text, end)
        if _NUMBER.search(shorter) is None and _NUMBER.search(text):
            break
        # what is left has room for its time again
        texts += [shorter[: aside.start()] + aside[0] + shorter[aside.start() :]
                  for aside in asides if len(shorter) >= aside.start()]  # fmt: skip
        texts.append(shorter)
        if not who:
            *_, least = less = [*_without_details(shorter)]
            texts += [*less, least.removesuffix(MEAN)]
    whole = [*texts]
    if says_what_waits(whole[0]):
        waiting = [whole[0], _ITS_FIGURE.sub("", whole[0])]
        for detail in _LESS[:2]:
            waiting.append(detail.sub("", waiting[-1]))
        names = who, who.removesuffix(_OF_BYTES)
        yield from ((text, name) for name in names for text in dict.fromkeys(waiting))
        yield waiting[-1].replace(MEAN, "", 1), names[1]
    if who:
        texts += _without_details(texts[-1])
    here = _WAY.sub("", who)
    forms = [one for name in (who, here) for one in (name, name.removesuffix(_OF_BYTES))]
    for words in (texts, [texts[-1].removesuffix(MEAN)] * bool(who)):
        yield from ((text, name) for name in dict.fromkeys(forms) for text in words)
    if who:
        yield from ((words, "") for words in whole)


def _without_details(text: str) -> Iterator[str]:
    for less in _LESS:
        text = less.sub("", text)
        yield text


def _rest(text: str, end: re.Match[str]) -> str:
    """Says how many of the I/Os are in the parts that are left out ("in flight 8.0: vda 6.0")."""
    found = _LIST.search(text, 0, end.start())
    if found is None or end[0] != ", ":
        return ""
    named = sum(float(part) for part in _LIST_PARTS.findall(found[2]))
    rest = float(found[1]) - named
    return f", elsewhere {rest:.1f}" if rest >= REST_SHARE * float(found[1]) else ""


def _whole_words(text: str, room: int, width: Callable[[str], int]) -> str:
    words = text.split(" ")
    while len(words) > 1 and width(" ".join(words) + ELLIPSIS) > room:
        words.pop()
    return " ".join(words).rstrip(",;:") + ELLIPSIS
