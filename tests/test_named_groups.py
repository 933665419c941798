"""What an array of groups means: names, missing values, or measurements."""

import numpy as np
import pytest

from skcalib import GroupwiseRecalibrator, PlattScaling, censored_labels
from skcalib._input.groups import check_named_groups
from skcalib.displays import ReliabilityDisplay
from skcalib.evaluation import cross_validate
from skcalib.metrics import (
    BinStatistics,
    calibration_by_group,
    groupwise_calibration_error,
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    y = (rng.random(400) < scores).astype(int)
    return y, scores, rng.normal(50, 10, 400).round(3)


def by_group(y, scores, groups, **options):
    return calibration_by_group(
        y, scores, groups, n_resamples=1, random_state=0, **options
    )


def test_measurements_are_refused(rows):
    """A row of 400 groups with one sample each was the answer."""
    y, scores, age = rows
    with pytest.raises(ValueError, match=r"\d+ distinct floats.*max_bins=10 groups"):
        by_group(y, scores, age)
    with pytest.raises(ValueError, match="distinct floats"):
        by_group(y, scores, age.astype(object))
    with pytest.raises(ValueError, match="distinct floats.*cut it into bins"):
        groupwise_calibration_error(y, scores, groups=age)
    with pytest.raises(ValueError, match="distinct floats"):
        ReliabilityDisplay.from_predictions(y, scores, groups=age)
    by_age = GroupwiseRecalibrator(PlattScaling())
    with pytest.raises(ValueError, match="distinct floats"):
        by_age.fit(scores, y, groups=age)
    with pytest.raises(ValueError, match="distinct floats"):
        cross_validate(y, scores, {"by age": by_age}, groups=age)
    with pytest.raises(ValueError, match="distinct floats"):
        censored_labels(scores, y, 0.5, groups=age)
    # Thirty distinct floats may be names, and so may any number of integers.
    assert len(by_group(y, scores, np.arange(400) % 30 / 2)) == 30
    assert len(by_group(y, scores, np.arange(400) % 40)) == 40


def test_quantiles_name_their_edges(rows):
    y, scores, age = rows
    table = by_group(y, scores, age, max_bins=4)
    assert len(table) == 4
    edges = [float(table.group[0].removeprefix("<= "))]
    for name in table.group[1:-1]:
        low, high = map(float, name.strip("(]").split(", "))
        assert low == edges[-1]
        edges.append(high)
    assert table.group[-1] == f"> {edges[-1]:g}"
    bins = np.searchsorted(edges, age, side="left")
    counts = np.bincount(bins)
    assert table.n.tolist() == counts.tolist()
    assert counts.max() - counts.min() <= 1
    means = [scores[bins == k].mean() for k in range(4)]
    np.testing.assert_allclose(table.mean_score, means)


def test_few_values_stay_names(rows):
    y, scores, _ = rows
    grade = np.arange(400) % 3
    assert by_group(y, scores, grade, max_bins=3).group.tolist() == [0, 1, 2]
    dates = np.datetime64("2024-01-01") + np.arange(400)
    names = by_group(y, scores, dates, max_bins=2).group.tolist()
    assert names == ["<= 2024-07-18", "> 2024-07-18"]
    with pytest.raises(ValueError, match="divides numbers or dates at quantiles.*'0'"):
        by_group(y, scores, np.arange(400).astype(str), max_bins=4)
    with pytest.raises(ValueError, match="max_bins must be an int of at least 2"):
        by_group(y, scores, grade, max_bins=1)
    bins = BinStatistics.from_predictions(y, scores, [0, 0.5, 1])
    with pytest.raises(ValueError, match="max_bins=3 needs the score"):
        calibration_by_group({"a": bins}, max_bins=3)


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["b", None, "a", "b"], ["a", "b", "missing"]),
        ([2.0, np.nan, 1.0, 2.0], [1.0, 2.0, "missing"]),
        (np.array([1, None, 0, 1], dtype=object), [0, 1, "missing"]),
        ([np.nan] * 4, ["missing"]),
        (
            np.array(["2024-02", "NaT", "2024-01", "2024-02"], dtype="M8[ns]"),
            [np.datetime64("2024-01", "ns"), np.datetime64("2024-02", "ns"), "missing"],
        ),
    ],
    ids=["texts", "floats", "integers", "nothing", "dates"],
)
def test_missing_values_are_a_group(groups, names):
    found, codes = check_named_groups(groups, 4)
    assert found.tolist() == names
    assert codes.tolist() == ([1, 2, 0, 1] if len(names) == 3 else [0] * 4)


def test_missing_values_in_the_table(rows):
    y, scores, age = rows
    age = np.where(np.arange(400) < 50, np.nan, age)
    table = by_group(y, scores, age, max_bins=3)
    assert table.group[-1] == "missing"
    assert table.n[-1] == 50
    assert table.mean_score[-1] == pytest.approx(scores[:50].mean())
    errors = groupwise_calibration_error(
        y, scores, groups=np.where(age > 50, "old", None), reduce=None
    )
    assert set(errors) == {"old", "missing"}


def test_what_is_no_group(rows):
    with pytest.raises(ValueError, match="the string 'missing' and missing values"):
        check_named_groups(["missing", None], 2)
    with pytest.raises(ValueError, match="infinity in row 2"):
        check_named_groups([1.0, np.nan, np.inf], 3)


def test_pandas_columns(rows):
    pd = pytest.importorskip("pandas")
    for column in (
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(pd.Categorical(["a", None, "b"])),
        pd.Series(["a", np.nan, "b"], dtype=object),
    ):
        names, codes = check_named_groups(column, 3)
        assert names.tolist() == ["a", "b", "missing"]
        assert codes.tolist() == [0, 2, 1]
    names, codes = check_named_groups(pd.Series([3, None, 1], dtype="Int64"), 3)
    assert names.tolist() == [1, 3, "missing"]
    assert codes.tolist() == [1, 2, 0]
