"""Recalibrators on streams: ``python -m benchmarks.online_streams [--samples 20000]``.

The benchmark prints the excess of the log-loss over that of the true probabilities, in
nats per sample. It compares the original scores, a map fitted once, a map refitted to
the latest samples, `OnlineRecalibrator` with and without the fixed map, and the
isotonic calibration with forgetting of streamcal, if it is installed (it requires
Python 3.12).
"""

import argparse
from importlib.util import find_spec

import numpy as np
from scipy.special import expit
from sklearn.frozen import FrozenEstimator

from skcalib import OnlineRecalibrator, PlattScaling

BATCH = 500
LABELLED = 2000  # samples before the stream, which the fixed map is fitted to
WINDOW = 2000


def _stable(time, rng):
    return np.full(len(time), 0.7), np.full(len(time), -0.3)


def _jump(time, rng):
    after = time >= 0.5
    return np.where(after, 1.2, 0.7), np.where(after, 0.8, -0.3)


def _slow(time, rng):
    return 0.7 + 0.5 * time, -0.3 + 1.5 * time


def _seasonal(time, rng):
    return np.full(len(time), 0.8), 0.6 * np.sin(2 * np.pi * 4 * time)


def _rare(time, rng):
    return np.full(len(time), 0.9), np.where(time >= 0.5, 0.7, 0.0)


def _switching(time, rng):
    # A world that moves whenever a window of the usual length has caught up.
    sign = np.where((time * 10).astype(int) % 2 == 0, 1.0, -1.0)
    return np.full(len(time), 1.0), sign


STREAMS = {
    "stable": (_stable, 0.0),
    "jump": (_jump, 0.0),
    "slow drift": (_slow, 0.0),
    "seasonal": (_seasonal, 0.0),
    "rare events": (_rare, -5.0),
    "adversarial switching": (_switching, 0.0),
}


def stream(name, n_samples, seed):
    """Return scores, labels and true probabilities, the labelled ones first."""
    rng = np.random.default_rng(seed)
    curve, centre = STREAMS[name]
    log_odds = centre + 1.5 * rng.normal(size=LABELLED + n_samples)
    time = np.maximum(np.arange(-LABELLED, n_samples) / n_samples, 0)
    slope, intercept = curve(time, rng)
    truth = expit(centre + slope * (log_odds - centre) + intercept)
    return expit(log_odds), rng.random(len(time)) < truth, truth


def _log_loss(probability, truth):
    """Return the expected log-loss, which has no noise of the labels."""
    clipped = np.clip(probability, 1e-15, 1 - 1e-15)
    return -truth * np.log(clipped) - (1 - truth) * np.log1p(-clipped)


def _batches(scores):
    return np.split(
        np.arange(LABELLED, len(scores)), range(BATCH, len(scores) - LABELLED, BATCH)
    )


def _as_they_are(scores, labels):
    return scores[LABELLED:]


def _fixed(scores, labels):
    platt = PlattScaling().fit(scores[:LABELLED], labels[:LABELLED])
    return platt.predict_proba(scores[LABELLED:])[:, 1]


def _rolling(scores, labels):
    forecasts = []
    for batch in _batches(scores):
        latest = slice(batch[0] - WINDOW, batch[0])
        platt = PlattScaling().fit(scores[latest], labels[latest])
        forecasts.append(platt.predict_proba(scores[batch])[:, 1])
    return np.concatenate(forecasts)


def _online(scores, labels, recalibrator=None, **options):
    online = OnlineRecalibrator(recalibrator, **options)
    online.fit(scores[:LABELLED], labels[:LABELLED])
    forecasts = []
    for batch in _batches(scores):
        forecasts.append(online.predict_proba(scores[batch])[:, 1])
        online.partial_fit(scores[batch], labels[batch])
    return np.concatenate(forecasts)


def _online_with_map(scores, labels):
    platt = PlattScaling().fit(scores[:LABELLED], labels[:LABELLED])
    return _online(scores, labels, FrozenEstimator(platt))


def _streamcal(scores, labels):
    from streamcal import StreamingIsotonicCalibrator

    isotonic = StreamingIsotonicCalibrator()
    for batch in np.split(np.arange(LABELLED), range(BATCH, LABELLED, BATCH)):
        isotonic.update(scores[batch], labels[batch])
    forecasts = []
    for batch in _batches(scores):
        forecasts.append(isotonic.calibrate(scores[batch]))
        isotonic.update(scores[batch], labels[batch])
    return np.concatenate(forecasts)


METHODS = {
    "scores": _as_they_are,
    "fixed map": _fixed,
    f"refitted to {WINDOW:,}": _rolling,
    "OnlineRecalibrator": _online,
    "with the fixed map": _online_with_map,
}
if find_spec("streamcal") is not None:
    METHODS["streamcal"] = _streamcal


def excess(name, n_samples, seed):
    """Return the mean excess log-loss of each method on a stream."""
    scores, labels, truth = stream(name, n_samples, seed)
    least = _log_loss(truth[LABELLED:], truth[LABELLED:])
    return {
        method: float(
            np.mean(_log_loss(forecast(scores, labels), truth[LABELLED:]) - least)
        )
        for method, forecast in METHODS.items()
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("| stream | " + " | ".join(METHODS) + " |")
    print("|---" * (len(METHODS) + 1) + "|")
    for name in STREAMS:
        rows = [excess(name, options.samples, seed) for seed in range(options.seeds)]
        means = [np.mean([row[method] for row in rows]) for method in METHODS]
        print(f"| {name} | " + " | ".join(f"{mean:.4f}" for mean in means) + " |")
    if find_spec("streamcal") is None:
        print("\nstreamcal is not installed.")


if __name__ == "__main__":
    main()
