"""Joint test of the calibration intercepts and slopes of all classes."""

import numpy as np
from scipy.stats import chi2

from skcalib._input.device_scores import DeviceScores
from skcalib._input.tensors import as_array, library_of
from skcalib._input.warn import warn
from skcalib._rows.blocks import row_blocks, weights_or_ones
from skcalib._rows.namespaces import clipped, logarithm

# With fewer expected samples of a class, the chi-squared distribution is poor.
_FEW = 5
# Eigenvalues of the information below this share of the largest are 0.
_NO_INFORMATION = 1e-10


def multinomial(probability, codes, sample_weight=None):
    """Return the statistic and the p-value of the joint test of intercepts and slopes.

    In the model ``softmax(a_k + b_k z_k)``, z_k are the logarithms of the probabilities
    less their mean over the classes. Rao's score test of "all a_k are 0 and all b_k
    are 1" needs no fit: U' I^-1 U with the score U and the information I at the given
    probabilities has a chi-squared distribution. Its degrees of freedom are the rank of
    I: 2 K - 1 for K > 2 classes, since a number added to all a_k changes nothing, and 2
    for two classes, of which only b_1 + b_2 matters.

    Parameters
    ----------
    probability : ndarray or DeviceScores of shape (n, K)
        Predicted probabilities: on a device with double precision, they stay there.
    codes : ndarray of int, shape (n,)
        The class of each row.
    sample_weight : ndarray of shape (n,) or None
        Weights that count rows.
    """
    n_rows, n_classes = probability.shape
    weight = weights_or_ones(sample_weight, n_rows)
    score = np.zeros(2 * n_classes)
    information = np.zeros((2 * n_classes, 2 * n_classes))
    expected = np.zeros(n_classes)
    for p, residual, w in _blocks(probability, codes, weight):
        xp = library_of(p)
        z = logarithm(xp, clipped(xp, p))
        z -= xp.mean(z, axis=1, keepdims=True)
        # The derivatives of the log-odds of class k by a_k and b_k are 1 and z_k.
        score += np.concatenate([_sums(w * residual), _sums(w * residual * z)])
        sum_of_p = _sums(w * p)
        expected += sum_of_p
        # The covariance matrix of the indicators of one label is diag(p) - p p'. The
        # second term adds to all entries, the first to those of a class with itself.
        p_times_derivatives = xp.concat([p, p * z], axis=1)
        products = (w * p_times_derivatives).T @ p_times_derivatives
        information -= as_array(products)[0]
        intercepts = np.arange(n_classes)
        slopes = intercepts + n_classes
        sum_of_pz = _sums(w * p * z)
        information[intercepts, intercepts] += sum_of_p
        information[slopes, slopes] += _sums(w * p * z**2)
        information[intercepts, slopes] += sum_of_pz
        information[slopes, intercepts] += sum_of_pz
    if expected.min() < _FEW:
        warn(
            f"method='multinomial': only {expected.min():.2g} samples of a class are"
            " expected, too few for its chi-squared distribution. Use"
            " method='resampling' with metric=kernel_calibration_error."
        )
    # U' I^-1 U in the coordinates of the eigenvectors of I, without the directions in
    # which there is no information. Each parameter is first divided by its own scale,
    # so that the size of the log-probabilities does not matter.
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(np.float64).tiny))
    eigenvalues, eigenvectors = np.linalg.eigh(information / np.outer(scale, scale))
    is_informative = eigenvalues > _NO_INFORMATION * max(eigenvalues[-1], 0.0)
    coordinates = (score / scale) @ eigenvectors
    if np.diag(information).max() <= 0:
        # All probabilities are 0 or 1: there is nothing random.
        is_right = not np.any(score)
        return (0.0, 1.0) if is_right else (np.inf, 0.0)
    squares = coordinates[is_informative] ** 2
    statistic = np.sum(squares / eigenvalues[is_informative])
    degrees = np.count_nonzero(is_informative)
    return float(statistic), float(chi2.sf(statistic, degrees))


def _blocks(probability, codes, weight):
    """Yield the probabilities (m, K) of blocks of rows, the indicators of their labels
    minus these, and their weights (m, 1), in the library of the probabilities.
    """
    if isinstance(probability, DeviceScores):
        xp = probability.xp
        classes = xp.arange(probability.shape[1], device=probability.device)
        for rows, block in probability.blocks:
            p = xp.astype(block, xp.float64)
            label = xp.asarray(codes[rows], device=probability.device)
            is_label = xp.astype(label[:, None] == classes, xp.float64)
            yield p, is_label - p, probability.moved(weight[rows])[:, None]
        return
    for rows in row_blocks(len(codes)):
        p = probability[rows].astype(np.float64)
        residual = -p
        residual[np.arange(len(p)), codes[rows]] += 1
        yield p, residual, weight[rows, None]


def _sums(values):
    """Return the sums over the rows of values (m, K) as an array of NumPy."""
    return as_array(library_of(values).sum(values, axis=0))[0]
