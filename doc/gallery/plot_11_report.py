"""
A report without code
=====================

One command turns a table of labels and scores into a page that you can share::

    python -m skcalib report scores.csv --label bought --score p --segment country --time month --threshold 0.3

The page is self-contained. It is shown in full below. With ``--json``, the command
prints the numbers instead.
"""  # noqa: E501

# sphinx_gallery_thumbnail_path = 'pictures/report.png'

# %%
# Create a table with 2,500 rows. In one country, the scores are too high.
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 2500
table = pd.DataFrame(
    {
        "p": rng.beta(1, 3, n).round(4),
        "country": rng.choice(["FR", "IT", "PL"], n),
        "month": rng.integers(1, 7, n),
    }
)
table["bought"] = (
    rng.random(n) < table.p ** np.where(table.country == "PL", 1.4, 1.0)
).astype(int)

# %%
# This example calls the command from Python. In a shell, use the line above.
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

from skcalib.__main__ import main

with (
    TemporaryDirectory() as folder,
    chdir(folder),
    redirect_stdout(StringIO()),
    redirect_stderr(StringIO()),
):
    table.to_csv("scores.csv", index=False)
    options = [
        "--label",
        "bought",
        "--score",
        "p",
        "--segment",
        "country",
        "--time",
        "month",
        "--threshold",
        "0.3",
    ]
    status = main(["report", "scores.csv", *options])
    html = Path("report.html").read_text("utf-8")
print(f"exit status {status}, a page of {len(html) / 1000:.0f} kB")


# %%
# This is the page:
from html import escape


class Page:
    """Embed an HTML page."""

    def _repr_html_(self):
        return (
            f'<iframe srcdoc="{escape(html)}" style="width: 100%; height: 40rem;'
            ' background: white"></iframe>'
        )


Page()

# %%
# The page includes the numbers as JSON. Plot the gain of each recalibrator, estimated
# by cross-validation.
import json
import re

import matplotlib.pyplot as plt

numbers = json.loads(
    re.search(
        r'<script type="application/json" id="numbers">(.*?)</script>', html, flags=re.S
    )[1]
)
rows = numbers["models"][0]["recalibrators"]
gain, low, high = (
    np.array([row[key] for row in rows]) for key in ("gain", "gain_low", "gain_high")
)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.errorbar(
    gain, [row["name"] for row in rows], xerr=[gain - low, high - gain], fmt="o"
)
ax.axvline(0, color="grey", linestyle="--")
ax.set(xlabel="Reduction in log-loss with recalibration, with 90 % intervals")
ax.invert_yaxis()

# %%
# **See also:** :doc:`/displays`, :doc:`/reporting`. Reference: `calibration_summary`,
# `recalibration_gain`.
