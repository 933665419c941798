"""The plain meaning of each node of a calibration map, in NumPy: rows (n, width) in, rows out."""

import numpy as np
from scipy.special import expit, log_softmax, softmax

from skcalib.export import _nodes as nodes

CLIP = 2.0**-52


def predicted(calibration_map, scores, groups=None):
    """Return probabilities (n, K) from valid scores (n, C)."""
    output = _value(calibration_map.output, np.asarray(scores, dtype=np.float64), groups)
    return np.hstack((1 - output, output)) if len(calibration_map.classes) == 2 else output


def _value(node, scores, groups):
    def value(inner):
        return _value(inner, scores, groups)

    match node:
        case nodes.Scores(width):
            assert scores.shape[1] == width
            return scores
        case nodes.OneColumn(of, index):
            return value(of)[:, [index]]
        case nodes.Columns(parts):
            return np.hstack([value(part) for part in parts])
        case nodes.Clip(of, low, high):
            return np.clip(value(of), low, high)
        case nodes.Scaled(of, slope, intercept):
            return slope * value(of) + intercept
        case nodes.Affine(of, coef, intercept):
            return value(of) @ coef.T + intercept
        case nodes.Log(of):
            return np.log(np.clip(value(of), CLIP, 1 - CLIP))
        case nodes.LogOdds(of):
            p = np.clip(value(of), CLIP, 1 - CLIP)
            return np.log(p) - np.log1p(-p)
        case nodes.LogOddsAgainstRest(of):
            p = np.clip(value(of), CLIP, 1 - CLIP)
            others = p @ (1 - np.eye(p.shape[1]))
            return np.log(p) - np.log(np.clip(others, CLIP, 1 - CLIP))
        case nodes.LogSides(of):
            z = value(of)
            softplus = np.log1p(np.exp(-np.abs(z)))
            return np.hstack((np.minimum(z, 0) - softplus, np.maximum(z, 0) + softplus))
        case nodes.Expit(of, clip):
            return np.clip(expit(value(of)), CLIP, 1 - CLIP) if clip else expit(value(of))
        case nodes.Softmax(of, clip):
            p = softmax(value(of), axis=1)
            return np.clip(p, CLIP, 1 - CLIP) if clip else p
        case nodes.Centred(of):
            return value(of) - value(of).mean(axis=1, keepdims=True)
        case nodes.LogNormalized(of):
            return log_softmax(value(of), axis=1)
        case nodes.Pieces(of, cuts, origins, coefficients):
            x = value(of)[:, 0]
            piece = [sum(cut < one for cut in cuts) for one in x]
            powers = (x - origins[piece])[:, None] ** np.arange(coefficients.shape[1])
            return (coefficients[piece] * powers).sum(axis=1)[:, None]
        case nodes.Normalized(of):
            rows = value(of)
            total = rows.sum(axis=1, keepdims=True)
            return np.where(total > 0, rows / np.where(total > 0, total, 1), 1 / rows.shape[1])
        case nodes.RowMax(of):
            return value(of).max(axis=1, keepdims=True)
        case nodes.Spread(of, confidence):
            return np.array([_spread(*row) for row in zip(value(of), value(confidence)[:, 0], strict=True)])
        case nodes.Mixture(weights, parts, constant):
            return constant + sum(w * value(part) for w, part in zip(weights, parts, strict=True))
        case nodes.Choice(key, cases):
            options = np.stack([value(case) for case in cases])
            return options[_number(key, scores, groups), np.arange(len(scores))]
    raise AssertionError(node)


def _number(key, scores, groups):
    match key:
        case nodes.Largest(of):
            return _value(of, scores, groups).argmax(axis=1)
        case nodes.Above(of, threshold):
            return (_value(of, scores, groups)[:, 0] > threshold).astype(int)
        case nodes.GroupOf(_, cases, otherwise):
            return np.array([cases.get(group, otherwise) for group in groups])


def _spread(row, confidence):
    largest = row.argmax()
    others = np.delete(row, largest)
    total = others.sum()
    shares = others / total if total > 0 else np.full(len(others), 1 / len(others))
    return np.insert(shares * (1 - confidence), largest, confidence)
