"""pycalib: the class-wise error of equal-width bins."""

from pycalib.metrics import classwise_ECE

from benchmarks.speed.peers import Contender

JOBS = {
    "marginal, equal width": Contender(
        lambda problem: classwise_ECE(problem.labels, problem.scores, bins=15)
    )
}
