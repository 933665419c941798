"""Entries of what writes recalibrators in other languages, and of tables."""

from registry._entry import Entry

_TEXTS = {
    "not_frozen": "the frozen fits of recalibrators are compared in every language",
    "no_paper": "a fitted recalibrator in another form",
}
_TABLES = {
    "not_frozen": "every engine is compared with NumPy",
    "no_paper": "rows in another place",
}

ENTRIES = {
    "skcalib.engines.PredictionTable": Entry(job="doc/large_tables.md", **_TABLES),
    "skcalib.engines.scan": Entry(job="doc/large_tables.md", **_TABLES),
    "skcalib.export.from_dict": Entry(job="doc/deploying.md", **_TEXTS),
    "skcalib.export.register_skl2onnx_converters": Entry(
        job="doc/deploying.md", **_TEXTS
    ),
    "skcalib.export.to_dict": Entry(job="doc/deploying.md", **_TEXTS),
    "skcalib.export.to_javascript": Entry(job="doc/deploying.md", **_TEXTS),
    "skcalib.export.to_onnx": Entry(job="doc/deploying.md", **_TEXTS),
    "skcalib.export.to_python": Entry(job="doc/deploying.md", **_TEXTS),
    "skcalib.export.to_sql": Entry(job="doc/deploying.md", **_TEXTS),
    "skcalib.export.to_sql_table": Entry(job="doc/deploying.md", **_TEXTS),
}
