"""The nodes of a map as expressions of SQL."""

from functools import cached_property

import numpy as np
from scipy.special import expit

from skcalib import maps as nodes
from skcalib._rows.keys import HEX_DIGITS
from skcalib._rows.links import LARGEST_GAP, PROBABILITY_CLIP
from skcalib.export._sql_text import (
    case,
    clamped,
    exponential,
    linear,
    number,
    piece_tree,
)
from skcalib.export._writers import NodeWriter, no_row_keys
from skcalib.maps import linear_form

# Characters of the text of the sum of all other classes: 1 - p takes the place of a
# longer one.
_LONGEST_REST = 1000
# expit of this is 1 - 2^-52: beyond it probabilities are clipped.
_CLIPPED_LOG_ODDS = float(np.log1p(-PROBABILITY_CLIP) - np.log(PROBABILITY_CLIP))
# Differences of two logits are clipped to it where probabilities are clipped: exp(-60)
# is far below 2^-52, so that a larger difference would change neither probability.
_SURE_DIFFERENCE = 60.0
_NO_OVERFLOW = 700.0  # EXP of it is still a number of double precision


class SqlWriter(NodeWriter):
    """Writes nodes: `write` returns a list with the text of each value of a node.

    Texts can stand on either side of ``*`` and ``/``: sums are in parentheses.

    Parameters
    ----------
    given : list of str
        The text of each column of scores.
    dialect : Dialect
        How the database writes names, numbers and keys of rows.
    ids : str, default=None
        The text of the column of ids, for methods that draw by row.
    """

    format = "SQL"

    def __init__(self, given, dialect, ids=None):
        super().__init__()
        self.given = given  # texts of the columns of scores
        self.dialect = dialect
        self.ids = ids  # text of the column of ids, or None

    def _write_Scores(self, node):
        return self.given

    def _write_Features(self, node):
        return feature_columns(node, self.dialect)

    def _write_OneColumn(self, node):
        return [self.write(node.of)[node.index]]

    def _write_Columns(self, node):
        """Write the values of several nodes side by side."""
        texts = []
        for part in node.parts:
            texts += self.write(part)
        return texts

    def _write_Clip(self, node):
        return [clamped(text, node.low, node.high) for text in self.write(node.of)]

    def _write_Scaled(self, node):
        """Write values that are linear in those of another node, each as a weighted sum
        plus a constant.
        """
        # each value as a weighted sum of those of a node, `form.base`, plus a constant
        form = _LinearForm(node)
        texts = []
        for weights, constant in form.rows:  # one for each value
            texts.append(f"({self._combination(form, weights, constant)})")
        return texts

    _write_Affine = _write_Scaled

    def _write_Times(self, node):
        (factor,) = self.write(node.factor)
        return [f"({text}*{factor})" for text in self.write(node.of)]

    def _write_Exp(self, node):
        """Write ``exp`` of values clipped to [-700, 700]."""
        return [exponential(text, _NO_OVERFLOW) for text in self.write(node.of)]

    def _write_Log(self, node):
        """Write the logarithm of clipped probabilities."""
        return [f"LN({text})" for text in self._inside(node.of)]

    def _write_LogOdds(self, node):
        """Write ``log(p / (1 - p))`` of clipped probabilities."""
        return [f"LN({text}/(1e0-{text}))" for text in self._inside(node.of)]

    def _write_LogOddsAgainstRest(self, node):
        """Write ``log(p / sum of the others)`` of each class."""
        if isinstance(node.of, nodes.Softmax) and not node.of.clip:
            # p = exp(x_k) / sum of exp(x_j) with logits x. The odds against class k are
            # the sum of exp(x_j - x_k) over the others, and the log-odds are minus the
            # logarithm of it. Each part of the sum, and the sum, are clipped as the
            # probabilities of the others and that of class k would be.
            limit = -np.log(PROBABILITY_CLIP)
            sums = self._odds_against(node.of.of, limit, node.of.possible)
            return [f"(-{_log_of(total, limit)})" for total in sums]
        texts = self._inside(node.of)
        # for each class the sum of the others, or 1 - p if that text is too long
        rests = []
        for k in range(len(texts)):
            rests.append("+".join(texts[:k] + texts[k + 1 :]))
        if max(map(len, rests)) > _LONGEST_REST:
            rests = [f"1e0-{text}" for text in texts]
        return [f"LN({text}/({rest}))" for text, rest in zip(texts, rests, strict=True)]

    def _write_LogSides(self, node):
        """Write ``log(p)`` and ``-log(1 - p)`` of the probability p with log-odds z:
        ``min(z, 0) - softplus`` and ``max(z, 0) + softplus`` with softplus = log(1 +
        exp(-|z|)).
        """
        if isinstance(node.of, nodes.LogOdds):
            (text,) = self._inside(node.of.of)
            return [f"LN({text})", f"(-LN(1e0-{text}))"]
        (z,) = self.write(node.of)
        softplus = f"LN(1e0+EXP(GREATEST(-ABS({z}),{number(-_NO_OVERFLOW)})))"
        return [f"(LEAST({z},0e0)-{softplus})", f"(GREATEST({z},0e0)+{softplus})"]

    def _write_Expit(self, node):
        """Write ``1 / (1 + exp(-z))`` of each value of a linear form, whose weights and
        constant take the minus sign.
        """
        limit = _NO_OVERFLOW
        if node.clip:
            limit = _CLIPPED_LOG_ODDS
        form = _LinearForm(node.of)
        texts = []
        for weights, constant in form.rows:
            negated = self._combination(form, -weights, -constant)
            texts.append(f"(1e0/(1e0+{exponential(negated, limit)}))")
        return texts

    def _write_Pieces(self, node):
        """Write a piecewise polynomial of a value x as a CASE that finds the piece."""
        (x,) = self.write(node.of)
        # The value that is compared with the cuts. Where x are the log-odds of a
        # probability, the text of the probability is shorter. Its cuts are rounded,
        # which does not matter if the polynomials agree at the cuts.
        compared = x
        cuts = node.cuts
        if node.continuous:
            probability = self._probability(node.of)
            if probability is not None:
                compared = probability
                cuts = expit(cuts)
        polynomials = []
        for origin, coefficients in zip(node.origins, node.coefficients, strict=True):
            polynomials.append(_polynomial(x, origin, coefficients))
        text = piece_tree(compared, cuts, polynomials, self.dialect.flat_pieces)
        are_constants = not node.coefficients[:, 1:].any()
        if are_constants and self.dialect.exact_numbers:
            # A CASE of literals would be a decimal number.
            return [self.dialect.as_double(text)]
        return [f"({text})"]

    def _write_LogNormalized(self, node):
        """Write the logarithms of the softmax of x, one expression for each class.

        That of class k is ``-log(sum of exp(x_j - x_k))``. If x are the logarithms of
        some numbers, it is the logarithm of each number divided by their sum. With
        `node.possible`, impossible classes are left out of the sum, and get 0.
        """
        if isinstance(node.of, nodes.Log) and not node.possible:
            numbers = self._inside(node.of.of)
            total = "+".join(numbers)
            return [f"LN({number}/({total}))" for number in numbers]
        sums = self._sums_of_odds(node.of, _NO_OVERFLOW, node.possible)
        texts = [f"(-LN({total}))" for total in sums]
        if node.possible:
            return self._zero_if_impossible(texts)
        return texts

    def _write_Softmax(self, node):
        """Write the softmax of each class k: as exp(x_k) / sum of exp(x_j) if EXP
        cannot overflow, otherwise as 1 / sum of exp(x_j - x_k).

        With `node.clip` it is clipped to [2^-52, 1 - 2^-52]; with `node.possible`
        impossible classes have no part in the sum, and get 0.
        """
        form = _LinearForm(node.of)
        texts = self._softmax_of_logarithms(form, node.possible)
        if texts is None:
            # Differences x_j - x_k are kept in [-limit, limit] before EXP. Where
            # probabilities are clipped a smaller limit does the same: beyond it they
            # are clipped anyway.
            limit = _NO_OVERFLOW
            if node.clip:
                limit = _SURE_DIFFERENCE
            sums = self._sums_of_odds(node.of, limit, node.possible)
            texts = [f"(1e0/({total}))" for total in sums]
        if node.clip:
            low = PROBABILITY_CLIP
            texts = [clamped(text, low, 1 - low) for text in texts]
        if node.possible:
            # after clipping, which has raised them above 0
            return self._zero_if_impossible(texts)
        return texts

    def _write_Possible(self, node):
        """Write the values with 0 for impossible classes."""
        return self._zero_if_impossible(self.write(node.of))

    @cached_property
    def _impossible_conditions(self):
        """The condition of each class that it is impossible in a row: its logit is more
        than 700 below the largest.
        """
        largest = f"GREATEST({','.join(self.given)})-{number(LARGEST_GAP)}"
        return [f"{text}<{largest}" for text in self.given]

    @cached_property
    def _factors(self):
        """A list with the text, for each class, that is 1 in rows where it is possible,
        otherwise 0.
        """
        factors = []
        for condition in self._impossible_conditions:
            factors.append(f"({case([(condition, '0e0')], '1e0')})")
        return factors

    def _zero_if_impossible(self, texts):
        """Return the texts of all classes, each with 0 in rows where its class is
        impossible.
        """
        pairs = zip(self._impossible_conditions, texts, strict=True)
        return [f"({case([(condition, '0e0')], text)})" for condition, text in pairs]

    def _write_Centred(self, node):
        """Write the values less their mean over the classes; with `node.possible` over
        the possible classes, and 0 for the others.
        """
        if not node.possible:
            return self._write_Scaled(node)
        texts = self.write(node.of)
        total = "+".join(self._zero_if_impossible(texts))
        n_possible = "+".join(self._factors)
        mean = f"({total})/({n_possible})"
        return self._zero_if_impossible([f"{text}-{mean}" for text in texts])

    def _probability(self, node):
        """Return the text of the probability whose log-odds a node is: of one class, or
        of one class against the rest; None for other nodes.
        """
        if isinstance(node, nodes.LogOdds):
            (text,) = self.write(node.of)
            return text
        if isinstance(node, nodes.OneColumn) and isinstance(
            node.of, nodes.LogOddsAgainstRest
        ):
            return self.write(node.of.of)[node.index]
        return None

    def _softmax_of_logarithms(self, form, possible):
        """Return the texts of exp(x_k) / sum of exp(x_j) for each class, where the x
        are weighted sums of logarithms of probabilities plus a constant (`form`, a
        `_LinearForm`); None for others, or where EXP could overflow. If `possible`,
        classes that are impossible in a row have no part in the sum.
        """
        if not isinstance(form.base, nodes.Log):
            return None
        # A logarithm is between that of the clipped probability and 0, which bounds the
        # exponents. The sum over the classes must not overflow either.
        largest_logarithm = -np.log(PROBABILITY_CLIP)
        limit = _NO_OVERFLOW - np.log(len(form.rows))
        for weights, constant in form.rows:
            if largest_logarithm * np.abs(weights).sum() + abs(constant) > limit:
                return None
        texts = []
        for weights, constant in form.rows:
            exponent = linear(weights, self.write(form.base), constant)
            texts.append(f"EXP({exponent})")
        if possible:
            # The exponentials of impossible classes are 0 in the sum: times 1 or 0 is
            # shorter than a CASE about a long text.
            factors = zip(self._factors, texts, strict=True)
            texts = [f"{factor}*{text}" for factor, text in factors]
        total = "+".join(texts)
        return [f"({text}/({total}))" for text in texts]

    def _write_Normalized(self, node):
        """Write each value divided by the sum of all; with `node.possible` impossible
        classes count as 0.
        """
        texts = self.write(node.of)
        if node.possible:
            texts = self._zero_if_impossible(texts)
        total = "+".join(texts)
        if not node.possible and _is_positive(node.of):
            return [f"({text}/({total}))" for text in texts]
        # Where all are 0, all possible classes have the same share.
        if node.possible:
            n_possible = "+".join(self._factors)
            even = [f"{factor}/({n_possible})" for factor in self._factors]
        else:
            even = [number(1 / len(texts))] * len(texts)
        shares = []
        for text, even_share in zip(texts, even, strict=True):
            branch = (f"{total}>0e0", f"{text}/({total})")
            shares.append(f"({case([branch], even_share)})")
        return shares

    def _write_RowKey(self, node):
        """Write a pseudo-random number in [0, 1): the first hexadecimal digits of a
        hash of the row's id and the salt.
        """
        if self.dialect.hex_number is None or self.ids is None:
            raise no_row_keys(
                "needs the column of ids, and ANSI SQL has no function for"
            )
        # an integer below 16^HEX_DIGITS
        key = self.dialect.row_key(node.salt, self.ids, HEX_DIGITS)
        n_keys = number(16.0**HEX_DIGITS)
        return [f"({key}/{n_keys})"]

    def _write_RowMax(self, node):
        return [f"GREATEST({','.join(self.write(node.of))})"]

    def _write_Spread(self, node):
        """Write the confidence of the predicted class, and the rest shared among the
        others in proportion to their scores.
        """
        scores = self.write(node.of)
        (confidence,) = self.write(node.confidence)
        # for each class but the last, the condition that it is the predicted one
        is_largest = largest_conditions(self.write(_same_order(node.of)))
        if node.possible:
            return self._spread_among_possible(scores, confidence, is_largest)
        written = []
        for k, score in enumerate(scores):
            # the value of class k where class m is the predicted one
            values = []
            for m in range(len(scores)):
                if m == k:
                    values.append(confidence)
                else:
                    rest = [*scores[:m], *scores[m + 1 :]]
                    values.append(_share(score, rest, confidence))
            branches = zip(is_largest, values[:-1], strict=True)
            written.append(f"({case(branches, values[-1])})")
        return written

    def _spread_among_possible(self, scores, confidence, is_largest):
        """Return the texts of all classes: the confidence of the predicted one, and
        shares of the rest for the other possible ones. `is_largest` are the conditions
        that each but the last is predicted.
        """
        n_possible = "+".join(self._factors)
        # A class that is the only possible one has all the probability.
        confidence = f"({case([(f'{n_possible}<2e0', '1e0')], confidence)})"
        scores = self._zero_if_impossible(scores)
        written = []
        for k, score in enumerate(scores):
            # the value of class k where class m is the predicted one
            values = []
            for m in range(len(scores)):
                if k == m:
                    values.append(confidence)
                    continue
                rest = f"(1e0-{confidence})"
                total = "+".join(scores[:m] + scores[m + 1 :])
                # where all others are 0, an equal share for the possible ones
                equal = f"{self._factors[k]}*{rest}/GREATEST({n_possible}-1e0,1e0)"
                share = (f"{total}>0e0", f"{score}/({total})*{rest}")
                values.append(f"({case([share], equal)})")
            branches = zip(is_largest, values[:-1], strict=True)
            written.append(f"({case(branches, values[-1])})")
        return written

    def _write_Mixture(self, node):
        """Write the weighted sum of several nodes, plus a constant."""
        # for each value of the node, its text in each part
        texts_of_values = zip(*map(self.write, node.parts), strict=True)
        written = []
        for texts in texts_of_values:
            written.append(f"({linear(node.weights, texts, node.constant)})")
        return written

    def _write_Choice(self, node):
        """Write each value by the case that the key selects."""
        # for each value of the node, its text in each case
        texts_of_values = zip(*map(self.write, node.cases), strict=True)
        return [f"({self._chosen(node.key, texts)})" for texts in texts_of_values]

    def _chosen(self, key, texts):
        """Return a CASE that has the value of text k where the key of a `Choice` is k:
        the piece in which a value lies (`Place`), the class with the largest score
        (`Largest`), or the row's group (`GroupOf`).
        """
        if isinstance(key, nodes.Place):
            (value,) = self.write(key.of)
            return piece_tree(value, key.cuts, texts, self.dialect.flat_pieces)
        if isinstance(key, nodes.Largest):
            scores = self.write(_same_order(key.of))
            conditions = largest_conditions(scores)
            return case(zip(conditions, texts[:-1], strict=True), texts[-1])
        column = group_column(key, self.dialect)
        # Groups with the same text are listed together. Unknown groups have the text of
        # the index `key.otherwise`: known groups with it need no branch.
        labels_of_text = {}
        for group, index in key.cases.items():
            if texts[index] != texts[key.otherwise]:
                labels = labels_of_text.setdefault(texts[index], [])
                labels.append(self.dialect.label(group))
        branches = []
        for text, labels in labels_of_text.items():
            branches.append((f"{column} IN ({','.join(labels)})", text))
        if branches:
            return case(branches, texts[key.otherwise])
        return texts[key.otherwise]

    def _inside(self, node):
        """Return the texts of a node's probabilities, clipped to [2^-52, 1 - 2^-52]."""
        texts = self.write(node)
        if isinstance(node, nodes.Clip) and node.low >= PROBABILITY_CLIP:
            return texts
        low = PROBABILITY_CLIP
        return [clamped(text, low, 1 - low) for text in texts]

    def _combination(self, form, weights, constant, ignores_shift=False):
        """Return the text of a weighted sum of the values of `form.base`, the node of a
        `_LinearForm`, plus a constant.

        If the weights sum to 0 and one number added to all values changes nothing (for
        a `shift` "values", or with `ignores_shift`), differences from one of the values
        are written: large numbers cannot cancel.
        """
        weights_sum_to_zero = ignores_shift or form.shift == "values"
        if not weights_sum_to_zero or len(weights) == 1:
            return linear(weights, self.write(form.base), constant)
        # the value from which differences are taken has the largest weight
        reference = int(np.argmax(np.abs(weights)))
        others = np.delete(np.arange(len(weights)), reference)
        differences = [self._difference(form.base, i, reference) for i in others]
        return linear(weights[others], differences, constant)

    def _difference(self, node, i, j):
        """Return the text of value i minus value j of a node; of two logarithms, that
        of a quotient.
        """
        if isinstance(node, nodes.Log):
            texts = self._inside(node.of)
            return f"LN({texts[i]}/{texts[j]})"
        texts = self.write(node)
        return f"({texts[i]}-{texts[j]})"

    def _sums_of_odds(self, node, limit, possible=False):
        """Yield for each value x_k the sum over all j, or with `possible` the possible
        classes, of exp(x_j - x_k), exponents clipped to [-limit, limit].
        """
        for total in self._odds_against(node, limit, possible):
            yield f"1e0+{total}"

    def _odds_against(self, node, limit, possible):
        """Yield for each class k the sum of exp(x_j - x_k) over the other classes j,
        differences clipped to [-limit, limit]; with `possible`, without impossible
        ones.
        """
        form = _LinearForm(node)
        # If one number added to all values of the base changes no difference x_j - x_k,
        # the difference is written by differences of these values.
        ignores_shift = form.shift is not None
        for k, (weights, constant) in enumerate(form.rows):
            # exp(x_j - x_k) of each other class j
            terms = []
            for j, (other_weights, other_constant) in enumerate(form.rows):
                if j == k:
                    continue
                difference = self._combination(
                    form,
                    other_weights - weights,
                    other_constant - constant,
                    ignores_shift,
                )
                term = exponential(difference, limit)
                if possible:
                    term = f"{self._factors[j]}*{term}"
                terms.append(term)
            yield "+".join(terms)


class _LinearForm:
    """The values of a node as linear functions of those of another node, the base:
    ``matrix @ values of base + constants``. The base is not linear itself.

    Attributes
    ----------
    base : Node
        The node whose values are combined.
    rows : list of (ndarray, float)
        For each value of the node its weights, one for each value of the base, and its
        constant.
    shift : {"values", "differences"} or None
        What stays the same where one number is added to all values of the base: the
        values, only the differences between them, or neither.
    """

    def __init__(self, node):
        # matrix (n_values, n_values of the base) and constants (n_values,)
        self.base, matrix, constants = linear_form(node)
        self.rows = list(zip(matrix, constants, strict=True))
        # If c is added to the values of the base, value k changes by c times the sum of
        # its weights: by 0 if that is 0, and by the same as all others if the sums are
        # equal, so that differences stay the same.
        sums = matrix.sum(axis=1)
        rounding = 1e-14 * np.abs(matrix).sum()
        are_equal = np.ptp(sums) <= rounding
        are_zero = np.abs(sums).max() <= rounding
        self.shift = None
        if are_equal and are_zero:
            self.shift = "values"
        elif are_equal:
            self.shift = "differences"


def _log_of(total, limit):
    """Return the text of the logarithm of a sum, clipped to [-limit, limit]."""
    bounded = clamped(total, float(np.exp(-limit)), float(np.exp(limit)))
    return f"LN({bounded})"


def _polynomial(x, origin, coefficients):
    """Return the text of a polynomial in x - origin by Horner's rule; `coefficients`
    start with the constant.
    """
    # from the highest power that occurs down
    descending = np.trim_zeros(coefficients, "b")[::-1].tolist() or [0.0]
    if len(descending) == 1:
        (constant,) = descending
        return linear([], [], constant)
    step = x
    if origin != 0:
        step = f"({linear([1.0], [x], -origin)})"
    highest, next_lower, *lower = descending
    text = linear([highest], [step], next_lower)
    for coefficient in lower:
        text = linear([1.0], [f"({text})*{step}"], coefficient)
    return text


def largest_conditions(texts):
    """Return a list with the condition, for each value but the last, that none is
    larger. If they are tested in order, the first that holds identifies the first of
    the largest values.
    """
    conditions = []
    for text in texts[:-1]:
        comparisons = [f"{text}>={other}" for other in texts if other != text]
        conditions.append(" AND ".join(comparisons))
    return conditions


def _same_order(node):
    """Return a node with the same order of values in each row, as few steps from the
    scores as possible: increasing functions are left out. Equal scores stay equal
    there; after a softmax they may differ in the last digit.
    """
    while True:
        keeps_order = isinstance(node, nodes.Softmax | nodes.Log)
        if isinstance(node, nodes.Clip):
            limits = (PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)
            keeps_order = (node.low, node.high) == limits
        if isinstance(node, nodes.Scaled):
            has_one_slope = np.ndim(node.slope) == 0 and np.ndim(node.intercept) == 0
            keeps_order = has_one_slope and node.slope > 0
        if not keeps_order:
            return node
        node = node.of


def _share(score, others, confidence):
    """Return the probability of a class that is not predicted: its part of ``1 -
    confidence`` by its score among `others`, equal if all are 0.
    """
    total = "+".join(others)
    equal = f"(1e0-{confidence})/{number(len(others))}"
    proportional = f"{score}/({total})*(1e0-{confidence})"
    return f"({case([(f'{total}>0e0', proportional)], equal)})"


def _is_positive(node):
    """Return whether all values of a node are above 0, whatever the scores are."""
    if isinstance(node, nodes.Columns):
        return all(_is_positive(part) for part in node.parts)
    clips = isinstance(node, nodes.Expit | nodes.Softmax) and node.clip
    return clips or (isinstance(node, nodes.Clip) and node.low > 0)


def feature_columns(node, dialect):
    """Return the texts of the columns of `Features`, as double precision; raise a
    ValueError if the recalibrator knows only their positions.
    """
    for name in node.names:
        if not isinstance(name, str):
            raise ValueError(
                f"features={list(node.names)!r} are positions, so the names of the"
                " columns are not known. Fit the recalibrator to a data frame, with"
                ' features=["name of the column", ...].'
            )
    return [dialect.as_double(dialect.identifier(name)) for name in node.names]


def group_column(key, dialect):
    """Return the quoted name of the column of groups of a `GroupOf`; raise a ValueError
    if the recalibrator does not know it.
    """
    if key.column is None:
        raise ValueError(
            "GroupwiseRecalibrator received its groups as an array, so the column is"
            ' not known. Fit it with groups="name of the column".'
        )
    return dialect.identifier(key.column)
