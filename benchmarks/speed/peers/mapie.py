"""MAPIE: the top-label error."""

from mapie.metrics.calibration import expected_calibration_error, top_label_ece

from benchmarks.speed.peers import Contender

JOBS = {
    "equal-width ECE": Contender(
        lambda problem: expected_calibration_error(
            problem.labels, problem.scores, num_bins=15
        )
    ),
    "top-label ECE": Contender(
        lambda problem: top_label_ece(problem.labels, problem.scores, num_bins=15),
        None,
        "the mean of an error for each predicted class",
    ),
}
