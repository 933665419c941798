"""
Confidences of a language model, by subject
===========================================

A language model answers questions and states its confidence, which is high in every
subject, although its accuracy differs between them. A single recalibrator is calibrated
overall, but biased for each subject. `GroupwiseRecalibrator` fits one map per subject,
and uses the pooled map for subjects with few samples.
"""

# %%
# Simulate answers. As is usual for language models, the stated confidence is rounded to
# 5 % and carries little information.
import numpy as np
from scipy.special import expit

rng = np.random.default_rng(0)
difficulty = {
    "history": 0.3,
    "law": -0.5,
    "mathematics": -1.4,
    "medicine": -0.2,
    "physics": -1.0,
}


def answers(n):
    subject = rng.choice(list(difficulty), n)
    known = rng.normal(size=n)
    confidence = np.clip(np.round(20 * expit(1.8 + 0.6 * known)) / 20, 0.05, 0.95)
    right = rng.random(n) < expit([difficulty[one] for one in subject] + known)
    return subject, confidence, right


subject, confidence, right = answers(3000)
subject_test, confidence_test, right_test = answers(6000)

# %%
# Both recalibrators are fitted to the same 3,000 answers. Pass the groups to `fit` and
# to `predict_proba`.
from skcalib import GroupwiseRecalibrator, PlattScaling

pooled = PlattScaling().fit(confidence, right)
by_subject = GroupwiseRecalibrator(PlattScaling()).fit(
    confidence, right, groups=subject
)
found = {
    "as stated": confidence_test,
    "one map": pooled.predict_proba(confidence_test)[:, 1],
    "one map for each subject": by_subject.predict_proba(
        confidence_test, groups=subject_test
    )[:, 1],
}

# %%
# The bias of a subject is its mean confidence minus its share of correct answers. A
# single map corrects the mean over all subjects, but leaves a bias in each subject.
from skcalib.displays import GroupDisplay
from skcalib.metrics import calibration_error

display = GroupDisplay.from_predictions(right_test, found, subject_test, random_state=0)
for name, table in display.tables.items():
    error, worst = calibration_error(right_test, found[name]), np.abs(table.bias).max()
    print(f"{name}: error of all answers {error:.3f}, worst subject {worst:.3f}")

# %%
# **See also:** :doc:`/language_models`, :doc:`/which_groups`,
# :doc:`/deploying`. Reference:
# `GroupwiseRecalibrator`, `GroupDisplay`, `calibration_by_group`.
