"""The outcome at a horizon, made of times to an event that may be censored."""

import numpy as np

from skcalib import censored_labels
from skcalib._report._error import ReportError
from skcalib._report._sources import literal
from skcalib._verdicts import count_words, rounded


def check_outcome(label, time_to_event, event, horizon, weight):
    """Raise unless either a column of labels is named, or a time to the event with all
    that it needs.
    """
    if time_to_event is None:
        if event is not None or horizon is not None:
            raise ReportError(
                "--event and --horizon apply to times until an event: name the column"
                " of times with --time-to-event."
            )
        return
    if label is not None:
        raise ReportError(
            "--label and --time-to-event are both given: omit the one that is not the"
            " outcome."
        )
    if event is None or horizon is None:
        raise ReportError(
            "--time-to-event needs --event, the column that says whether the event"
            " happened, and --horizon, the time up to which events count."
        )
    if weight is not None:
        raise ReportError(
            "--time-to-event creates its own weights for censored rows: omit --weight."
        )


def add_outcome(columns, roles, horizon):
    """Add the columns of the labels at the horizon and of their weights to the dict
    `columns`, in place; return the note about them.
    """
    try:
        labels, weight, _ = censored_labels(
            columns[roles.time_to_event], columns[roles.event], horizon
        )
    except ValueError as error:
        raise ReportError(
            f"--time-to-event {roles.time_to_event}, --event {roles.event}: {error}"
        ) from error
    columns[roles.label] = labels
    columns[roles.weight] = weight
    n_censored = np.count_nonzero(weight == 0)
    return (
        f"{count_words(n_censored)} of {count_words(len(weight))} rows are censored"
        f" before {rounded(horizon, 6)}, so their outcome is unknown. The other rows"
        " represent them, with inverse-probability-of-censoring weights."
    )


def outcome_code(roles, horizon):
    """Return the lines of Python that do what `add_outcome` does."""
    time, event, label, weight = map(
        literal, (roles.time_to_event, roles.event, roles.label, roles.weight)
    )
    return [
        f"df[{label}], df[{weight}], _ = censored_labels(",
        f"    df[{time}], df[{event}], {horizon:g}",
        ")",
    ]
