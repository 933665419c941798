"""The job from a certificate to an alarm runs as a whole."""

import re
import runpy
from pathlib import Path

import pytest

JOB = Path(__file__).parents[1] / "doc" / "examples" / "certificate_to_monitor.py"


@pytest.mark.slow
def test_from_a_certificate_to_a_dated_alarm(capsys):
    pytest.importorskip("duckdb")
    certificate, largest_difference, monitors = runpy.run_path(str(JOB))["main"]()
    n_different = int(
        re.search(r"6,000 rows have (\d+) different scores", capsys.readouterr().out)[1]
    )
    # the ties are many: without randomize=True there is no certificate
    assert n_different < 600
    assert 0 < certificate.epsilon < 0.1
    assert largest_difference <= 1e-12
    table = monitors.table_
    dates = dict(
        zip(
            table.group.tolist(),
            zip(table.alarm_time, table.change_time, strict=True),
            strict=True,
        )
    )
    assert dates["loans"][1] in ("2025-07", "2025-08")  # the change is that of August
    assert dates["loans"][0] in ("2025-08", "2025-09")
    assert dates["cards"] == dates["mortgages"] == (None, None)
