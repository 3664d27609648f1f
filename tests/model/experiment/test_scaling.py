"""The scaling law: the same fit as scipy's, and no knee that the points don't show."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lazy_scipy import np, optimize

from iopstui.model.experiment.host_sweep import ScalingLaw, analyse_scaling, fit_law

COUNTS = (1, 2, 4, 8, 16, 32)


def points(
    law: ScalingLaw, counts: tuple[int, ...] = COUNTS, *off: float
) -> list[tuple[int, float]]:
    found = [law.at(hosts) for hosts in counts]
    return [
        (hosts, value * (1 + (off[place] if off else 0.0)))
        for place, (hosts, value) in enumerate(zip(counts, found, strict=True))
    ]


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.floats(1.0, 1e8)), min_size=3, max_size=9,
             unique_by=lambda one: one[0]),
)  # fmt: skip
@example([(1, 878411.0), (2, 1.0), (3, 1.0)])
def test_no_other_curve_is_nearer(measured: list[tuple[int, float]]) -> None:
    hosts = np.array([one for one, _ in measured], dtype=float)
    scale = max(value for _, value in measured)
    weight = np.array([value for _, value in measured]) / scale / hosts
    columns = np.array([np.ones(len(hosts)), hosts - 1, hosts * (hosts - 1)]).T
    scales = columns.max(axis=0) + 1e-300
    _, theirs = optimize.nnls(columns / scales * weight[:, None], np.ones(len(hosts)))
    law = fit_law(measured)
    if law is None:
        return  # 1/λ is 0 in the best fit: one host would have an infinite rate
    ours = sum((1 - value / law.at(one)) ** 2 for one, value in measured) ** 0.5
    assert ours <= theirs * (1 + 1e-6) + 1e-6


@given(st.floats(1.0, 1e7), st.floats(0.0, 0.9), st.floats(1e-5, 0.1))
def test_the_law_that_was_put_in_comes_out(rate: float, wait: float, pairs: float) -> None:
    law = fit_law(points(ScalingLaw(rate, wait, pairs)))
    assert law is not None
    assert law.rate == pytest.approx(rate, rel=1e-6)
    assert law.contention == pytest.approx(wait, rel=1e-5, abs=1e-9)
    assert law.coherency == pytest.approx(pairs, rel=1e-5)
    assert law.knee == pytest.approx(max(1.0, ((1 - wait) / pairs) ** 0.5), rel=1e-4)


def test_it_is_near_what_scipy_fits_to_noisy_points() -> None:
    measured = points(ScalingLaw(2e5, 0.03, 0.002), COUNTS, 0.01, -0.02, 0.02, -0.01, 0.0, 0.01)
    hosts, values = np.array(measured).T

    def law(n: np.ndarray, rate: float, wait: float, pairs: float) -> np.ndarray:
        return rate * n / (1 + wait * (n - 1) + pairs * n * (n - 1))

    theirs, _ = optimize.curve_fit(law, hosts, values, p0=(2e5, 0.03, 0.002), sigma=values)
    ours = fit_law(measured)
    assert ours is not None
    assert (ours.rate, ours.contention, ours.coherency) == pytest.approx(tuple(theirs), rel=0.03)


def test_a_knee_within_what_was_measured() -> None:
    found = analyse_scaling(
        points(ScalingLaw(1e5, 0.2, 0.01), COUNTS, 0.01, -0.01, 0.0, 0.01, -0.01, 0.01)
    )
    assert found.knee == pytest.approx(8.9, rel=0.05) and not found.knee_is_beyond
    assert found.knees is not None and found.knees[0] <= found.knee <= found.knees[1]
    assert found.sentences()[1].endswith("IOPS; it falls with more hosts")


def test_a_knee_beyond_is_said_to_be_extrapolated() -> None:
    found = analyse_scaling(points(ScalingLaw(1e5, 0.02, 0.001), COUNTS[:5]))
    assert found.knee_is_beyond and found.knee == pytest.approx(31.3, rel=0.01)
    assert "extrapolated; 16 were measured" in found.sentences()[1]


@pytest.mark.parametrize(("measured", "why"), [
    ([(1, 1.0), (2, 2.0), (4, 3.0)], "it needs 4 points, but there are 3"),
    ([(1, 0.0), (2, 0.0), (4, 0.0), (8, 0.0)], "there are 0"),
    # a limit that is reached at once (a cloud volume's) is no contention
    ([(1, 100), (2, 200), (4, 400), (8, 400), (16, 400)], "with 8 hosts it is off by 15 %"),
    ([(1, 100), (2, 200), (4, 400), (8, 480), (16, 500)], "but 16 hosts had the most"),
    (points(ScalingLaw(1e5, 0.02, 0.0001), (1, 2, 4, 8, 16)), "too far from the 16"),
    ([(1, 100), (2, 195), (4, 350), (8, 590), (16, 700), (32, 1500)], "it is off by"),
    ([(1, 100), (2, 198), (4, 390), (8, 700)], "without one of the points"),
])  # fmt: skip
def test_no_knee_where_the_points_show_none(measured: list[tuple[int, float]], why: str) -> None:
    found = analyse_scaling(measured)
    assert found.knee is None and why in found.doubt
    assert why in found.sentences()[-1]


def test_no_knee_where_more_hosts_never_have_less() -> None:
    flat = analyse_scaling([(1, 100.0), (2, 100.0), (4, 100.0), (8, 100.0)])
    assert flat.doubt == "" and flat.knee is None
    assert flat.sentences()[1].endswith(
        "throughput never falls with more hosts, and never more than 100 IOPS"
    )
    assert (
        analyse_scaling(points(ScalingLaw(5.0, 0.001, 0.0)))
        .sentences()[1]
        .endswith("no knee: by this curve, throughput never falls with more hosts")
    )
