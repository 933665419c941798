"""How pictures write names and numbers."""

from skcalib._verdicts import count_words, fixed


def plural(noun, number):
    """Return the noun's form after a number."""
    return noun if number == 1 else noun + "s"


def percent(value):
    """Return a share as a percentage: two significant digits or tenths."""
    value = 100 * value
    digits = 1 if abs(value) >= 0.95 or value == 0 else 2
    return fixed(value, digits)


def matplotlib_text(name: str) -> str:
    """Return a user's name as matplotlib shows it unchanged.

    Parameters
    ----------
    name : str
        The name, which matplotlib could take for a formula (between dollars) or hide
        (one that begins with an underscore).

    Returns
    -------
    text : str
        The text to give to matplotlib.
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
    """Return what is written about a single model: its name, if it has one, its rows,
    and a finding below.

    The findings are the longest first. The last one stands below the name alone, if
    there is more than one.
    """
    long = short = f"n = {count_words(n_rows)}"
    if name is not None:
        short = matplotlib_text(name)
        long = f"{short}, {long}"
    names = [long] * max(1, len(findings) - 1) + [short]
    return [
        "\n".join(filter(None, pair)) for pair in zip(names, findings, strict=False)
    ]


def cut(text, most):
    """Return a text of at most this many letters: an ellipsis ends one that is cut."""
    if len(text) <= most:
        return text
    return text[: most - 1] + "…"


def cut_apart(names, most):
    """Return names cut to at most this many letters, different ones still different.

    Their ends are cut. Where that makes two of them equal their middles are, else their
    beginnings; those that are still alike get numbers.
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
    """Return a text of at most this many letters, its beginning and its end."""
    if len(text) <= most:
        return text
    n_last = (most - 1) // 2
    return text[: most - 1 - n_last] + "…" + text[len(text) - n_last :]


def _cut_start(text, most):
    if len(text) <= most:
        return text
    return "…" + text[len(text) - most + 1 :]
