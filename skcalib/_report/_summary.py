"""The result of a report in sentences that a person can act on."""

from skcalib._report._advice_words import advice_sentences
from skcalib._report._claims import claim
from skcalib._report._evidence import changes, evidence, over_time, segments_off
from skcalib._report._findings import few_events, in_order_of_harm
from skcalib._report._headline import ModelFacts, headline
from skcalib._verdicts import count_words


def summary(model, table):
    """Return the paragraphs of a model's summary, each a list of sentences (sentences):
    what is worst and what to do; what else may do harm; the evidence; segments and
    time; the advice.

    Parameters
    ----------
    model : dict
        The numbers of the model.
    table : dict
        What the report knows of all models; see `ModelFacts`.
    """
    facts = ModelFacts(model, table)
    repeated = model["advice"]["needs_cluster"]
    if repeated is not None:
        # A column of ids repeats: verdicts and advice, which hold for independent
        # samples only, wait until the report is run with --cluster.
        n_ids = count_words(model["advice"]["n_of_key"])
        asked = claim("repeated key", n=facts.n, values=n_ids, column=repeated)
        return [[asked], evidence(facts, asked.name), advice_sentences(facts, False)]
    worst = headline(facts)
    first = worst[0].name
    is_usable = first in ("usable", "right on average")
    suggested_tolerance = None
    if first == "tolerance too large":
        suggested_tolerance = worst[0].words["smaller"]
    paragraphs = [
        in_order_of_harm(facts, worst),
        few_events(facts),
        evidence(facts, first),
        [*segments_off(facts), *changes(facts), *over_time(model)],
        advice_sentences(facts, is_usable, suggested_tolerance),
    ]
    return [paragraph for paragraph in paragraphs if paragraph]
