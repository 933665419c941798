"""Entries of the recalibrators, and of the bases for one's own."""

import numpy as np

from registry._entry import Entry, RecalibratorEntry
from registry._rows import NEW_SCORES
from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    MulticalibratedRecalibrator,
    PlattScaling,
    PriorShift,
    QuadraticScaling,
    Recalibrator,
    ScalingBinning,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    UniformMassBinning,
    VectorScaling,
    VennAbers,
    estimate_target_prior,
)

_NO_WEIGHTS = "passes weights to a method whose theory has none"


def _matrix_of_logits(rows):
    fitted = MatrixScaling(input="logit").fit(rows.logits, rows.label)
    new = np.array([[0.5, -1.25, 3], [0, 0, 0], [90, -90, 0], [1002, 1000, 1001]])
    yield fitted, new, None, None


def _groups(rows):
    """Yield maps by the group of each row, and by the predicted class."""
    rotation = np.arange(len(rows.y))
    three_sites = np.array(["north", "o'south", "east"])[rotation % 3]
    two_sites = np.array(["a", "b"])[rotation % 2]
    new = np.repeat([0.125, 0.5, 0.75], 3)[:, None]
    fitted = GroupwiseRecalibrator(PlattScaling(), min_group_size=20, shrinkage=5)
    fitted.fit(rows.scores, rows.y, groups=three_sites)
    yield fitted, new, np.tile(fitted.groups_, 3).tolist(), None
    fitted = GroupwiseRecalibrator(min_group_size=5).fit(rows.scores, rows.y)
    yield fitted, NEW_SCORES, None, None
    for inner in (IsotonicCalibration(), StackedRecalibrator(cv=2)):
        fitted = GroupwiseRecalibrator(inner, min_group_size=20)
        fitted.fit(rows.scores, rows.y, groups=two_sites)
        yield fitted, new, ["a", "b", "never seen"] * 3, None


def _one_feature(rows):
    fitted = MulticalibratedRecalibrator(PlattScaling(), features=1, max_rounds=0)
    feature = np.arange(len(rows.y)) % 2
    fitted.fit(np.column_stack((rows.scores, feature)), rows.y)
    yield fitted, np.array([[0.25, 1], [0.75, 0]]), None, None


def _randomised_by_id(rows):
    tied = np.round(rows.scores * 4) / 4
    fitted = UniformMassBinning(5, randomize=True, random_state=0).fit(tied, rows.y)
    on_cuts = np.repeat(np.unique(tied), 4)[:, None]
    yield fitted, on_cuts, None, list(range(len(on_cuts)))
    yield fitted, on_cuts, None, [f"row's {k}" for k in range(len(on_cuts))]


ENTRIES = {
    "skcalib.BetaCalibration": RecalibratorEntry(
        job="doc/gallery/plot_01_boosting_in_a_pipeline.py",
        instances=(
            BetaCalibration(),
            BetaCalibration("ab", smooth_targets=True, multiclass="top_label"),
        ),
        two_classes=(BetaCalibration(),),
        log_odds=(BetaCalibration(),),
        fits_missing_class=True,
    ),
    "skcalib.ClasswiseTemperatureScaling": RecalibratorEntry(
        job="doc/many_classes.md",
        instances=(
            ClasswiseTemperatureScaling(),
            ClasswiseTemperatureScaling(max_deviation=0.1),
        ),
        two_classes=(ClasswiseTemperatureScaling(max_deviation=0.5),),
        three_classes=(ClasswiseTemperatureScaling(max_deviation=0.5),),
        fits_missing_class=True,
    ),
    "skcalib.DirichletCalibration": RecalibratorEntry(
        job="doc/many_classes.md",
        instances=(DirichletCalibration(),),
        two_classes=(DirichletCalibration(0.1),),
        three_classes=(DirichletCalibration(),),
        fits_missing_class=True,
    ),
    "skcalib.EnsembleTemperatureScaling": RecalibratorEntry(
        job="doc/many_classes.md",
        instances=(EnsembleTemperatureScaling(),),
        two_classes=(EnsembleTemperatureScaling(),),
        three_classes=(EnsembleTemperatureScaling(),),
        fits_missing_class=True,
    ),
    "skcalib.GroupwiseRecalibrator": RecalibratorEntry(
        job="doc/which_recalibrator.md",
        more_fits=_groups,
    ),
    "skcalib.HistogramBinning": RecalibratorEntry(
        job="doc/how_many_bins.md",
        instances=(
            HistogramBinning(binning=3),
            HistogramBinning(binning=3, smoothing=1.0, multiclass="top_label"),
        ),
        two_classes=(HistogramBinning(4),),
        three_classes=(
            HistogramBinning(4),
            HistogramBinning(4, multiclass="top_label"),
            HistogramBinning(4, normalize=False),
        ),
        fits_missing_class=True,
    ),
    "skcalib.IsotonicCalibration": RecalibratorEntry(
        job="doc/coming_from.md",
        instances=(IsotonicCalibration(), IsotonicCalibration(centered=True)),
        two_classes=(IsotonicCalibration(), IsotonicCalibration(centered=True)),
        log_odds=(IsotonicCalibration(),),
        fits_missing_class=True,
    ),
    "skcalib.MatrixScaling": RecalibratorEntry(
        job="doc/many_classes.md",
        instances=(MatrixScaling(),),
        two_classes=(MatrixScaling(0.1),),
        three_classes=(MatrixScaling(),),
        more_fits=_matrix_of_logits,
        fits_missing_class=True,
    ),
    "skcalib.MulticalibratedRecalibrator": RecalibratorEntry(
        job="doc/which_groups.md",
        more_fits=_one_feature,
    ),
    "skcalib.OnlineRecalibrator": Entry(job="doc/after_release.md"),
    "skcalib.PlattScaling": RecalibratorEntry(
        job="doc/pipelines.md",
        instances=(
            PlattScaling(),
            PlattScaling(loss="squared", smooth_targets=False),
            PlattScaling(multiclass="top_label"),
            PlattScaling(class_pooling=1.0),
        ),
        two_classes=(PlattScaling(), PlattScaling(clip=0.01)),
        log_odds=(PlattScaling(),),
        three_classes=(PlattScaling(), PlattScaling(multiclass="top_label")),
        fits_missing_class=True,
    ),
    "skcalib.PriorShift": RecalibratorEntry(
        job="doc/reading_a_diagram.md",
        instances=(PriorShift(train_prior="balanced"),),
        two_classes=(PriorShift("balanced", 0.125),),
        three_classes=(PriorShift("balanced"),),
    ),
    "skcalib.QuadraticScaling": RecalibratorEntry(
        job="doc/which_recalibrator.md",
        instances=(
            QuadraticScaling(),
            QuadraticScaling(alpha=0.1, monotone=True),
            QuadraticScaling(class_pooling=0),
        ),
        two_classes=(QuadraticScaling(),),
        fits_missing_class=True,
    ),
    "skcalib.Recalibrator": RecalibratorEntry(
        job="doc/pipelines.md",
        instances=(
            Recalibrator(SplineCalibration(), cv=2),
            Recalibrator(),
        ),
        two_classes=(Recalibrator(PlattScaling()),),
        fits_missing_class=True,
        expected_failures={
            "check_sample_weight_equivalence_on_dense_data": (
                "gives splits that name rows of weight 0, which count as none"
            )
        },
        no_paper="a rule of this package: recalibrate only where it gains",
    ),
    "skcalib.ScalingBinning": RecalibratorEntry(
        job="doc/how_many_bins.md",
        instances=(ScalingBinning(binning=3),),
        two_classes=(ScalingBinning(binning=4),),
        fits_missing_class=True,
    ),
    "skcalib.SplineCalibration": RecalibratorEntry(
        job="doc/which_recalibrator.md",
        instances=(
            SplineCalibration(),
            SplineCalibration(
                4, roughness_penalty=0.5, monotone=True, multiclass="top_label"
            ),
        ),
        two_classes=(SplineCalibration(5),),
        fits_missing_class=True,
    ),
    "skcalib.StackedRecalibrator": RecalibratorEntry(
        job="doc/which_recalibrator.md",
        instances=(
            StackedRecalibrator([PlattScaling(), IsotonicCalibration()], cv=2),
            StackedRecalibrator(cv=2),
        ),
        two_classes=(StackedRecalibrator(cv=3),),
        three_classes=(
            StackedRecalibrator([TemperatureScaling(), MatrixScaling()], cv=2),
        ),
        fits_missing_class=True,
        expected_failures={
            "check_sample_weight_equivalence_on_dense_data": (
                "gives splits that name rows of weight 0, which count as none"
            )
        },
    ),
    "skcalib.TemperatureScaling": RecalibratorEntry(
        job="doc/many_classes.md",
        instances=(
            TemperatureScaling(),
            TemperatureScaling(clip=None),
            TemperatureScaling(loss="brier"),
        ),
        two_classes=(TemperatureScaling(),),
        three_classes=(TemperatureScaling(),),
        fits_missing_class=True,
    ),
    "skcalib.UniformMassBinning": RecalibratorEntry(
        job="doc/how_many_bins.md",
        instances=(UniformMassBinning(n_bins=3),),
        two_classes=(UniformMassBinning(4),),
        log_odds=(UniformMassBinning(3),),
        more_fits=_randomised_by_id,
        takes_weights=False,
        fits_missing_class=True,
        expected_failures=dict.fromkeys(
            (
                "check_sample_weight_equivalence_on_dense_data",
                "check_all_zero_sample_weights_error",
                "check_classifiers_one_label_sample_weights",
                "check_sample_weights_list",
                "check_sample_weights_not_an_array",
                "check_sample_weights_not_overwritten",
                "check_sample_weights_pandas_series",
                "check_sample_weights_shape",
            ),
            _NO_WEIGHTS,
        ),
    ),
    "skcalib.VectorScaling": RecalibratorEntry(
        job="doc/many_classes.md",
        instances=(VectorScaling(),),
        two_classes=(VectorScaling(0.1), VectorScaling(0.1, center=False)),
        three_classes=(VectorScaling(),),
        fits_missing_class=True,
    ),
    "skcalib.VennAbers": RecalibratorEntry(
        job="doc/coming_from.md",
        instances=(VennAbers(), VennAbers(max_n_knots=5, multiclass="top_label")),
        two_classes=(VennAbers(), VennAbers(max_n_knots=6)),
        fits_missing_class=True,
    ),
    "skcalib.estimate_target_prior": Entry(
        job="doc/class_imbalance.md",
        result=lambda rows: estimate_target_prior(rows.scores, 0.5),
    ),
    "skcalib.recalibrators.BaseRecalibrator": Entry(
        job="doc/contributing.md",
        not_frozen="a base",
        no_paper="a base",
    ),
    "skcalib.recalibrators.BinaryRecalibrator": Entry(
        job="doc/contributing.md",
        not_frozen="a base",
        no_paper="a base",
    ),
    "skcalib.recalibrators.LogitRecalibrator": Entry(
        job="doc/contributing.md",
        not_frozen="a base",
        no_paper="a base",
    ),
}
