"""Types of parameters that several estimators take."""

from collections.abc import Iterable

from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit

# A number of folds, a splitter or the folds themselves, as scikit-learn's `check_cv`
# takes them.
CrossValidation = int | BaseCrossValidator | BaseShuffleSplit | Iterable
