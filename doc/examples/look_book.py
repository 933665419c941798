"""Draw every display in every layout, size and style: python
doc/examples/look_book.py [FOLDER].

With ``--eyes``, each picture is also written in greys, and as people with a red-green
deficiency see it.
"""

import argparse
from itertools import chain
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from skcalib.binning import PoolAdjacentViolators
from skcalib.displays import (
    BinCountDisplay,
    ChangeDisplay,
    ComparisonDisplay,
    CumulativeDifferenceDisplay,
    DecisionCurveDisplay,
    EstimatorBiasDisplay,
    GroupDisplay,
    MonitorDisplay,
    MulticalibrationDisplay,
    MurphyDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SegmentDisplay,
    ValidityDisplay,
)
from skcalib.monitoring import CalibrationMonitor

SIZES = {
    "small": (2.2, 2.2),
    "default": tuple(plt.rcParamsDefault["figure.figsize"]),
    "slide": (13, 7),
}
STYLES = ("default", "dark_background")
# Linear RGB of a person without long-wave cones, from Viénot, Brettel and Mollon
# (1999).
_DEUTERANOPIA = np.array(
    [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]
)


def data():
    """Return labels, scores of four models, and the region of each row."""
    rng = np.random.default_rng(0)
    scores = rng.beta(0.7, 0.9, 1200)
    y = rng.random(1200) < scores**1.3
    models = {
        "LogisticRegression": scores,
        "forest": scores**1.3,
        "HistGradientBoostingClassifier": scores**0.6,
        "net": np.clip(1.2 * scores - 0.1, 0, 1),
    }
    return (
        y,
        models,
        rng.choice(
            ["east", "north", "south", "west", "a region with a very long name"], 1200
        ),
    )


def segment_columns(region):
    """Return columns for the segment search: numbers with gaps, and regions."""
    rng = np.random.default_rng(1)
    columns = np.empty((len(region), 2), dtype=object)
    columns[:, 0] = np.where(
        rng.random(len(region)) < 0.1, np.nan, rng.integers(20, 90, len(region))
    )
    columns[:, 1] = region
    return columns


def pictures():
    """Return the drawing functions by name; each accepts ``ax``."""
    y, models, region = data()
    name, scores = next(iter(models.items()))
    few = np.round(scores, 1)
    columns, worst = segment_columns(region), {"max_segments": 6}
    two = {kind: models[kind] for kind in ("LogisticRegression", "forest")}
    proba = np.column_stack((0.8 * (1 - scores), 0.2 * (1 - scores), scores))
    classes = np.where(y, "c", np.where(np.arange(len(y)) % 5, "a", "b"))
    seed = {"random_state": 0}
    quick = {"n_resamples": 50, **seed}
    diagram = ReliabilityDisplay.from_predictions
    return {
        "reliability": lambda ax: diagram(y, scores, name=name, ax=ax, **seed),
        "reliability_split": lambda ax: diagram(
            y, scores, name=name, ax=ax, split_histogram=True, **seed
        ),
        "reliability_log": lambda ax: diagram(
            y, scores, name=name, ax=ax, histogram_scale="log", **seed
        ),
        "reliability_corp": lambda ax: diagram(
            y, scores, name=name, ax=ax, binning=PoolAdjacentViolators(), **quick
        ),
        "reliability_no_name": lambda ax: diagram(
            y, scores, ax=ax, histogram=False, legend=False, **seed
        ),
        "reliability_overlay": lambda ax: diagram(y, models, ax=ax, **seed),
        "reliability_columns": lambda ax: diagram(
            y, models, ax=ax, layout="columns", **seed
        ),
        "reliability_groups": lambda ax: diagram(
            y, scores, groups=region, name=name, ax=ax, **quick
        ),
        "reliability_classes": lambda ax: diagram(
            classes, proba, multiclass="marginal", ax=ax, **quick
        ),
        "reliability_rare": lambda ax: diagram(
            y & (np.arange(len(y)) % 50 == 0), scores / 60, ax=ax, **seed
        ),
        "cumulative": lambda ax: CumulativeDifferenceDisplay.from_predictions(
            y, scores, name=name, ax=ax
        ),
        "cumulative_models": lambda ax: CumulativeDifferenceDisplay.from_predictions(
            y, models, ax=ax, x="score"
        ),
        "groups": lambda ax: GroupDisplay.from_predictions(
            y, scores, region, ax=ax, **quick
        ),
        "groups_many": lambda ax: GroupDisplay.from_predictions(
            y, scores, np.arange(len(y)) % 40, ax=ax, **quick
        ),
        "segments": lambda ax: SegmentDisplay.from_predictions(
            y, scores, columns, ax=ax, max_bins=3, **quick
        ),
        "segments_models": lambda ax: SegmentDisplay.from_predictions(
            y, two, columns, ax=ax, plot_options=worst, **quick
        ),
        "change": lambda ax: ChangeDisplay.from_predictions(
            *_two_years(), ax=ax, **quick
        ),
        "comparison": lambda ax: ComparisonDisplay.from_predictions(
            y, models, ax=ax, metrics="brier_score"
        ),
        "multicalibration": lambda ax: _rounds().plot(ax=ax),
        "monitor": lambda ax: MonitorDisplay.from_monitor(
            _monitor(), name="clicks", ax=ax
        ),
        "monitors": lambda ax: MonitorDisplay.from_monitor(
            {k: _monitor(k) for k in ("east", "north", "west")}, ax=ax
        ),
        "murphy": lambda ax: MurphyDisplay.from_predictions(
            y, scores, name=name, ax=ax
        ),
        "murphy_models": lambda ax: MurphyDisplay.from_predictions(y, models, ax=ax),
        "decision": lambda ax: DecisionCurveDisplay.from_predictions(
            y, scores, name=name, threshold=0.2, ax=ax
        ),
        "decision_models": lambda ax: DecisionCurveDisplay.from_predictions(
            y, two, threshold=0.2, ax=ax
        ),
        "decision_standardised": lambda ax: DecisionCurveDisplay.from_predictions(
            y, models, standardize=True, ax=ax
        ),
        "risk_coverage": lambda ax: RiskCoverageDisplay.from_predictions(
            y, scores, name=name, target=0.1, ax=ax
        ),
        "risk_coverage_models": lambda ax: RiskCoverageDisplay.from_predictions(
            y, two, target=0.1, ax=ax
        ),
        "validity": lambda ax: ValidityDisplay.from_predictions(
            y, few, name=name, ax=ax, epsilon=0.1
        ),
        "bin_count": lambda ax: BinCountDisplay.from_guarantee(
            [1000, 20_000], epsilon=0.05, ax=ax
        ),
        "estimator_bias": lambda ax: _bias().plot(ax=ax),
        "estimator_bias_lines": lambda ax: _bias().plot(ax=ax, kind="lines"),
    }


def _two_years():
    """Return labels and scores of two data sets. The second has higher scores, and more
    events at each score.
    """
    rng = np.random.default_rng(0)
    before, after = rng.beta(1, 4, 3000), rng.beta(1.4, 4, 2000)
    return rng.random(3000) < before, before, rng.random(2000) < after**0.8, after


def _rounds():
    gains = np.array([0.011, 0.0163, 0.0184, 0.0187, 0.0181, 0.0172])
    return MulticalibrationDisplay(gains, 0.0015 + 0.0004 * np.arange(6), 3)


def _monitor(name="north"):
    """Return a monitor whose scores in the north are too low after 3,000 samples."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.1, 0.6, 6000)
    y = rng.random(6000) < scores + 0.1 * (np.arange(6000) >= 3000) * (name == "north")
    monitor = CalibrationMonitor()
    for rows in np.split(np.arange(6000), 60):
        monitor.partial_fit(scores[rows], y[rows])
    return monitor


def _bias():
    bias = np.array([[-4.3, -4.6, -4.8], [-1.4, -2.7, -3.3], [4.5, 2.1, 0.3]]) / 100
    about = {
        "n_samples": [200, 800, 3200],
        "estimators": [2, 8, 64],
        "true_error": 0.084,
        "n_simulations": 200,
    }
    return EstimatorBiasDisplay(bias, np.full(bias.shape, 0.001), **about)


def cases(names=None, sizes=tuple(SIZES), styles=STYLES):
    """Yield (name, figure) for each picture, size, style and placement: alone in a
    figure, or among two or six axes.
    """
    for name, draw in pictures().items():
        if names is not None and name not in names:
            continue
        for size in sizes:
            for style in styles:
                with (
                    plt.style.context(style),
                    plt.rc_context({"figure.figsize": SIZES[size]}),
                ):
                    yield f"{name}-{size}-{style}", draw(None).figure_
                if style == "default" and size != "small":
                    for n_rows, n_columns in ((1, 2), (2, 3)):
                        if name == "monitors" and (size, n_rows) == ("default", 2):
                            # three panels with ticks of their own do not fit into two
                            # inches
                            continue
                        figure, axes = plt.subplots(
                            n_rows, n_columns, figsize=SIZES[size], layout="constrained"
                        )
                        draw(axes.flat[0])
                        yield f"{name}-{size}-{n_rows}x{n_columns}", figure


def grids(sizes=tuple(SIZES), styles=STYLES):
    """Yield (name, figure) for grids of two rows and three columns of pictures.

    The labels are long, several start with the same words, and the scores are
    continuous. Half of the figures have no layout engine, as ``plt.subplots(2, 3)``
    returns them.
    """
    for size in sizes:
        for style in styles:
            for layout in (None, "constrained"):
                with plt.style.context(style):
                    figure, axes = plt.subplots(
                        2, 3, figsize=SIZES[size], layout=layout
                    )
                    _fill(axes.ravel())
                kind = "constrained" if layout else "plain"
                yield f"grid-{size}-{style}-{kind}", figure


def _fill(axes):
    """Draw six pictures of models with long names."""
    y, models, _ = data()
    wards = {
        f"Hospital of the Holy Ghost, ward {number}": scores
        for number, scores in enumerate(models.values(), start=1)
    }
    names = list(wards)[:3]
    three = {name: wards[name] for name in names}
    first = wards[names[0]]
    quick = {"n_resamples": 50, "random_state": 0}
    numbers = ("intercept", "slope", "auc")
    diagram = ReliabilityDisplay.from_predictions
    diagram(y, first, name=names[0], statistics=numbers, ax=axes[0], **quick)
    diagram(y, three, statistics=("slope",), ax=axes[1], **quick)
    CumulativeDifferenceDisplay.from_predictions(y, three, ax=axes[2])
    diagram(y, first, name=names[0], curve="both", ax=axes[3], **quick)
    MurphyDisplay.from_predictions(y, three, ax=axes[4])
    RiskCoverageDisplay.from_predictions(y, three, target=0.1, ax=axes[5])


def seen(image, kind):
    """Simulate how an image (height, width, 4) is seen, by ``"deuteranopia"`` or
    ``"grey"``.
    """
    linear = image[..., :3] ** 2.2
    matrix = (
        _DEUTERANOPIA
        if kind == "deuteranopia"
        else np.tile([0.2126, 0.7152, 0.0722], (3, 1))
    )
    return np.clip(linear @ matrix.T, 0, 1) ** (1 / 2.2)


def main():
    """Write the pictures to a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="look_book")
    parser.add_argument(
        "--eyes",
        action="store_true",
        help="also write pictures as seen with a red-green deficiency, and in greys",
    )
    options = parser.parse_args()
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in chain(cases(), grids(("default", "slide"))):
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=100)
        if options.eyes:
            image = plt.imread(path)
            for kind in ("deuteranopia", "grey"):
                plt.imsave(folder / f"{name}-{kind}.png", seen(image, kind))
        plt.close("all")


if __name__ == "__main__":
    main()
