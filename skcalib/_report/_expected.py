"""What performance to expect on scores whose labels are not known yet."""

from skcalib._report._samples import CONFIDENCE_LEVEL, LABELS, records
from skcalib.monitoring import estimated_performance


def expected_performance(table, name, new_scores):
    """Return the estimated performance of a model on new scores as plain values.

    Parameters
    ----------
    table : ReportTable
        The samples with labels.
    name : str
        Name of the model.
    new_scores : ndarray of shape (m,) or (m, K)
        The scores of the samples whose labels are not known.

    Returns
    -------
    expected : dict
        The `rows` of the metrics, the numbers of samples, the share of scores `outside`
        the labelled ones, and the `assumptions`.
    """
    rows = table.forecasts(name)
    labels = LABELS
    if table.classes is not None:
        labels = list(range(len(table.classes)))
    found = estimated_performance(
        rows.labels,
        rows.scores,
        new_scores,
        confidence_level=CONFIDENCE_LEVEL,
        sample_weight=rows.sample_weight,
        weight_type=rows.weight_type,
        clusters=rows.clusters,
        labels=labels,
    )
    columns = {
        "metric": found.metric,
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "reason": found.reason,
    }
    return {
        "rows": records(columns),
        "n_new": found.n_new,
        "outside": found.outside,
        "assumptions": list(found.assumptions),
    }
