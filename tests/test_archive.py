"""Documents of earlier schemas are read, and forecast what they did."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from skcalib import TemperatureScaling
from skcalib.export import from_dict, to_dict
from skcalib.export._json import _CLASSES, SCHEMA, _checks
from skcalib.export._json_whole import CHECKS
from skcalib.monitoring import CalibrationMonitor

ARCHIVE = Path(__file__).parent / "archive"
DOCUMENTS = {path.stem: path for path in sorted(ARCHIVE.glob("schema_*.json"))}
SHAPES = ARCHIVE / "shapes.json"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*groups that were not seen")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_of_the_archive_is_read(name):
    written = json.loads(DOCUMENTS[name].read_text("utf-8"))
    assert len(written) > 30
    for fit in written:
        model = from_dict(fit["document"])
        options = {
            key: fit[key] for key in ("groups", "ids") if fit.get(key) is not None
        }
        found = model.predict_proba(np.array(fit["scores"]), **options)
        np.testing.assert_allclose(found, fit["probabilities"], rtol=0, atol=1e-9)
        # What is written now has the schema of now, and reads back.
        again = to_dict(model)
        assert again["schema"] == SCHEMA
        np.testing.assert_array_equal(
            from_dict(again).predict_proba(np.array(fit["scores"]), **options), found
        )


def shapes():
    """Return the parameters and the attributes that a document of each class holds."""
    found = {}
    for name, kind in sorted(_CLASSES.items()):
        attributes = CHECKS[kind] if kind in CHECKS else {}
        if hasattr(kind, "_attributes"):
            attributes = _checks(kind)
        parameters = inspect.signature(kind).parameters
        found[name] = {
            "parameters": sorted(parameters),
            "attributes": sorted(attributes),
        }
    return found


def test_a_shape_does_not_change_without_a_new_number():
    """A parameter or an attribute more, or less, is another schema.

    Raise `SCHEMA`, say in `skcalib.export._json_older` what documents before it lack,
    and write the file anew: ``python tests/test_archive.py``. Before the release of a
    schema the file alone is written anew.
    """
    known = json.loads(SHAPES.read_text("utf-8"))
    assert known["schema"] == SCHEMA
    found = shapes()
    changed = [name for name in found if found[name] != known["classes"].get(name)]
    assert changed == []
    assert found.keys() == known["classes"].keys()


def test_a_document_of_today_is_complete():
    model = TemperatureScaling().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    document = to_dict(model)
    assert document["schema"] == SCHEMA == 2
    del document["parameters"]["clip"]
    with pytest.raises(ValueError, match="has no 'clip'"):
        from_dict(document)


# --- monitors ---


def monitored(**options):
    rng = np.random.default_rng(0)
    scores = rng.random(60)
    y = (rng.random(60) < scores).astype(int)
    return to_dict(CalibrationMonitor(**options).fit(scores, y))


def test_evidence_without_an_alarm_is_refused():
    document = monitored()
    from_dict(document)
    document["fitted"]["e_value_"] = 101.0
    with pytest.raises(ValueError, match=r"e_value_ is 101, beyond.*alarm_ is false"):
        from_dict(document)


@pytest.mark.parametrize("classes", [[1, 0], [0, 0], [[0, 1]]])
def test_wrong_classes_of_a_monitor_fail_at_reading(classes):
    document = monitored(classes=[0, 1])
    from_dict(document)
    document["parameters"]["classes"] = classes
    with pytest.raises(ValueError, match="classes"):
        from_dict(document)


def main():
    """Write the shapes of now."""
    known = {"schema": SCHEMA, "classes": shapes()}
    SHAPES.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
