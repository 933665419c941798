"""venn-abers: the inductive Venn-Abers predictor of one of its authors."""

from venn_abers import VennAbers


def _inductive(probs_cal, labels_cal, probs_test):
    predictor = VennAbers()
    predictor.fit(probs_cal, labels_cal)
    return predictor.predict_proba(probs_test)[0]


BINARY = {"inductive": _inductive}
MULTICLASS = {}
