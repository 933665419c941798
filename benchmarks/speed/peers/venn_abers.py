"""venn-abers: inductive Venn-Abers predictors."""

import numpy as np
from venn_abers import VennAbers

from benchmarks.speed.peers import Contender


def _fit_predict(problem):
    two = np.column_stack((1 - problem.scores, problem.scores))
    model = VennAbers()
    model.fit(two, problem.labels)
    return model.predict_proba(two)[0]


JOBS = {"Venn-Abers": Contender(_fit_predict)}
