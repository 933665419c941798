"""Coverage of performance estimated without labels, and with a few labels.

``python -m benchmarks.label_free [--samples 400] [--only WORD]`` draws labelled and new
samples from distributions with a known calibration curve, and prints how often the
intervals contain the value that the labels of the new samples give.
"""

import argparse

import numpy as np

from skcalib.monitoring import estimated_performance

METRICS = (
    "accuracy",
    "event_frequency",
    "log_loss",
    "brier_score",
    "precision",
    "recall",
    "false_positive_rate",
)


def _power(scores):
    return scores**1.5 / (scores**1.5 + (1 - scores) ** 0.8)


def _calibrated(scores):
    return scores


def _overconfident(scores):
    return scores**0.5 / (scores**0.5 + (1 - scores) ** 0.5)


def _never_certain(scores):
    return 0.1 + 0.8 * scores


# Name: labelled samples, their Beta scores, new samples, theirs, calibration curve.
WORLDS = {
    "same scores": (5000, (2, 2), 2000, (2, 2), _power),
    "lower scores": (5000, (2, 2), 2000, (1, 4), _power),
    "higher scores": (5000, (2, 2), 2000, (4, 2), _overconfident),
    "calibrated": (2000, (1, 1), 2000, (1, 3), _calibrated),
    "few labelled": (300, (2, 2), 2000, (4, 2), _power),
    "few new": (2000, (2, 2), 100, (2, 3), _power),
    "few of both": (200, (1, 1), 200, (1, 2), _overconfident),
    "rare events": (5000, (1, 19), 5000, (1, 9), _calibrated),
    "never certain": (1000, (0.5, 0.5), 1000, (0.5, 0.5), _never_certain),
}
# The share of known labels by their probability given the label.
KNOWN = (0, 20, 50, 100, 200, 500)


def figures(scores, labels):
    """Return the values that the labels give."""
    predicted = scores >= 0.5
    clipped = np.clip(scores, 2.0**-52, 1 - 2.0**-52)
    return {
        "accuracy": np.mean(predicted == labels),
        "event_frequency": labels.mean(),
        "log_loss": -np.mean(np.log(np.where(labels, clipped, 1 - clipped))),
        "brier_score": np.mean((scores - labels) ** 2),
        "precision": labels[predicted].mean() if predicted.any() else np.nan,
        "recall": predicted[labels].mean() if labels.any() else np.nan,
        "false_positive_rate": np.nan if labels.all() else predicted[~labels].mean(),
    }


def draw(rng, world, shift=0.0, new_share=None):
    """Return labelled scores and labels, new scores, and theirs; `shift` moves the
    curve of the new samples.

    With `new_share` a feature that the score does not hold moves the frequencies of a
    group by .15: three labelled samples in ten belong to it, and this share of the new
    ones.
    """
    n_labelled, shape, n_new, new_shape, curve = world
    scores = rng.beta(*shape, n_labelled)
    new_scores = rng.beta(*new_shape, n_new)
    frequency = curve(scores)
    moved = curve(new_scores) + shift
    if new_share is not None:
        frequency = frequency + 0.15 * ((rng.random(n_labelled) < 0.3) - 0.3)
        moved = moved + 0.15 * ((rng.random(n_new) < new_share) - 0.3)
    labels = rng.random(n_labelled) < np.clip(frequency, 0, 1)
    return scores, labels, new_scores, rng.random(n_new) < np.clip(moved, 0, 1)


def coverage(
    world, n_samples, seed, *, n_known=0, shift=0.0, first_events=1.0, new_share=None
):
    """Return by metric the share of intervals that hold the figure, and the share that
    is refused. Events become known `first_events` times as often as the others.
    """
    rng = np.random.default_rng(seed)
    held = dict.fromkeys(METRICS, 0)
    refused = dict.fromkeys(METRICS, 0)
    for _ in range(n_samples):
        scores, labels, new_scores, new_labels = draw(rng, world, shift, new_share)
        options = {}
        if n_known:
            chance = n_known / len(new_scores) * np.where(new_labels, first_events, 1)
            known = rng.random(len(new_scores)) < np.minimum(chance, 1)
            options = {
                "y_new": np.where(known, new_labels.astype(float), np.nan),
                "missing": "at_random",
            }
        found = estimated_performance(
            labels, scores, new_scores, metrics=METRICS, **options
        )
        truth = figures(new_scores, new_labels)
        for row, name in enumerate(found.metric):
            if name not in truth:
                continue  # what few known labels say alone has no interval
            if np.isnan(found.low[row]):
                refused[name] += 1
            elif found.low[row] <= truth[name] <= found.high[row]:
                held[name] += 1
    return {
        name: (
            held[name] / max(n_samples - refused[name], 1),
            refused[name] / n_samples,
        )
        for name in METRICS
    }


def _line(title, by_metric):
    cells = []
    for share, refused in by_metric.values():
        text = f"{share:.3f}" if refused < 1 else "none"
        cells.append(text + (f" ({refused:.2f})" if 0 < refused < 1 else ""))
    return f"| {title} | " + " | ".join(cells) + " |"


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("Coverage of 90 % intervals; in brackets the share without an interval.")
    print("| world | " + " | ".join(METRICS) + " |")
    print("|---" * (len(METRICS) + 1) + "|")
    jobs = [(name, world, {}) for name, world in WORLDS.items()]
    for n_known in KNOWN[1:]:
        world = WORLDS["lower scores"]
        jobs.append((f"{n_known} labels known", world, {"n_known": n_known}))
        moved = {"n_known": n_known, "shift": 0.05}
        jobs.append((f"{n_known} labels known, curve moved by .05", world, moved))
    broken = WORLDS["lower scores"]
    jobs.append(("assumption broken: curve moved by .05", broken, {"shift": 0.05}))
    early = {"n_known": 200, "first_events": 2.0}
    jobs.append(("assumption broken: events known twice as early", broken, early))
    mix = {"new_share": 0.7}
    jobs.append(("assumption broken: another mix of features", broken, mix))
    jobs.append(("200 labels known, another mix", broken, {**mix, "n_known": 200}))
    for seed, (title, world, changes) in enumerate(jobs):
        if options.only in title:
            found = coverage(world, options.samples, seed, **changes)
            print(_line(title, found), flush=True)


if __name__ == "__main__":
    main()
