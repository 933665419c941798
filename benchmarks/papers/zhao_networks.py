"""Zhao, Chen and Oymak (2020), on the outputs of image networks with noise and
imbalance planted afterwards.

Networks: DenseNet-40 and ResNet-50 on CIFAR-10 (raw logits; Figures 9 to 14, Table 2),
WideResNet on CIFAR-100 (log probabilities; Figures 1 to 8, Table 1). They were trained
on clean rows, so what the paper plants in the training rows is planted later here:

* "noisy labels": a share of the labels of half the classes is drawn anew, in the
  calibration and in the test rows. The network is then overconfident in those classes,
  where the paper's is underconfident; the methods face the same task.
* "calibrated on noise": only the calibration labels are noisy, the test rows are clean.
  What is calibrated to them is underconfident in the noisy classes, as the paper's
  networks are.
* "few": only a share of the calibration rows of half the classes is left; the test rows
  are all there.
* "all noise", "all few": the calibration labels of all classes are noisy, or a share of
  all calibration rows is left. One temperature cannot overfit; the 20 parameters of VS
  on CIFAR-10 can.

Each repeat draws a half of the classes, the noise, and which rows calibrate;
differences are paired by repeat. Repeats share their rows: the intervals speak of these
networks, not of others. VS is eq. 4.5 as printed,
`VectorScaling(alpha=0, center=False)`, on raw logits or, for CIFAR-100, log
probabilities.
"""

import numpy as np

from benchmarks.papers._intervals import mean
from benchmarks.papers._rules import above, below
from benchmarks.papers.heterogeneity import (
    CHANGED,
    MOST,
    OVERALL,
    SOMETIMES,
    changed_predictions,
    difference,
    figures,
    lower_share,
    noisy,
    ordering_rules,
    orderings,
    share_of_classes,
    share_of_repeats,
    values_of,
)

PAPER = "zhao"
NEEDS_DATA = True

# Networks and the places of their data set: table, whole noise, few rows, noise sweep,
# classes, sampling sweep.
_NETWORKS = {
    "densenet40_c10": (
        "Table 2",
        "Figure 9",
        "Figure 12",
        "Figure 10",
        "Figure 11",
        "Figure 14",
    ),
    "resnet50_c10": (
        "Table 2",
        "Figure 9",
        "Figure 12",
        "Figure 10",
        "Figure 11",
        "Figure 14",
    ),
    "wideresnet_c100": (
        "Table 1",
        "Figure 1",
        None,
        "Figure 5",
        "Figure 6",
        "Figure 8",
    ),
}
_NOISE, _FEW = (0.1, 0.2, 0.3), (0.3, 0.1, 0.05)
_N_CALIBRATION = 5000


def _rules():
    rules = {}
    for network, (table, whole, few, noise, classes, sampling) in _NETWORKS.items():
        rules |= ordering_rules(
            f"{table}: {network}, noisy labels, 30 %", [int(table[-1])]
        )
        rules[f"{table}: {network}, {CHANGED}"] = below(0.1, "none", possible=(0, 100))
        at = f"{whole}: {network}, calibrated on 30 % noise in all classes"
        rules[f"{at}, confidence minus accuracy, TS, %"] = below(0, "underconfident")
        if few:
            at = f"{few}: {network}, calibrated on 5 % of all rows"
            rules[f"{at}, confidence minus accuracy, minus that of all rows, VS, %"] = (
                above(0, "overconfident")
            )
        for level in _NOISE:
            for error in ("ECE", "Max-ECE"):
                quantity = (
                    f"{noise}: {network}, noisy labels, {100 * level:g} %, {error}, CTS"
                    " minus TS, %"
                )
                rules[quantity] = below(0)
        for method in ("CTS", "VS"):
            for other in ("TS", "uncalibrated"):
                rules[
                    f"{classes}: {network}, noisy labels, 30 %,"
                    f" {lower_share(method, other)}"
                ] = MOST
        at = f"{classes}: {network}, calibrated on noise, 30 %"
        rules[f"{at}, accuracy of the noisy classes, VS minus uncalibrated, %"] = below(
            0, "VS lowers it"
        )
        rules[f"{at}, accuracy of the clean classes, VS minus uncalibrated, %"] = above(
            0, "VS raises it"
        )
        for level in _FEW:
            at = f"{sampling}: {network}, {100 * level:g} % of the calibration rows"
            for error in ("Max-ECE", "Avg-ECE"):
                rules[f"{at}, {error}, CTS minus TS, %"] = below(0)
        rules[f"{sampling}: {network}, {OVERALL}"] = SOMETIMES
        if network.endswith("c100"):
            at = (
                f"Figure 3: {network}, calibrated on noise, 30 %, confidence minus"
                " accuracy, CTS"
            )
            rules[f"{at}, noisy classes, %"] = below(0, "underconfident")
            rules[f"{at}, noisy minus other classes, %"] = below(0)
    return rules


ROWS = _rules()


def measure(options):
    """Measure each network over repeats."""
    repeats = 2 if options.quick else options.repeats or 10
    for network in _NETWORKS:
        pool, labels = _load(options.data, network)
        results = {world: [] for world in _worlds(network, options.quick)}
        for seed in range(
            max(min(3, repeats), repeats // 2) if network.endswith("c100") else repeats
        ):
            for world, found in results.items():
                found.append(_one_repeat(pool, labels, *world, seed))
        yield from _rows(network, results)


def _worlds(network, quick):
    worlds = [("noisy labels", level) for level in _NOISE] + [
        ("few", level) for level in _FEW
    ]
    worlds = [worlds[2], worlds[5]] if quick else worlds
    worlds += [("calibrated on noise", 0.3), ("all noise", 0.3)]
    return (
        [*worlds, ("all few", 1.0), ("all few", 0.05)]
        if network.endswith("c10")
        else worlds
    )


def _load(data, network):
    """Return logits and labels of all rows that the network was not trained on."""
    if network == "wideresnet_c100":
        with np.load(data / "vision" / "cifar100_wideresnet164.npz") as table:
            # zeros of single precision
            probabilities = np.maximum(table["probs"].astype(np.float64), 1e-38)
            return np.log(probabilities), table["labels"].astype(int)
    parts = []
    for part in ("val", "test"):
        with np.load(
            data / "vision" / f"cifar10_{network.removesuffix('_c10')}_{part}.npz"
        ) as table:
            parts.append(
                (table["logits"].astype(np.float64), table["labels"].astype(int))
            )
    return tuple(np.concatenate(values) for values in zip(*parts, strict=True))


def _one_repeat(logits, labels, kind, level, seed):
    rng = np.random.default_rng([seed, round(100 * level)])
    n_classes = logits.shape[1]
    n_corrupted = n_classes if kind.startswith("all") else n_classes // 2
    corrupted = np.isin(labels, rng.permutation(n_classes)[:n_corrupted])
    order = rng.permutation(len(labels))
    calibration, test = order[:_N_CALIBRATION], order[_N_CALIBRATION:]
    given = labels
    if kind.endswith("few"):
        calibration = calibration[
            _kept(labels[calibration], corrupted[calibration], level)
        ]
    else:
        given = noisy(labels, corrupted, level, n_classes, rng)
    test_labels = given[test] if kind == "noisy labels" else labels[test]
    return figures(
        logits[calibration],
        given[calibration],
        logits[test],
        test_labels,
        corrupted[test],
    )


def _kept(labels, corrupted, level):
    """Return which rows stay: a share of each corrupted class, and at least two rows of
    it.
    """
    kept = ~corrupted
    for k in np.unique(labels[corrupted]):
        rows = np.flatnonzero(labels == k)
        kept[rows[: max(2, round(level * len(rows)))]] = True
    return kept


def _rows(network, results):
    table, whole, few, noise, classes, sampling = _NETWORKS[network]
    yield from orderings(
        f"{table}: {network}, noisy labels, 30 %", results["noisy labels", 0.3]
    )
    changed = changed_predictions(
        [found for seeds in results.values() for found in seeds]
    )
    yield f"{table}: {network}, {CHANGED}", changed
    at = f"{whole}: {network}, calibrated on 30 % noise in all classes"
    yield (
        f"{at}, confidence minus accuracy, TS, %",
        mean(values_of(results["all noise", 0.3], "TS", "gap")),
    )
    if few:
        gaps = [
            values_of(results["all few", level], "VS", "gap") for level in (0.05, 1.0)
        ]
        at = f"{few}: {network}, calibrated on 5 % of all rows"
        yield (
            f"{at}, confidence minus accuracy, minus that of all rows, VS, %",
            mean(np.subtract(*gaps)),
        )
    for (kind, level), found in results.items():
        if kind == "noisy labels":
            for error in ("ECE", "Max-ECE"):
                quantity = (
                    f"{noise}: {network}, noisy labels, {100 * level:g} %, {error}, CTS"
                    " minus TS, %"
                )
                yield quantity, difference(found, "CTS", "TS", error)
        elif kind == "few":
            for error in ("Max-ECE", "Avg-ECE"):
                quantity = (
                    f"{sampling}: {network}, {100 * level:g} % of the calibration rows,"
                    f" {error}, CTS minus TS, %"
                )
                yield quantity, difference(found, "CTS", "TS", error)
    few_rows = [found for (kind, _), found in results.items() if kind == "few"]
    yield f"{sampling}: {network}, {OVERALL}", share_of_repeats(few_rows)
    for method in ("CTS", "VS"):
        for other in ("TS", "uncalibrated"):
            quantity = (
                f"{classes}: {network}, noisy labels, 30 %,"
                f" {lower_share(method, other)}"
            )
            yield (
                quantity,
                share_of_classes(results["noisy labels", 0.3], method, other),
            )
    at, found = (
        f"{classes}: {network}, calibrated on noise, 30 %",
        results["calibrated on noise", 0.3],
    )
    for half, figure in (("noisy", "corrupted"), ("clean", "other")):
        quantity = f"{at}, accuracy of the {half} classes, VS minus uncalibrated, %"
        yield quantity, difference(found, "VS", "uncalibrated", f"{figure} accuracy")
    if network.endswith("c100"):
        at = (
            f"Figure 3: {network}, calibrated on noise, 30 %, confidence minus"
            " accuracy, CTS"
        )
        gap = values_of(found, "CTS", "corrupted gap")
        yield f"{at}, noisy classes, %", mean(gap)
        yield (
            f"{at}, noisy minus other classes, %",
            mean(gap - values_of(found, "CTS", "other gap")),
        )
