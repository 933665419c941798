"""Answers of a language model: read the sample files of lm-evaluation-harness, then
recalibrate by subject, export and certify.

Copy `read_lm_eval`. The rest needs no data: it writes small files in the format of the
harness and reads them back.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss

from skcalib import GroupwiseRecalibrator, TemperatureScaling
from skcalib.decisions import certified_threshold
from skcalib.export import to_javascript, to_onnx

NUMBER = re.compile(r"(?:^|\()\s*(-?inf|-?\d+\.?\d*(?:e[-+]?\d+)?)", re.IGNORECASE)


def read_lm_eval(paths, subject="subject", label=None):
    """Read the multiple-choice questions of ``lm_eval --log_samples``: logits (n, K),
    labels and subjects.

    Questions with fewer options than K have -inf in the other columns. The subject is
    ``doc[subject]``, or the name of the task. If `target` does not identify the correct
    option, pass `label`: a function that returns its position for a sample.
    """
    logits, labels, subjects = [], [], []
    for path in map(Path, paths):
        task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.stem)
        # not str.splitlines, which also splits within texts
        with path.open(encoding="utf-8") as lines:
            for number, sample in enumerate(
                map(json.loads, filter(str.strip, lines)), start=1
            ):
                where = f"{path.name}, sample {number}"
                # {"gen_args_0": {"arg_0": context, "arg_1": option}, ...}, or pairs
                given = sample["arguments"]
                pairs = (
                    [list(one.values()) for one in given.values()]
                    if isinstance(given, dict)
                    else given
                )
                # "(-1.25, False)" or ["-1.25", "False"]: the log-likelihood of an
                # option, and whether it is greedy
                texts = [
                    str(one[0] if isinstance(one, list) else one)
                    for one in sample["filtered_resps"]
                ]
                numbers = [NUMBER.search(text) for text in texts]
                if len(pairs) != len(texts) or len(texts) < 2 or None in numbers:
                    raise ValueError(
                        f"{where} has log-likelihoods for fewer than two options."
                        " Exclude such tasks."
                    )
                n = (
                    len(texts) // 2 if "acc_mutual_info" in sample else len(texts)
                )  # options without a context follow
                row, options = (
                    [float(one[1]) for one in numbers[:n]],
                    [str(pair[1]).strip() for pair in pairs[:n]],
                )
                target = str(sample["target"]).strip()
                places = (
                    [int(target)]
                    if target.isdigit()
                    else [k for k in range(n) if options[k] == target]
                )
                places = places if label is None else [label(sample)]
                if len(places) != 1 or not 0 <= places[0] < n:
                    raise ValueError(
                        f"{where}: the target {target!r} is not one of the options"
                        f" {options}. Pass label=."
                    )
                if (
                    label is None
                    and "acc" in sample
                    and bool(sample["acc"]) != (np.argmax(row) == places[0])
                ):
                    raise ValueError(
                        f"{where}: 'acc' implies that the target {target!r} is a"
                        " different option. Pass label=."
                    )
                logits.append(row)
                labels.append(places[0])
                subjects.append(str(sample["doc"].get(subject, task)))
    padded = np.full((len(logits), max(map(len, logits), default=0)), -np.inf)
    for row, values in zip(padded, logits, strict=True):
        row[: len(values)] = values
    return padded, np.array(labels), np.array(subjects)


def write_samples(folder, n=1500, seed=0):
    """Write sample files of three tasks as the harness does: values are strings, and
    questions have 2 to 5 options.
    """
    rng = np.random.default_rng(seed)
    tasks = [
        ("boolq", None, [2], 1.2),
        ("mmlu_anatomy", "anatomy", [4], 2.5),
        ("arc_challenge", None, [3, 4, 5], 1.7),
    ]
    for task, subject, sizes, temperature in tasks:
        with (folder / f"samples_{task}_2025-11-03T10-15-00.123456.jsonl").open(
            "w", encoding="utf-8"
        ) as file:
            for doc_id in range(n):
                likelihoods = rng.normal(-8, 4, rng.choice(sizes))
                right = int(
                    np.argmax(
                        likelihoods / temperature + rng.gumbel(size=len(likelihoods))
                    )
                )
                options = (
                    ["no", "yes"]
                    if task == "boolq"
                    else list("ABCDE")[: len(likelihoods)]
                )
                filtered = [[str(one), "False"] for one in likelihoods.tolist()]
                if task == "boolq":  # older versions write a pair as one string
                    filtered = [f"({one}, {answer})" for one, answer in filtered]
                pairs = enumerate(options)
                sample = {
                    "doc_id": doc_id,
                    "doc": (
                        {"question": f"Question {doc_id}?"}
                        | ({"subject": subject} if subject else {})
                    ),
                    "target": options[right] if task == "boolq" else str(right),
                    "arguments": {
                        f"gen_args_{k}": {"arg_0": "Answer:", "arg_1": f" {one}"}
                        for k, one in pairs
                    },
                    "resps": [[one] for one in filtered],
                    "filtered_resps": filtered,
                    "acc": float(np.argmax(likelihoods) == right),
                }
                file.write(json.dumps(sample, ensure_ascii=False) + "\n")
    return sorted(folder.glob("samples_*.jsonl"))


def main(paths, folder):
    """Recalibrate by subject, export, and find the confidence above which 8 of 10
    answers are correct.
    """
    logits, labels, subjects = read_lm_eval(paths)
    # to fit, to certify, to test
    part = np.random.default_rng(0).integers(3, size=len(labels))
    columns = range(logits.shape[1])
    # some columns may never be the correct option
    method = TemperatureScaling(input="logit", classes=columns)
    pooled = TemperatureScaling(input="logit", classes=columns).fit(
        logits[part == 0], labels[part == 0]
    )
    model = GroupwiseRecalibrator(method, groups=None)
    model.fit(logits[part == 0], labels[part == 0], groups=subjects[part == 0])

    test = part == 2
    proba = model.predict_proba(logits, groups=subjects)
    likelihood = np.exp(logits - logits.max(axis=1, keepdims=True))
    forecasts = {
        "as the model gives them": likelihood / likelihood.sum(axis=1, keepdims=True),
        "one temperature": pooled.predict_proba(logits),
        "one for each subject": proba,
    }
    losses = {
        name: log_loss(labels[test], one[test], labels=columns)
        for name, one in forecasts.items()
    }
    for name, loss in losses.items():
        print(f"log-loss, {name:<24}{loss:.3f}")

    # calibrate([-1.2, -Infinity], "law")
    (folder / "calibrate.js").write_text(to_javascript(model), encoding="utf-8")
    (folder / "calibrate.onnx").write_bytes(
        to_onnx(model, dtype="float64").SerializeToString()
    )

    certified = certified_threshold(
        labels[part == 1],
        proba[part == 1],
        promise="error_when_answered",
        target=0.2,
        labels=columns,
    )
    print(certified)
    answered = certified.accepts(proba[test])
    wrong = (proba[test].argmax(axis=1) != labels[test])[answered].mean()
    print(
        f"Of {test.sum()} other questions, {answered.mean():.1%} are answered, of which"
        f" {wrong:.1%} wrongly."
    )
    return model, losses, certified, wrong


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(sys.argv[1:] or write_samples(Path(name)), Path(name))
