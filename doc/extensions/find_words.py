"""The search finds a page first by words that readers type and that the page need not
say.
"""

WORDS = {
    "boosted_trees": [
        "XGBoost",
        "LightGBM",
        "CatBoost",
        "gradient boosting",
        "early stopping",
        "eval_set",
        "xgbclassifier",
    ],
    "class_imbalance": [
        "imbalanced",
        "imbalance",
        "oversampling",
        "undersampling",
        "SMOTE",
        "class_weight",
        "scale_pos_weight",
        "prior shift",
        "rare events",
    ],
    "coming_from": [
        "netcal",
        "uncertainty-calibration",
        "CalibratedClassifierCV",
        "migration",
    ],
    "deploying": ["ONNX", "SQL", "JSON", "pickle", "JavaScript", "production"],
    "drift": ["monitoring", "concept drift", "CUSUM"],
    "glossary": ["glossary", "terminology"],
    "how_many_bins": ["certificate", "guarantee", "distribution-free"],
    "language_models": [
        "LLM",
        "language model",
        "logprobs",
        "verbalized confidence",
        "GPT",
        "hallucination",
    ],
    "large_tables": ["Spark", "DuckDB", "Dask", "billion", "BigQuery"],
    "many_classes": ["multiclass", "one-vs-rest", "softmax", "ImageNet"],
    "neural_networks": [
        "PyTorch",
        "Keras",
        "TensorFlow",
        "GPU",
        "deep learning",
        "segmentation",
        "neural network",
    ],
    "not_here": ["regression", "survival", "conformal", "prediction sets"],
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
    "scores": [
        "logits",
        "logit",
        "log-odds",
        "decision_function",
        "callibration",
        "calibraton",
        "caliberation",
    ],
    "small_data": ["small data", "few samples", "small sample"],
    "where_predictions_live": ["CSV", "Hugging Face"],
    "which_error": [
        "ECE",
        "debiased",
        "p-value",
        "confidence interval",
        "significance",
        "bootstrap",
    ],
    "which_groups": ["fairness", "subgroup", "bias", "segment", "multicalibration"],
    "which_recalibrator": [
        "Platt",
        "Platt scaling",
        "plat scaling",
        "temperature scaling",
        "isotonic",
        "isotonic regression",
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
