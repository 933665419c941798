"""relplot: the smooth calibration error of its authors, and reliability diagrams."""

import numpy as np
import relplot

from benchmarks.speed.peers import Contender

# Its bins are closed on the left: a score of exactly 1/15 is in another one.


def _top_label(problem):
    predicted = problem.scores.argmax(axis=1)
    confidence = problem.scores[np.arange(len(predicted)), predicted]
    return relplot.metrics.binnedECE(confidence, predicted == problem.labels, nbins=15)


def _diagram(problem):
    import matplotlib.pyplot as plt

    from benchmarks.speed.floors import drawn

    figure, _ = relplot.rel_diagram(problem.scores, problem.labels)
    size = drawn(figure)
    plt.close(figure)
    return size


JOBS = {
    "equal-width ECE": Contender(
        lambda problem: relplot.metrics.binnedECE(
            problem.scores, problem.labels, nbins=15
        )
    ),
    "top-label ECE": Contender(_top_label),
    "smECE": Contender(
        lambda problem: relplot.smECE(problem.scores, problem.labels),
        None,
        "searches widths in steps of 1/1024",
    ),
    "reliability diagram": Contender(
        _diagram, None, "kernel smoothing with bootstrap bands"
    ),
}
