"""The search finds a page first by words that readers type and that the page need not
say.
"""

WORDS = {
    "coming_from": ["netcal", "uncertainty-calibration", "CalibratedClassifierCV"],
    "deploying": ["ONNX", "SQL", "JSON", "pickle", "JavaScript", "production"],
    "drift": ["monitoring", "concept drift", "CUSUM"],
    "how_many_bins": ["certificate", "guarantee", "distribution-free"],
    "large_tables": ["Spark", "DuckDB", "Dask", "billion", "BigQuery"],
    "many_classes": ["multiclass", "one-vs-rest", "softmax", "ImageNet"],
    "pipelines": ["data leakage", "leakage", "out-of-fold", "GridSearchCV", "prefit"],
    "reading_a_diagram": [
        "overconfident",
        "over-confident",
        "underconfident",
        "under-confident",
        "calibration curve",
        "calibration plot",
        "reliability diagram",
    ],
    "reporting": ["TRIPOD", "paper", "medicine"],
    "scores": ["logits", "logit", "log-odds", "decision_function"],
    "where_predictions_live": [
        "LLM",
        "language model",
        "PyTorch",
        "CSV",
        "Hugging Face",
    ],
    "which_error": [
        "ECE",
        "p-value",
        "confidence interval",
        "significance",
        "bootstrap",
    ],
    "which_groups": ["fairness", "subgroup", "bias", "segment", "multicalibration"],
    "which_recalibrator": [
        "Platt scaling",
        "temperature scaling",
        "isotonic regression",
        "imbalanced",
        "SMOTE",
    ],
    "which_threshold": [
        "threshold",
        "cut-off",
        "abstain",
        "reject option",
        "decision curve",
        "cost",
    ],
}


def _add_words(app, page, source):
    entries = "".join(f"```{{index}} ! {word}\n```\n" for word in WORDS.get(page, ()))
    source[0] = entries + "\n" * bool(entries) + source[0]


def setup(app):
    """Register the words."""
    app.connect("source-read", _add_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
