"""The first screen of a report as `doc/pictures/report.png`: python
doc/examples/report_picture.py (needs chromium).

The rows are 4,000 patients at three sites. The predicted risks are too extreme, and too
low at one site.
"""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy.special import expit

from skcalib.__main__ import main

WIDTH, HEIGHT = 900, 820  # displayed size; the file has twice the resolution
_PICTURES = Path(__file__).resolve().parents[1] / "pictures"


def predictions():
    """Return a table with the label `died`, the probability `risk`, and the columns
    `site` and `age`.
    """
    rng = np.random.default_rng(0)
    site, age = rng.choice(["north", "south", "west"], 4000), rng.integers(30, 95, 4000)
    log_odds = rng.normal(-1.5, 1.2, 4000) + 0.02 * (age - 60)
    died = rng.random(4000) < expit(log_odds + np.where(site == "west", 0.7, 0))
    return pd.DataFrame(
        {
            "died": died.astype(int),
            "risk": expit(1.6 * log_odds),
            "site": site,
            "age": age,
        }
    )


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        page, picture = (Path(folder) / name for name in ("report.html", "report.png"))
        os.chdir(folder)
        predictions().to_csv("predictions.csv", index=False)
        main(
            [
                "report",
                "predictions.csv",
                "--label",
                "died",
                "--score",
                "risk",
                "--segment",
                "site",
                "-o",
                str(page),
            ]
        )
        command = [
            shutil.which("chromium"),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ]
        size = [
            "--force-device-scale-factor=2",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={picture}",
            page.as_uri(),
        ]
        subprocess.run([*command, *size], check=True, capture_output=True)
        shutil.copy(picture, _PICTURES / "report.png")
