"""model-diagnostics: reliability diagrams."""

import matplotlib.pyplot as plt
from model_diagnostics.calibration import plot_reliability_diagram

from benchmarks.speed.floors import drawn
from benchmarks.speed.peers import Contender


def _diagram(problem):
    figure, axes = plt.subplots()
    plot_reliability_diagram(problem.labels, problem.scores, ax=axes)
    size = drawn(figure)
    plt.close(figure)
    return size


JOBS = {
    "reliability diagram": Contender(
        _diagram, None, "an isotonic curve without intervals"
    )
}
