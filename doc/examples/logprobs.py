"""Confidences from a language model API: logprobs of the first token, and confidences
stated in words.

Copy `answer_logits` and `stated_confidence`. The dicts are responses of the chat API
with ``logprobs=True, top_logprobs=20``; ``completion.model_dump()`` converts a client
object.
"""

import math
import re

import numpy as np

from skcalib import PlattScaling, TemperatureScaling
from skcalib.metrics import calibration_error


def answer_logits(completion, answers):
    """Return the log-probability of each answer as the first token, or -inf if it is
    not listed.

    Tokens that differ only in spaces or case (" A", "a") count as the same answer, and
    their probabilities are added.
    """
    listed = completion["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    mass = {answer: 0.0 for answer in answers}
    by_text = {answer.strip().lower(): answer for answer in answers}
    for one in listed:
        answer = by_text.get(one["token"].strip().lower())
        if answer is not None:
            mass[answer] += math.exp(one["logprob"])
    return [
        math.log(mass[answer]) if mass[answer] > 0 else -math.inf for answer in answers
    ]


def stated_confidence(text):
    """Return the last percentage, or number from 0 to 1, in a text such as "Paris.
    Confidence: 85 %", or NaN if there is none.
    """
    found = re.findall(
        r"(\d+(?:\.\d+)?)\s*(%|percent)|\b(0?\.\d+|[01](?:\.0+)?)\b", text
    )
    if not found:
        return math.nan
    percentage, _, share = found[-1]
    value = float(percentage) / 100 if percentage else float(share)
    return value if value <= 1 else math.nan


def completions(n=2000, seed=0):
    """Return simulated responses and the correct answers. The model is overconfident,
    and states 90 % too often.
    """
    rng, answers, found, right = (
        np.random.default_rng(seed),
        ["A", "B", "C", "D"],
        [],
        [],
    )
    for _ in range(n):
        logits = rng.normal(0, 2.5, 4)
        right.append(answers[int(np.argmax(logits / 2 + rng.gumbel(size=4)))])
        logprobs = logits - np.log(np.exp(logits).sum())
        best = int(np.argmax(logits))
        top = [
            {
                "token": " " * (k % 2) + answers[k],
                "logprob": float(logprobs[k]),
                "bytes": None,
            }
            for k in range(4)
        ]
        # the other options are not listed
        top = sorted(
            (one for one in top if one["logprob"] > -9), key=lambda one: -one["logprob"]
        )
        stated = min(99, round(100 * math.exp(logprobs[best])) + 10)
        content = [top[0] | {"top_logprobs": top}]
        message = {
            "role": "assistant",
            "content": f"{answers[best]}. Confidence: {stated} %",
        }
        found.append(
            {
                "choices": [
                    {"index": 0, "message": message, "logprobs": {"content": content}}
                ]
            }
        )
    return found, np.array(right), answers


def main():
    """Return the errors of logprobs and of stated confidences, before and after
    recalibration on separate samples.
    """
    found, right, answers = completions()
    fit, test = slice(0, 1000), slice(1000, None)
    logits = np.array([answer_logits(one, answers) for one in found])
    texts = [one["choices"][0]["message"]["content"] for one in found]
    # otherwise, the correct answer had probability 0
    is_listed = (
        logits[fit][np.arange(1000), np.searchsorted(answers, right[fit])] > -np.inf
    )
    temperature = TemperatureScaling(input="logit", classes=answers)
    temperature.fit(logits[fit][is_listed], right[fit][is_listed])
    raw = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    errors = {
        "logprobs": calibration_error(right[test], raw[test]),
        "logprobs, one temperature": calibration_error(
            right[test], temperature.predict_proba(logits[test])
        ),
    }
    stated = np.array([stated_confidence(text) for text in texts])
    is_right = np.array([text[0] for text in texts]) == right
    platt = PlattScaling().fit(stated[fit], is_right[fit])
    errors["stated"] = calibration_error(is_right[test], stated[test])
    errors["stated, Platt"] = calibration_error(
        is_right[test], platt.predict_proba(stated[test])
    )
    for name, error in errors.items():
        print(f"{name:<28}{error:.3f}")
    return errors


if __name__ == "__main__":
    main()
