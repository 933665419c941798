"""What the report advises on tables of known truth, applied to a held-out half, against
every candidate.

``python -m benchmarks.checks.report_advice`` prints four tables: for each table the
advice, its log-loss on the held-out half and that of the best candidate, the largest
error of a segment before and after; how often something is advised for calibrated
scores; what recalibrators that do not know which rows share a key do to the rows of
other keys; and how many of twelve divisions into folds give the same kind of advice.
``--data FOLDER`` adds forecasts and language models, ``--seeds 3`` more samples of
each.
"""

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

import skcalib
from skcalib import GroupwiseRecalibrator
from skcalib._errors.proper_scores import LOSSES
from skcalib._report._advice import considered
from skcalib._report._forecasts import ReportTable
from skcalib.evaluation._cross_validate import kinds_to_compare

MONTHS = [f"2025-{month:02d}" for month in range(1, 13)]
WORST = 0.005  # of the log-loss of the best candidate, that the advice may cost


@dataclass(frozen=True)
class Table:
    """Rows with the period from which on they are judged (None: all of them).

    Rows with the same of the `keys` stay together as clusters do, but the report is not
    told which these are: it sees that the values of a column repeat.
    """

    labels: np.ndarray
    scores: np.ndarray
    segments: np.ndarray | None = None
    periods: np.ndarray | None = None
    clusters: np.ndarray | None = None
    keys: np.ndarray | None = None
    since: str | None = None

    def at(self, rows):
        """Return some of the rows."""
        parts = {
            name: getattr(self, name)
            for name in (
                "labels",
                "scores",
                "segments",
                "periods",
                "clusters",
                "keys",
            )
        }
        return replace(
            self,
            **{
                name: None if part is None else part[rows]
                for name, part in parts.items()
            },
        )

    def halves(self, seed):
        """Return two halves; clusters and keys stay whole."""
        rng = np.random.default_rng(seed)
        together = self.clusters if self.keys is None else self.keys
        unit = (
            np.arange(len(self.labels))
            if together is None
            else np.unique(together, return_inverse=True)[1]
        )
        first = (rng.permutation(unit.max() + 1) % 2 == 0)[unit]
        return self.at(first), self.at(~first)

    def from_period(self, since):
        """Return the rows from a period on."""
        return self if since is None else self.at(self.periods >= since)

    def for_report(self):
        """Return the rows as the report has them."""
        classes = (
            None
            if self.scores.ndim == 1
            else tuple(map(str, range(self.scores.shape[1])))
        )
        order = None if self.periods is None else sorted(set(self.periods.tolist()))
        return ReportTable(
            "table",
            "y",
            "1",
            self.labels,
            {"p": self.scores},
            segments=self.segments,
            segment_name=None if self.segments is None else "segment",
            clusters=self.clusters,
            repeated_keys=() if self.keys is None else ("key",),
            n_of_key=None if self.keys is None else len(np.unique(self.keys)),
            periods=self.periods,
            period_order=order,
            classes=classes,
        )


def _binary(rng, n, odds=None, shift=0.0, slope=1.0, centre=-0.5, **columns):
    odds = rng.normal(centre, 1.5, n) if odds is None else odds
    return Table(rng.random(n) < expit(slope * odds + shift), expit(odds), **columns)


def _parts(rng, n, names="ABCDE"):
    return rng.choice(list(names), n), np.array(MONTHS)[rng.integers(0, 12, n)]


def _classes(rng, n, n_classes, temperature=1.0, off=0.0):
    logits = rng.normal(0, 1.5, (n, n_classes))
    truth = softmax(logits / temperature + off * (np.arange(n_classes) == 1), axis=1)
    codes = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return Table(np.minimum(codes, n_classes - 1), softmax(logits, axis=1))


def drift_in_one_segment(rng, n):
    """Return events that become more frequent in one segment of five, from August
    on.
    """
    segments, periods = _parts(rng, n)
    shift = 1.2 * ((segments == "B") & (periods >= MONTHS[7]))
    return _binary(
        rng, n, shift=shift, segments=segments, periods=periods, since=MONTHS[7]
    )


def drift_of_all(rng, n):
    """Return scores that are too high from September on."""
    segments, periods = _parts(rng, n)
    return _binary(
        rng,
        n,
        shift=-0.7 * (periods >= MONTHS[8]),
        segments=segments,
        periods=periods,
        since=MONTHS[8],
    )


def shape_by_segment(rng, n):
    """Return a language model by subject: each has a slope and an intercept of
    its own.
    """
    segments = rng.integers(0, 14, n)
    slope, shift = rng.uniform(0.2, 1.0, 14), rng.normal(0, 0.7, 14)
    names = np.array([f"subject {k}" for k in range(14)])
    return _binary(
        rng,
        n,
        slope=slope[segments],
        shift=shift[segments],
        centre=1.0,
        segments=names[segments],
    )


def one_segment(rng, n):
    """Return one segment of twelve that is off."""
    segments, _ = _parts(rng, n, "ABCDEFGHIJKL")
    return _binary(rng, n, shift=-1.0 * (segments == "C"), segments=segments)


def many_small_segments(rng, n):
    """Return sixty segments with a shift of their own."""
    segments = rng.integers(0, 60, n)
    return _binary(
        rng, n, shift=rng.normal(0, 0.6, 60)[segments], segments=segments.astype(str)
    )


def clusters(rng, n):
    """Return over-confident scores in clusters that move together."""
    cluster = rng.integers(0, 200, n)
    return _binary(
        rng, n, slope=0.6, shift=rng.normal(0, 0.4, 200)[cluster], clusters=cluster
    )


def repeated_keys(rng, n):
    """Return weekly forecasts of candidates: twenty of each, with one outcome. Halves
    have other candidates.
    """
    key = np.arange(n) // 20
    odds = rng.normal(0, 1.3, key[-1] + 1)
    outcome = rng.random(len(odds)) < expit(0.7 * odds)
    scores = expit(odds[key] + rng.normal(0, 0.25, n))
    return Table(outcome[key], scores, clusters=key)


def candidates_over_weeks(rng, n, weeks=60):
    """Return weekly forecasts of elections: sixty weeks of each candidate, nearly the
    same every week, with one outcome.

    A map with many steps learns the outcomes of the candidates that it is fitted to.
    """
    key = np.arange(n) // weeks
    odds = rng.normal(0, 4, key[-1] + 1)
    outcome = rng.random(len(odds)) < expit(1.5 * odds)
    scores = expit(odds[key] + rng.normal(0, 0.2, n))
    return Table(outcome[key], scores, keys=key)


def calibrated_with_parts(rng, n):
    """Return calibrated scores with segments and months."""
    segments, periods = _parts(rng, n)
    return _binary(rng, n, segments=segments, periods=periods)


def curve(rng, n):
    """Return scores whose reliability curve no slope and intercept describe."""
    odds = rng.normal(-0.5, 1.5, n)
    return _binary(rng, n, odds=odds, shift=1.2 * np.sin(1.5 * odds))


SIMULATED = {
    "calibrated": lambda rng, n: _binary(rng, n),
    "calibrated, with parts": calibrated_with_parts,
    "base-rate shift": lambda rng, n: _binary(rng, n, shift=-0.6),
    "over-confident": lambda rng, n: _binary(rng, n, slope=0.6),
    "curve": curve,
    "few rows": lambda rng, n: _binary(rng, n // 10, slope=0.5),
    "rare events": lambda rng, n: _binary(rng, n, centre=-6.0, shift=0.7),
    "clusters": clusters,
    "repeated keys": repeated_keys,
    "one segment off": one_segment,
    "shape by segment": shape_by_segment,
    "many small segments": many_small_segments,
    "drift in one segment": drift_in_one_segment,
    "drift of all": drift_of_all,
    "one class of 5 off": lambda rng, n: _classes(rng, n // 2, 5, off=-1.0),
    "100 classes": lambda rng, n: _classes(rng, n // 2, 100, temperature=2.0),
}


def real_tables(folder):
    """Return the tables of the data folder: forecasts of games by season, language
    models by data set and by model.
    """
    found, folder = {}, Path(folder)
    games = np.load(
        folder / "forecasts" / "fivethirtyeight_dev.npz", allow_pickle=False
    )
    for name in ("nba_games", "nfl_games", "wnba_games"):
        columns = {key: games[f"{name}/{key}"] for key in ("prob", "label", "season")}
        found[name] = Table(
            columns["label"] == 1,
            columns["prob"],
            segments=columns["season"].astype(str),
        )
    answers = np.load(folder / "llm" / "mcqa_bplaut_dev.npz", allow_pickle=False)
    keys = [key.rsplit("/", 1)[0] for key in answers.files if key.endswith("/conf")]
    for part, title in (
        (0, "language models by data set"),
        (1, "language models by model"),
    ):
        rows = [
            (answers[f"{key}/correct"], answers[f"{key}/conf"], key.split("/")[part])
            for key in keys
        ]
        labels, scores = (np.concatenate([row[k] for row in rows]) for k in (0, 1))
        segments = np.concatenate([np.full(len(row[0]), row[2]) for row in rows])
        found[title] = Table(
            labels == 1, np.clip(scores, 0, 1).astype(float), segments=segments
        )
    return found


def predicted(train, test, recalibrator, own=None, others="shared"):
    """Return the probabilities of the rows of a table by a recalibrator fitted to
    another; `own` segments get maps, and the others share one or stay unchanged.
    """
    if recalibrator is None:
        return test.scores
    if own is None:
        return _Fitted(train, recalibrator, {}).predict(test, {})
    grouped = GroupwiseRecalibrator(recalibrator)
    is_own = [np.isin(part.segments, own) for part in (train, test)]
    if others == "unchanged":
        train_own, test_own = train.at(is_own[0]), test.at(is_own[1])
        fitted = _Fitted(train_own, grouped, {"groups": train_own.segments})
        scores = np.array(test.scores, dtype=float)
        scores[is_own[1]] = fitted.predict(test_own, {"groups": test_own.segments})
        return scores
    groups = [
        {"groups": np.where(is_own_part, part.segments, "")}
        for part, is_own_part in zip((train, test), is_own, strict=True)
    ]
    return _Fitted(train, grouped, groups[0]).predict(test, groups[1])


@dataclass(frozen=True)
class _Fitted:
    """A recalibrator fitted to a table."""

    train: Table
    recalibrator: object
    options: dict

    def predict(self, test, options):
        """Return the probabilities of the rows of another table."""
        labels = self.train.labels.astype(int)
        fitted = self.recalibrator.fit(self.train.scores, labels, **self.options)
        found = fitted.predict_proba(test.scores, **options)
        return found[:, 1] if test.scores.ndim == 1 else found


def by_advice(train, test, advice):
    """Return the probabilities that the advice gives the rows of a table."""
    if advice["kind"] == "none":
        return test.scores
    name = re.fullmatch(
        r"(?:GroupwiseRecalibrator\()?(\w+)(?:\(\)\))?", advice["recalibrator"]
    )[1]
    return predicted(
        train.from_period(advice["since"]),
        test,
        getattr(skcalib, name)(),
        advice["segments"] or None,
        advice["others"] or "shared",
    )


def candidates(train, test):
    """Return the probabilities by every candidate: each map, by segment, and on the
    rows since the true change.
    """
    n_samples = len(train.scores)
    classes = kinds_to_compare(n_samples, train.scores.size // n_samples)
    kinds = [one.__name__ for one in classes]
    yield "none", test.scores
    for since in dict.fromkeys((None, train.since)):
        rows = train.from_period(since)
        for kind in kinds:
            name = f"{kind}{f' since {since}' if since else ''}"
            yield name, predicted(rows, test, getattr(skcalib, kind)())
            if train.segments is not None and kind != "StackedRecalibrator":
                own = np.unique(train.segments)
                yield (
                    f"{name} by segment",
                    predicted(rows, test, getattr(skcalib, kind)(), own),
                )


def _worst(scores, test):
    """Return the largest absolute bias of a segment with 100 rows."""
    if test.segments is None:
        return float("nan")
    names, counts = np.unique(test.segments, return_counts=True)
    off = [
        abs(np.mean((scores - test.labels)[test.segments == name]))
        for name in names[counts >= 100]
    ]
    return max(off, default=float("nan"))


def judged(table, seed):
    """Return the advice for one half of a table and how it does on the other."""
    train, test = table.halves(seed)
    advice = considered(train.for_report(), "p", 0).advice
    test = test.from_period(table.since)
    found = by_advice(train, test, advice)
    each = {
        name: LOSSES["log"](scores, test.labels)
        for name, scores in candidates(train, test)
    }
    losses = {name: float(values.mean()) for name, values in each.items()}
    best = min(losses, key=losses.get)
    loss, lowest = LOSSES["log"](found, test.labels), each[best]
    return {
        "advice": advice,
        "loss": loss.mean(),
        "none": losses["none"],
        "best": losses[best],
        "candidate": best,
        "excess": max(loss.mean() / losses[best] - 1, 0.0),
        "noise": np.std(loss - lowest) / np.sqrt(len(loss)) / losses[best],
        "worst": _worst(test.scores, test),
        "after": _worst(found, test),
    }


def calibrated_tables(seeds, n=2000):
    """Yield for calibrated scores of three shapes whether something is advised."""
    for seed in range(seeds):
        for shape in ("flat", "sure", "rare"):
            rng = np.random.default_rng([seed, len(shape)])
            odds = {
                "flat": rng.normal(0, 1, n),
                "sure": rng.normal(0, 4, n),
                "rare": rng.normal(-4, 1, n),
            }[shape]
            segments, periods = _parts(rng, n)
            table = _binary(rng, n, odds=odds, segments=segments, periods=periods)
            yield considered(table.for_report(), "p", 0).advice["kind"] != "none"


_OF_KEYS = ("TemperatureScaling", "PlattScaling", "IsotonicCalibration")


def of_keys(seed, n=6000):
    """Return the mean held-out log-losses of maps that are fitted to half of the
    candidates as if their rows were independent, and the advice without and with
    clusters.
    """
    table = candidates_over_weeks(np.random.default_rng([seed, 2]), n)
    train, test = table.halves(seed)
    losses = {"none": LOSSES["log"](test.scores, test.labels).mean()}
    for kind in _OF_KEYS:
        found = predicted(train, test, getattr(skcalib, kind)())
        losses[kind] = LOSSES["log"](found, test.labels).mean()
    without = considered(train.for_report(), "p", 0).advice
    told = replace(train, clusters=train.keys, keys=None)
    informed = considered(told.for_report(), "p", 0).advice
    losses["with clusters"] = LOSSES["log"](
        by_advice(train, test, informed), test.labels
    ).mean()
    return losses, without, informed


# Tables with a real gain.
STEADY = (
    "base-rate shift",
    "over-confident",
    "curve",
    "one segment off",
    "drift in one segment",
)


def steadiness(name, draw, n=6000, n_seeds=12):
    """Return how many of some divisions into folds give the most frequent kind of
    advice, and this kind.
    """
    table = SIMULATED[name](np.random.default_rng([draw, 4]), n).for_report()
    kinds = [considered(table, "p", seed).advice["kind"] for seed in range(n_seeds)]
    most = max(set(kinds), key=kinds.count)
    return kinds.count(most), most


def _print_more(seeds):
    """Print the tables of repeated keys and of divisions into folds."""
    print(
        "\n| candidates | bare | "
        + " | ".join(_OF_KEYS)
        + " | advice | with clusters |"
    )
    print("|---|---|---|---|---|---|---|")
    for seed in range(seeds):
        losses, without, informed = of_keys(seed)
        shown = " | ".join(f"{losses[kind]:.3f}" for kind in ("none", *_OF_KEYS))
        asked = f"asks for {without['needs_cluster']}"
        print(
            f"| draw {seed} | {shown} | {asked} | {informed['recalibrator']}:"
            f" {losses['with clusters']:.3f} |",
            flush=True,
        )
    print("\n| table | draw | same kind of advice, of 12 | kind |\n|---|---|---|---|")
    for name in STEADY:
        for draw in range(2):
            count, kind = steadiness(name, draw)
            print(f"| {name} | {draw} | {count} | {kind} |", flush=True)


def main(arguments=None):
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of real data")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--calibrated",
        type=int,
        default=30,
        help="samples of each shape of calibrated scores",
    )
    parser.add_argument("--only", help="tables whose name contains this")
    given = parser.parse_args(arguments)
    print(
        "| table | advice | log-loss before | with the advice | best candidate | worse"
        " by | worst segment |"
    )
    print("|---|---|---|---|---|---|---|")
    for seed in range(given.seeds):
        tables = {
            name: make(np.random.default_rng([seed, 1]), given.rows)
            for name, make in SIMULATED.items()
        }
        tables |= real_tables(given.data) if given.data else {}
        for name, table in tables.items():
            if given.only and given.only not in name:
                continue
            row = judged(table, seed)
            advice = row["advice"]
            own = f", {len(advice['segments'])} segments" if advice["segments"] else ""
            since = f", since {advice['since']}" if advice["since"] else ""
            worst = (
                ""
                if np.isnan(row["worst"])
                else f"{100 * row['worst']:.1f} to {100 * row['after']:.1f} points"
            )
            print(
                f"| {name} | {advice['kind']}: {advice['recalibrator']}{own}{since} |"
                f" {row['none']:.4f} | {row['loss']:.4f} | {row['best']:.4f}"
                f" {row['candidate']} | {100 * row['excess']:.2f} % (±"
                f" {100 * row['noise']:.2f}){' !' if row['excess'] > WORST else ''} |"
                f" {worst} |",
                flush=True,
            )
    if given.calibrated:
        found = list(calibrated_tables(given.calibrated))
        print(
            f"\nOf {len(found)} calibrated tables something is advised for"
            f" {sum(found)}."
        )
    if not given.only:
        _print_more(max(given.seeds, 3))


if __name__ == "__main__":
    main()
