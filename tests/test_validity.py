"""Monte Carlo: do the promises hold as often as they say?

Frequencies of a simulation of R runs at level p are compared with p minus three
standard errors, sqrt(p (1 - p) / R).
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import LeaveOneOut

from skcalib import CrossFittedClassifier, HistogramBinning, UniformMassBinning
from skcalib.binning import EqualMass, EqualWidth

pytestmark = pytest.mark.slow

LEVEL = 0.9
N_RUNS = 250
LOWEST = LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / N_RUNS)


class Population:
    """Scores with a known curve, addressed by their mass coordinate m in [0, 1]:
    score(m) increases.

    A pair (score, key) of an atom is the coordinate P(S < score) + key P(S = score).
    """

    def __init__(self, quantile, curve, atoms=None):
        self.quantile, self.curve, self.atoms = quantile, curve, atoms
        self.grid = np.linspace(0, 1, 200_001)
        middle = (self.grid[1:] + self.grid[:-1]) / 2
        self.integral = np.concatenate(
            ([0], np.cumsum(curve(quantile(middle))) / len(middle))
        )
        self.scores_on_grid = quantile(self.grid)

    def sample(self, n, rng):
        scores = self.quantile(rng.random(n))
        return scores, rng.random(n) < self.curve(scores)

    def mass(self, cuts, keys):
        if self.atoms is None:
            return np.interp(cuts, self.scores_on_grid, self.grid)
        low = np.searchsorted(self.scores_on_grid, cuts, side="left")
        high = np.searchsorted(self.scores_on_grid, cuts, side="right")
        return (low + keys * (high - low)) / len(self.grid)

    def bins(self, masses):
        """Return the probability and the event frequency of the bins between the
        coordinates.
        """
        ends = np.concatenate(([0], masses, [1]))
        probability = np.diff(ends)
        events = np.diff(np.interp(ends, self.grid, self.integral))
        return probability, np.divide(
            events, probability, out=np.full(len(events), np.nan), where=probability > 0
        )


POPULATIONS = {
    "uniform": Population(lambda m: m, np.square),
    "skewed": Population(stats.beta(5, 0.5).ppf, lambda s: s**3),
    "s_shaped": Population(lambda m: m, lambda s: 0.5 + 0.5 * np.sin(20 * s)),
    "atomic": Population(
        lambda m: np.floor(m * 6.999) / 6, lambda s: 0.2 + 0.6 * (s > 0.5), atoms=7
    ),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("interval", ["theorem", "clopper_pearson"])
def test_certificates_of_uniform_mass_binning_hold(name, interval):
    population = POPULATIONS[name]
    rng = np.random.default_rng(0)
    conditional, marginal, slack = [], [], []
    for run in range(N_RUNS):
        model = UniformMassBinning(8, randomize=True, random_state=run).fit(
            *population.sample(400, rng)
        )
        probability, truth = population.bins(
            population.mass(model.bin_edges_[1:-1], model._cut_key_)
        )
        # a bin without mass receives no row
        gap = np.nan_to_num(np.abs(model.bin_values_ - truth))
        certificate = model.certificate(LEVEL, interval=interval)
        conditional.append(gap.max() <= certificate.epsilon)
        slack.append(gap.max() / certificate.epsilon)
        marginal.append(
            probability
            @ (gap <= model.certificate(LEVEL, "marginal", interval=interval).epsilon)
        )
    print(
        f"{name}, {interval}: epsilon could have been {np.quantile(slack, LEVEL):.2f}"
        " times as large"
    )
    assert np.mean(conditional) >= LOWEST
    assert np.mean(marginal) >= LOWEST


@pytest.mark.parametrize("name", ["uniform", "skewed", "s_shaped"])
@pytest.mark.parametrize(
    "model",
    [HistogramBinning(EqualMass(5), sample_split=0.5), HistogramBinning(EqualWidth(3))],
    ids=["split", "fixed"],
)
def test_certificates_of_independent_bins_hold(name, model):
    population = POPULATIONS[name]
    rng = np.random.default_rng(1)
    held = []
    for _ in range(N_RUNS):
        model.fit(*population.sample(400, rng))
        _, truth = population.bins(population.mass(model.bin_edges_[1:-1], None))
        certificate = model.certificate(LEVEL, interval="clopper_pearson")
        held.append(np.nanmax(np.abs(model.bin_values_ - truth)) <= certificate.epsilon)
    assert np.mean(held) >= LOWEST


def test_choice_among_candidates_needs_their_number():
    # The best-looking of 4 models, each certified: with n_candidates the promise
    # survives the choice.
    population = POPULATIONS["s_shaped"]
    rng = np.random.default_rng(2)
    held = []
    for _ in range(N_RUNS):
        scores, labels = population.sample(400, rng)
        fitted = [UniformMassBinning(b).fit(scores, labels) for b in (4, 6, 8, 10)]
        model = max(fitted, key=lambda m: np.var(m.bin_values_))
        _, truth = population.bins(population.mass(model.bin_edges_[1:-1], None))
        epsilon = model.certificate(
            LEVEL, n_candidates=4, interval="clopper_pearson"
        ).epsilon
        held.append(np.abs(model.bin_values_ - truth).max() <= epsilon)
    assert np.mean(held) >= LOWEST


def test_points_inside_a_bin_are_independent_draws_given_its_ends():
    # Lemmas 1 and 2: given the cuts a < b, uniform scores strictly between them are
    # uniform on (a, b), and the labels among them binomial with the bin's event
    # frequency.
    population = POPULATIONS["uniform"]
    rng = np.random.default_rng(3)
    positions, levels = [], []
    for _ in range(500):
        scores, labels = population.sample(300, rng)
        model = UniformMassBinning(6).fit(scores, labels)
        low, high = model.bin_edges_[2:4]
        inside = (scores > low) & (scores < high)
        positions.append(rng.permutation((scores[inside] - low) / (high - low))[:5])
        _, truth = population.bins(population.mass(model.bin_edges_[1:-1], None))
        events, count = labels[inside].sum(), inside.sum()
        assert count == model.bin_counts_[2]
        # randomised probability integral transform of a binomial count: uniform if the
        # lemma is right
        at_most = stats.binom.cdf([events - 1, events], count, truth[2])
        levels.append(rng.uniform(*at_most))
    assert stats.kstest(np.concatenate(positions), "uniform").pvalue > 0.01
    assert stats.kstest(levels, "uniform").pvalue > 0.01


def test_cross_fitting_breaks_the_promise_and_one_model_keeps_it():
    # A model that only learns the base rate, leave-one-out: the rows with an event are
    # scored a little lower than the others, for their event is missing from the
    # training set. Binning learns this reversed order by heart; the model fitted on
    # everything scores in between.
    rng = np.random.default_rng(4)
    n, n_runs = 200, 15
    X = np.zeros((n, 1))
    cross_fitted, one_model = [], []
    for run in range(n_runs):
        y, y_fresh = rng.random(n) < 0.5, rng.random(n) < 0.5
        model = CrossFittedClassifier(
            DummyClassifier(strategy="prior"), cv=LeaveOneOut()
        )
        out_of_fold = model.fit_transform(X, y)
        new_score = model.transform(X[:1])
        for scores, labels, held in [
            (out_of_fold, y, cross_fitted),
            (model.transform(X), y_fresh, one_model),
        ]:
            binning = UniformMassBinning(4, randomize=True, random_state=run).fit(
                scores, labels
            )
            # every row's event frequency is 1/2
            gap = abs(binning.predict_proba(new_score)[0, 1] - 0.5)
            held.append(gap <= binning.certificate(LEVEL).epsilon)
    assert np.mean(one_model) >= LEVEL
    assert np.mean(cross_fitted) < 0.5
