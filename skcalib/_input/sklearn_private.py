"""The only home of imports from the private parts of scikit-learn."""

from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._array_api import get_namespace_and_device
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

try:
    from sklearn.externals import array_api_compat
except ImportError:  # scikit-learn 1.6 asks for the package, and need not have it
    try:
        import array_api_compat
    except ImportError:
        array_api_compat = None

__all__ = [
    "BaseScorer",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "array_api_compat",
    "check_feature_names_in",
    "check_method_params",
    "get_namespace_and_device",
    "num_samples",
    "safe_indexing",
    "safe_split",
]
