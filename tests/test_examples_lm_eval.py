"""The recipe for lm-evaluation-harness reads what the harness writes, and its maps run
outside Python.
"""

import ast
import json
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import skcalib
from skcalib import GroupwiseRecalibrator, TemperatureScaling
from skcalib.export import to_javascript, to_onnx

EXAMPLE = runpy.run_path(
    str(Path(__file__).parents[1] / "doc" / "examples" / "lm_eval.py")
)
read_lm_eval, write_samples = EXAMPLE["read_lm_eval"], EXAMPLE["write_samples"]


def sample(likelihoods, target, options=None, **more):
    options = options or list("ABCDE")[: len(likelihoods)]
    pairs = [
        {"arg_0": "Question: why?\nAnswer:", "arg_1": f" {option}"}
        for option in options
    ]
    return {
        "doc_id": 0,
        "doc": {},
        "target": target,
        "arguments": {f"gen_args_{k}": pair for k, pair in enumerate(pairs)},
        "resps": [[[str(one), "False"]] for one in likelihoods],
        "filtered_resps": [[str(one), "False"] for one in likelihoods],
        "acc": 1.0,
    } | more


def write(folder, *samples, name="samples_arc_easy_2025-11-03T10-15-00.123456.jsonl"):
    path = folder / name
    path.write_text(
        "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in samples),
        encoding="utf-8",
    )
    return path


def plain(paths):
    """The same files, value by value: the log-likelihood is the first element of a pair
    or of a pair's text.
    """
    rows = []
    for path in paths:
        for line in path.read_text("utf-8").strip().split("\n"):
            one = json.loads(line)
            pairs = [
                ast.literal_eval(pair) if isinstance(pair, str) else pair
                for pair in one["filtered_resps"]
            ]
            options = [pair["arg_1"].strip() for pair in one["arguments"].values()]
            right = (
                int(one["target"])
                if one["target"].isdigit()
                else options.index(one["target"])
            )
            task = path.name.removeprefix("samples_").split("_2025-")[0]
            rows.append(
                (
                    [float(pair[0]) for pair in pairs],
                    right,
                    one["doc"].get("subject", task),
                )
            )
    return rows


def test_three_tasks_with_unequal_numbers_of_options(tmp_path):
    paths = write_samples(tmp_path, n=40)
    logits, labels, subjects = read_lm_eval(paths)
    rows = plain(paths)
    assert logits.shape == (120, 5)
    assert {len(row) for row, _, _ in rows} == {2, 3, 4, 5}
    for found, (row, _, _) in zip(logits, rows, strict=True):
        assert found.tolist() == row + [-np.inf] * (5 - len(row))
    assert labels.tolist() == [right for _, right, _ in rows]
    assert subjects.tolist() == [subject for _, _, subject in rows]
    assert set(subjects) == {"boolq", "anatomy", "arc_challenge"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [-1.5, -2.0, -30.25]),
        (
            {"filtered_resps": ["(-1.5, True)", "(-2.0, False)", "(-30.25, False)"]},
            [-1.5, -2.0, -30.25],
        ),
        (
            {
                "filtered_resps": [
                    "(np.float64(-1.5), True)",
                    "(tensor(-2.), False)",
                    "(-3, 0)",
                ]
            },
            [-1.5, -2, -3],
        ),
        (
            {
                "filtered_resps": [[-1.5, True], [-2.0, False], [-1e-07, False]],
                "acc": 0.0,
            },
            [-1.5, -2.0, -1e-7],
        ),
        (
            {
                "filtered_resps": [
                    ["-1e-07", "True"],
                    ["-2.5e+01", "False"],
                    ["-inf", "False"],
                ]
            },
            [-1e-7, -25, -np.inf],
        ),
        (
            {"filtered_resps": ["(-1.5, True)", "(-2, False)", "(-inf, False)"]},
            [-1.5, -2, -np.inf],
        ),
        ({"arguments": [["Q", " A"], ["Q", " B"], ["Q", " C"]]}, [-1.5, -2.0, -30.25]),
        ({"doc": {"question": "a line\u2028separator"}}, [-1.5, -2.0, -30.25]),
    ],
)
@pytest.mark.parametrize("target", ["0", 0, "A", " A"])
def test_forms_of_one_sample(tmp_path, changes, expected, target):
    logits, labels, subjects = read_lm_eval(
        [write(tmp_path, sample([-1.5, -2.0, -30.25], target, **changes))]
    )
    assert logits.tolist() == [expected]
    assert labels.tolist() == [0]
    assert subjects.tolist() == ["arc_easy"]


def test_options_without_context_follow_where_mutual_information_is_measured(tmp_path):
    doubled = sample(
        [-1.0, -2.0, -5.0, -4.0], "A", ["A", "B", "A", "B"], acc_mutual_info=0.0
    )
    logits, labels, _ = read_lm_eval([write(tmp_path, doubled)])
    assert logits.tolist() == [[-1.0, -2.0]]
    assert labels.tolist() == [0]


def test_the_subject_is_any_key(tmp_path):
    path = write(
        tmp_path,
        sample([-1.0, -2.0], "0", doc={"category": "law"}),
        sample([-1.0, -2.0], "0"),
    )
    assert read_lm_eval([path], subject="category")[2].tolist() == ["law", "arc_easy"]


def test_a_label_of_ones_own(tmp_path):
    """Of winogrande the options differ in the context, and the target is the text that
    they share.
    """
    one = sample(
        [-1.0, -2.0],
        "was late.",
        ["was late.", "was late."],
        doc={"answer": "2"},
        acc=0.0,
    )
    path = write(tmp_path, one)
    with pytest.raises(
        ValueError,
        match=r"sample 1: the target 'was late.' is not one of .* Pass label=",
    ):
        read_lm_eval([path])
    assert read_lm_eval([path], label=lambda sample: int(sample["doc"]["answer"]) - 1)[
        1
    ].tolist() == [1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (sample([-1.0, -2.0], "C"), "target 'C' is not one of the options"),
        (sample([-1.0, -2.0], "2"), "target '2' is not one of the options"),
        (sample([-1.0, -2.0], "-100"), "target '-100' is not one of the options"),
        (sample([-1.0, -2.0], "[0, 1]"), "is not one of the options"),
        (
            sample([-1.0, -2.0], "1"),
            "'acc' implies that the target '1' is a different option",
        ),
        (sample([-1.0], "0"), "Exclude such tasks"),
        (
            sample([-1.0, -2.0], "4", filtered_resps=["The answer is 4", "It is 4"]),
            "Exclude such tasks",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, wrong, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_lm_eval([write(tmp_path, sample([-1.0, -2.0], "0"), wrong)])
    assert str(caught.value).startswith(
        "samples_arc_easy_2025-11-03T10-15-00.123456.jsonl, sample 2"
    )


def test_the_job(tmp_path, capsys):
    pytest.importorskip("onnx")
    model, losses, certified, wrong = EXAMPLE["main"](write_samples(tmp_path), tmp_path)
    bare, pooled, by_subject = losses.values()
    assert by_subject < pooled - 0.01 < bare - 0.1
    temperatures = {
        subject: model.recalibrators_[subject].temperature_ for subject in model.groups_
    }
    assert temperatures == pytest.approx(
        {"anatomy": 2.5, "arc_challenge": 1.7, "boolq": 1.2}, rel=0.25
    )
    assert certified.found
    assert wrong <= 0.2
    assert "at most 20 % of the answers are wrong" in capsys.readouterr().out
    assert "const calibrate" in (tmp_path / "calibrate.js").read_text("utf-8")
    assert (tmp_path / "calibrate.onnx").stat().st_size > 1000


# --- impossible options outside Python ---

KINDS = [
    TemperatureScaling(input="logit", classes=range(5)),
    skcalib.VectorScaling(input="logit", classes=range(5)),
    skcalib.IsotonicCalibration(input="logit", classes=range(5)),
    skcalib.QuadraticScaling(input="logit", classes=range(5)),
    GroupwiseRecalibrator(
        TemperatureScaling(input="logit", classes=range(5)), groups=None
    ),
    GroupwiseRecalibrator(
        skcalib.VectorScaling(input="logit", classes=range(5)),
        groups=None,
        shrinkage=30,
    ),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


def fitted(kind, tmp_path):
    """Return a fitted recalibrator, rows it has not seen (also wrong ones), their
    groups and probabilities.
    """
    logits, labels, subjects = read_lm_eval(write_samples(tmp_path, n=150))
    given = {"groups": subjects} if isinstance(kind, GroupwiseRecalibrator) else {}
    model = kind.fit(logits, labels, **given)
    new = logits + np.random.default_rng(1).normal(size=logits.shape)
    new[0] = [-np.inf, 1e3, -np.inf, -np.inf, -np.inf]
    new[1] = [-1e3, 1e3, -np.inf, 0, 0]
    expected = model.predict_proba(new, **given)
    assert (expected[np.isneginf(new)] == 0).all()
    wrong = [
        [-np.inf] * 5,
        [np.nan, -np.inf, 0, 0, 0],
        [np.inf, -np.inf, 0, 0, 0],
        [2e100, -np.inf, 0, 0, 0],
    ]
    return (
        model,
        np.vstack((new, wrong)),
        np.append(subjects, subjects[:4]),
        np.vstack((expected, np.full((4, 5), np.nan))),
    )


@kinds
def test_onnx(kind, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, logits, subjects, expected = fitted(kind, tmp_path)
    groups = (
        {"group": subjects[:, None].astype(object)}
        if isinstance(kind, GroupwiseRecalibrator)
        else {}
    )
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        graph = to_onnx(model, dtype=dtype).SerializeToString()
        session = onnxruntime.InferenceSession(
            graph, providers=["CPUExecutionProvider"]
        )
        with np.errstate(over="ignore"):
            (found,) = session.run(None, {"scores": logits.astype(dtype)} | groups)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_javascript(tmp_path):
    program, wanted = [], []
    for number, kind in enumerate(KINDS):
        model, logits, subjects, expected = fitted(kind, tmp_path)
        rows = [
            [str(one).replace("inf", "Infinity").replace("nan", "NaN") for one in row]
            for row in logits.tolist()
        ]
        program.append(to_javascript(model, name=f"f{number}"))
        for row, subject in zip(rows, subjects.tolist(), strict=True):
            program.append(
                f"console.log(JSON.stringify(f{number}([{', '.join(row)}],"
                f" {json.dumps(subject)})))"
            )
        wanted.append(expected)
        for path in tmp_path.glob("samples_*"):
            path.unlink()
    done = subprocess.run(
        ["node", "-"],
        input="\n".join(program),
        capture_output=True,
        text=True,
        check=True,
    )
    found = np.array(
        [json.loads(line) for line in done.stdout.splitlines()], dtype=float
    )
    np.testing.assert_allclose(found, np.vstack(wanted), rtol=0, atol=1e-12)
