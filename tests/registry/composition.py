"""Entries of what puts recalibrators around classifiers, and of labels."""

from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from registry._entry import Entry
from skcalib import (
    CrossFittedClassifier,
    HistogramBinning,
    RecalibratedClassifierCV,
    censored_labels,
    expand_soft_labels,
)
from skcalib.binning import EqualMass
from skcalib.model_selection import sharpest_within


def _cross_fitted(rows):
    fitted = CrossFittedClassifier(GaussianNB(), cv=3).fit(rows.X, rows.y)
    out_of_fold = fitted.fit_transform(rows.X, rows.y)
    return [out_of_fold[:5], fitted.transform(rows.X[:5])]


def _recalibrated(rows):
    found = {}
    for ensemble in (True, False):
        model = RecalibratedClassifierCV(
            GaussianNB(), HistogramBinning(3), cv=3, ensemble=ensemble
        )
        model.fit(rows.X, rows.y)
        found[f"{ensemble}"] = model.predict_proba(rows.X[:5])
    return found


def _chosen_in_a_search(rows):
    rule = sharpest_within(0.2)
    search = GridSearchCV(
        HistogramBinning(),
        {"binning": [EqualMass(2), EqualMass(5), EqualMass(10)]},
        scoring=rule.scoring,
        refit=rule,
        cv=3,
    )
    return search.fit(rows.scores[:, None], rows.y).best_index_


ENTRIES = {
    "skcalib.CrossFittedClassifier": Entry(
        job="doc/pipelines.md", result=_cross_fitted
    ),
    "skcalib.RecalibratedClassifierCV": Entry(
        job="doc/pipelines.md", results=_recalibrated
    ),
    "skcalib.censored_labels": Entry(
        job="doc/outcome_not_known_yet.md",
        result=lambda rows: censored_labels([3, 5, 8, 13], [1, 0, 1, 0], 10)[:2],
    ),
    "skcalib.expand_soft_labels": Entry(
        job="doc/deploying.md",
        result=lambda rows: expand_soft_labels([0.2, 0.6], [0.25, 1.0], [2, 1]),
        no_paper="rows in another form",
    ),
    "skcalib.model_selection.sharpest_within": Entry(
        job="doc/pipelines.md", result=_chosen_in_a_search
    ),
}
