"""Alternative text for the thumbnails of the gallery."""

import re

from docutils import nodes

DESCRIPTIONS = {
    "plot_01_boosting_in_a_pipeline": (
        "Two reliability diagrams: scores are too extreme before recalibration, and"
        " close to the diagonal after it."
    ),
    "plot_02_fitted_model": (
        "Two reliability diagrams of a fitted model: off the diagonal before"
        " recalibration, and on it afterwards."
    ),
    "plot_03_which_bins": (
        "Brier score and squared calibration error against the number of bins, with the"
        " selected number marked."
    ),
    "plot_04_is_it_noise": (
        "The same model on 200 and on 20,000 samples: a ragged curve in a wide band,"
        " and a smooth curve in a narrow band."
    ),
    "plot_05_certificate": (
        "The guaranteed tolerance widens with the number of bins; the Brier score"
        " falls and then stays low."
    ),
    "plot_06_network_logits": (
        "Reliability diagrams of a network and of the same network after temperature"
        " scaling."
    ),
    "plot_07_hundred_classes": (
        "Log-loss of seven methods as bars, which are shorter for methods that pool"
        " classes."
    ),
    "plot_08_language_model": (
        "Mean confidence minus share of correct answers for each subject, with"
        " intervals: without a map, with one map, and with one map per subject."
    ),
    "plot_09_groups_and_segments": (
        "Mean score minus event frequency of each site, with intervals; some differ"
        " from zero."
    ),
    "plot_10_has_it_drifted": (
        "The evidence of a monitor over time: flat at first, then rising above the"
        " alarm threshold."
    ),
    "plot_11_report": (
        "The first page of a report: a written summary above a reliability diagram."
    ),
    "plot_12_duckdb_and_sql": (
        "Two reliability diagrams of clicks, before and after recalibration in SQL."
    ),
    "plot_13_json_and_onnx": (
        "A calibration map, with points of the ONNX model exactly on it."
    ),
    "plot_14_write_your_own": (
        "Reliability diagrams for fraud, a rare event, before and after a custom"
        " recalibrator."
    ),
    "plot_15_which_threshold": (
        "Error rate among the answers against the share of samples answered, with the"
        " certified share marked."
    ),
    "plot_16_decision_curve": (
        "Net benefit of two models against the threshold, compared with treating"
        " all and treating none."
    ),
    "plot_17_how_many_bins_can_i_afford": (
        "Guaranteed tolerance against the number of bins, one curve per sample size."
    ),
    "plot_18_bias_of_an_error": (
        "A heat map: the bias of the calibration error increases with the number of"
        " bins and decreases with the number of samples."
    ),
    "plot_19_after_the_release": (
        "Event frequency by month: observed, and estimated from the scores alone, from"
        " a few labels and by an online recalibrator."
    ),
    "plot_20_refine_then_calibrate": (
        "Log-loss and refinement loss against the number of trees: the first rises"
        " early, the second keeps falling."
    ),
    "plot_21_several_labels": (
        "A reliability diagram for each of four labels of naive Bayes, which is"
        " overconfident."
    ),
}


def _describe(app, document):
    for image in document.findall(nodes.image):
        thumbnail = re.search(r"sphx_glr_(plot_\w+)_thumb\.", image["uri"])
        if thumbnail:
            image["alt"] = DESCRIPTIONS[thumbnail[1]]


def setup(app):
    """Register the transformation."""
    app.connect("doctree-read", _describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
