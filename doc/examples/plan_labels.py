"""How many samples must be labelled? A plan before the first label, a simulation of it,
and the guarantee from counts alone.

A lender wants to guarantee that no predicted probability is off by more than .1. Labels
are expensive, and the warehouse returns only counts, not rows.
"""

import numpy as np
from scipy import stats

from skcalib import UniformMassBinning
from skcalib.guarantees import (
    binning_mse_bound,
    conditional_epsilon,
    event_frequency_interval,
    expected_error_bound,
    independent_bins_certificate,
    marginal_epsilon,
    max_n_bins,
    min_n_samples,
    sample_split_epsilon,
    uniform_mass_certificate,
    well_balanced_alpha,
)
from skcalib.metrics import validity_curve
from skcalib.simulation import CalibrationModel, PlattCurve

TOLERANCE, N_BINS = 0.1, 10
GRADES = [0, 0.1, 0.2, 0.3, 0.5, 1]  # fixed before any data were seen


def plan():
    """Return the number of samples to label, and print the effect of alternatives."""
    n_rows = min_n_samples(N_BINS, TOLERANCE)
    print(
        f"{N_BINS} values within {TOLERANCE}, all at once, with 90 % confidence:"
        f" {n_rows:,} labelled rows."
    )
    print(
        "For one random customer instead of all values:"
        f" {min_n_samples(N_BINS, TOLERANCE, kind='marginal'):,} rows."
    )
    half = n_rows // 2
    print(
        f"With half the rows: {max_n_bins(half, TOLERANCE)} values, or"
        f" {conditional_epsilon(half, N_BINS):.3f} for all"
    )
    print(
        f"and {marginal_epsilon(half, N_BINS):.3f} for one; on average"
        f" {expected_error_bound(half, N_BINS):.3f}."
    )
    print(
        "Edges from one half, frequencies from the other:"
        f" {sample_split_epsilon(half, half, N_BINS):.3f}."
    )
    print(
        f"Binning increases the Brier score by at most {binning_mse_bound(N_BINS):.2f}."
    )
    return n_rows


def rehearse(n_rows, n_repeats=40):
    """Return the share of rehearsals with every value within the tolerance. The
    guarantee is 90 %.
    """
    # Scores of last year's model, with a calibration curve that is twice as steep as it
    # should be.
    model = CalibrationModel(stats.beta(1.2, 4), PlattCurve(0.5, -0.4))
    rehearsals = []
    for seed in range(n_repeats):
        binning = UniformMassBinning(N_BINS).fit(
            *model.sample(n_rows, random_state=seed)
        )
        fresh, truth = model.sample(100_000, random_state=1000 + seed)
        rehearsals.append((truth, binning.predict_proba(fresh)[:, 1]))
    kept = []
    for labels, proba in rehearsals:
        _, (validity,) = validity_curve(
            labels, proba, epsilons=[TOLERANCE], conditional=True
        )
        kept.append(validity)
    first = "every value" if kept[0] == 1 else "not every value"
    print(f"First rehearsal: {first} is within {TOLERANCE}.")
    share = np.mean(kept)
    deviation = np.std(kept, ddof=1) / np.sqrt(len(kept))
    print(f"All rehearsals: {share:.0%} (standard error {deviation:.1%}).")
    return share


def certify(scores, labels):
    """Return certificates based on counts alone, for grades that were fixed beforehand
    and for equal-mass bins.
    """
    grade = np.searchsorted(GRADES[1:-1], scores)
    # two numbers per grade
    counts, events = np.bincount(grade), np.bincount(grade, labels).astype(int)
    low, high = event_frequency_interval(events, counts)
    print(
        f"Event frequency of the best grade: {low[0]:.3f} to {high[0]:.3f}, all grades"
        " at once."
    )
    fixed = independent_bins_certificate(events, counts, events / counts, edges="fixed")
    print(
        f"The grades are {well_balanced_alpha(counts):.2g}-well-balanced, and guarantee"
        f" {fixed.epsilon:.3f}."
    )
    order = np.argsort(scores)
    # these samples define the boundaries and are not counted
    cuts = np.arange(1, N_BINS) * len(scores) // N_BINS
    inside = np.split(np.delete(labels[order], cuts), cuts - np.arange(len(cuts)))
    events, counts = (
        np.array([part.sum() for part in inside]),
        np.array([len(part) for part in inside]),
    )
    equal = uniform_mass_certificate(
        events, counts, events / counts, n_samples=len(scores)
    )
    print(f"Equal-mass bins guarantee {equal.epsilon:.3f}.")
    return fixed, equal


def main(n_repeats=40):
    """Run the example. Return the number of samples, the share of successful rehearsals
    and both certificates.
    """
    n_rows = plan()
    share = rehearse(n_rows, n_repeats)
    scores, labels = CalibrationModel(stats.beta(1.2, 4), PlattCurve(0.5, -0.4)).sample(
        n_rows, random_state=0
    )
    return n_rows, share, *certify(scores, labels)


if __name__ == "__main__":
    main()
