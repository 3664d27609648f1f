"""Counters of cgroups without those of the groups below them; together they are the top's
counter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.cgroups import OwnCounts, Totals, nearest_ancestor

PATHS = ("/", "/a", "/a/b", "/a/b/c", "/a/d", "/e f")


def totals(**each: int) -> Totals:
    """One counter of each group on sda; "all" is the top, "__" a slash."""
    return {
        ("/" if name == "all" else "/" + name.replace("__", "/"), "sda"): (count,)
        for name, count in each.items()
    }


def fed(own: OwnCounts, **each: int) -> dict[str, int]:
    return {path: n for (path, _), (n,) in own.feed(totals(**each)).items()}


def test_what_is_gone_is_not_the_work_of_the_one_above() -> None:
    own = OwnCounts()
    fed(own, all=1000, s=900, s__p=800, s__p__c=700)
    assert fed(own, all=1030, s=925) == {"/": 105, "/s": 125}, "its last 25 are nobody else's"
    assert fed(own, all=1030, s=925, s__p=0) == {"/": 105, "/s": 125, "/s/p": 0}
    # a new group of the same name counts from 0
    fed(own, all=1130, s=1025, s__p=100)
    assert fed(own, all=1140, s=1035, s__p=7) == {"/": 105, "/s": 128, "/s/p": 7}


def test_disks_are_apart_and_a_top_that_is_not_seen_is_no_error() -> None:
    own = OwnCounts()
    found = own.feed({("/a", "sda"): (5,), ("/a/b", "sda"): (3,), ("/a/b", "sdb"): (9,)})
    assert found == {("/a", "sda"): (2,), ("/a/b", "sda"): (3,), ("/a/b", "sdb"): (9,)}
    assert own.feed({}) == {}
    assert nearest_ancestor("/", {"/"}) is None
    assert nearest_ancestor("/a b/c", {"/", "/a b"}) == "/a b"


Work = st.lists(st.integers(0, 1000), min_size=len(PATHS), max_size=len(PATHS))


@given(st.lists(Work, min_size=1, max_size=6))
def test_the_sum_is_always_the_top_s(work: list[list[int]]) -> None:
    """Whatever each group does: the counter of a group includes the groups below it."""
    own, done = OwnCounts(), dict.fromkeys(PATHS, 0)
    for more in work:
        done = {path: done[path] + n for path, n in zip(PATHS, more, strict=True)}
        total = {
            (path, "sda"): (sum(n for other, n in done.items()
                                if other == path or other.startswith(path.rstrip("/") + "/")),)
            for path in PATHS
        }  # fmt: skip
        assert own.feed(total) == {(path, "sda"): (n,) for path, n in done.items()}
