"""The result of a report in sentences that a person can act on."""

from skcalib._report._advice_words import advice
from skcalib._report._claims import claim
from skcalib._report._evidence import changes, evidence, over_time, segments_off
from skcalib._report._headline import ModelWords, headline
from skcalib._verdicts import count_words


def summary(model, table):
    """Return the paragraphs of a model's summary as lists of claims: what is worst and
    what to do; the evidence; segments and time; the advice.

    Parameters
    ----------
    model : dict
        The numbers of the model.
    table : dict
        What the report knows of all models: `n_samples`, `tolerance` and the name of
        the `segment` columns.
    """
    words = ModelWords(model, table)
    repeated = model["advice"]["needs_cluster"]
    if repeated is not None:
        # All verdicts rest on limits that hold for independent samples only.
        values = count_words(model["advice"]["n_of_key"])
        asked = claim("repeated key", n=words.n, values=values, column=repeated)
        return [[asked], evidence(words, asked.name), advice(words, False)]
    worst = headline(words)
    first = worst[0].name
    is_usable = first in ("usable", "right on average")
    suggested = None
    if first == "tolerance too large":
        suggested = worst[0].words["smaller"]
    paragraphs = [
        worst,
        evidence(words, first),
        [*segments_off(words), *changes(words), *over_time(model)],
        advice(words, is_usable, suggested),
    ]
    return [paragraph for paragraph in paragraphs if paragraph]
