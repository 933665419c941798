"""Thumbnails of the gallery have words for readers who do not see them."""

import re

from docutils import nodes

DESCRIPTIONS = {
    "plot_01_boosting_in_a_pipeline": (
        "Two reliability diagrams: too extreme before recalibration, near the diagonal"
        " after it."
    ),
    "plot_02_fitted_model": (
        "Two reliability diagrams of a fitted model, off the diagonal before"
        " recalibration and on it after."
    ),
    "plot_03_which_bins": (
        "Brier score and squared calibration error against the number of bins, with the"
        " chosen number marked."
    ),
    "plot_04_is_it_noise": (
        "The same model on 200 and on 20,000 rows: a ragged curve in a wide band, and a"
        " smooth one in a narrow band."
    ),
    "plot_05_certificate": (
        "The guaranteed tolerance grows with the number of bins; the Brier score falls"
        " and stays low."
    ),
    "plot_06_network_logits": (
        "Reliability diagrams of a network and of the same network after temperature"
        " scaling."
    ),
    "plot_07_hundred_classes": (
        "Bars of the log-loss of seven methods: those that pool classes are shorter."
    ),
    "plot_08_language_model": (
        "Mean confidence minus share of right answers for each subject, with intervals,"
        " for no map, one map, and one map per subject."
    ),
    "plot_09_groups_and_segments": (
        "Mean score minus event frequency of each site, with intervals; some are away"
        " from zero."
    ),
    "plot_10_has_it_drifted": (
        "The evidence of a monitor over time: flat, then it climbs across the alarm"
        " line."
    ),
    "plot_11_report": (
        "The first page of a report: a summary in words above a reliability diagram."
    ),
    "plot_12_duckdb_and_sql": (
        "Two reliability diagrams of clicks, before and after recalibration in SQL."
    ),
    "plot_13_json_and_onnx": (
        "A calibration map, with points of the ONNX model exactly on it."
    ),
    "plot_14_write_your_own": (
        "Reliability diagrams of rare fraud, before and after a recalibrator of one's"
        " own."
    ),
    "plot_15_which_threshold": (
        "Errors among answers against the share of rows answered, with the certified"
        " share marked."
    ),
    "plot_16_decision_curve": (
        "Net benefit of two models against the threshold, with treating all and"
        " treating none."
    ),
    "plot_17_how_many_bins_can_i_afford": (
        "Guaranteed tolerance against the number of bins, a curve for each sample size."
    ),
    "plot_18_bias_of_an_error": (
        "A table of colours: the bias of the calibration error grows with the bins and"
        " falls with the rows."
    ),
    "plot_19_after_the_release": (
        "Event frequency by month: what happened, scores alone, a few labels, and a map"
        " that learns."
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
