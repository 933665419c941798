"""How pictures write names and numbers."""

from __future__ import annotations

from skcalib._verdicts import count_words, fixed


def plural(noun, number):
    """Return the noun's form after a number."""
    return noun if number == 1 else noun + "s"


def percent(value):
    """Return a share in percent as text: with one decimal, two if it is below 1."""
    percentage = 100 * value
    n_decimals = 1 if abs(percentage) >= 0.95 or percentage == 0 else 2
    return fixed(percentage, n_decimals)


def matplotlib_text(name: str) -> str:
    """Return a user's name as text that matplotlib shows unchanged.

    Parameters
    ----------
    name : str
        The name, which matplotlib might interpret as a formula (text between dollar
        signs) or hide (a leading underscore).

    Returns
    -------
    text : str
        The text to pass to matplotlib.
    """
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def model_label(name, finding=None):
    """Return the entry of a model in a legend: its name, and a finding if there
    is one.
    """
    name = "model" if name is None else matplotlib_text(name)
    if finding:
        return f"{name}: {finding}"
    return name


def captions(name, n_rows, *findings):
    """Return captions of a picture of a single model, one for each finding.

    A caption has a line with the name, if the model has one, and the number of rows,
    and a line with the finding. Findings are texts (or None), the longest first. If
    there are several, the last caption has the name without the number of rows.
    """
    size = f"n = {count_words(n_rows)}"
    short = size
    long = size
    if name is not None:
        short = matplotlib_text(name)
        long = f"{short}, {size}"
    texts = []
    for number, finding in enumerate(findings, start=1):
        is_last_of_several = len(findings) > 1 and number == len(findings)
        first_line = short if is_last_of_several else long
        texts.append(f"{first_line}\n{finding}" if finding else first_line)
    return texts


def cut(text, most):
    """Return a text of at most this many letters: an ellipsis ends one that is cut."""
    if len(text) <= most:
        return text
    return text[: most - 1] + "…"


def cut_apart(names, most):
    """Return names cut to at most this many letters, different ones still different.

    Their ends are cut first. If that makes two names equal, the middles are cut
    instead, and then the beginnings. If two are equal even then, names get numbers.
    """
    for cutter in (cut, cut_middle, _cut_start):
        short = [cutter(name, most) for name in names]
        if len(set(short)) == len(set(names)):
            return short
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names), 1)}
    short = []
    for name in names:
        number = f" {numbers[name]}"
        short.append(cut(name, most - len(number)) + number)
    return short


def cut_middle(text, most):
    """Return a text of at most this many letters: an ellipsis replaces its middle."""
    if len(text) <= most:
        return text
    n_last = (most - 1) // 2
    n_first = most - 1 - n_last
    return text[:n_first] + "…" + text[len(text) - n_last :]


def _cut_start(text, most):
    """Return a text of at most this many letters: an ellipsis begins one that is
    cut.
    """
    if len(text) <= most:
        return text
    return "…" + text[len(text) - most + 1 :]
