"""From a PyTorch training loop to a report: fit to validation logits, apply the map on
the device in one line, and write a report.

`calibrate`, `report` and the line in `on_device` accept tensors on any device,
including half precision.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax

from skcalib import TemperatureScaling

CLASSES = ["bird", "cat", "dog"]


def train(epochs=60, n=3000, seed=0):
    """Train a network for too long, and return logits and labels of the validation and
    test data.
    """
    import torch
    from torch import nn

    torch.manual_seed(seed)
    x = torch.randn(3 * n, 20)
    y = (x[:, :3] * 0.7 + torch.distributions.Gumbel(0, 1).sample((3 * n, 3))).argmax(
        dim=1
    )
    network = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 3))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for rows in torch.randperm(n).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    return (network(x[n : 2 * n]), y[n : 2 * n]), (network(x[2 * n :]), y[2 * n :])


def calibrate(logits, labels):
    """Fit temperature scaling to the logits and labels (tensors or arrays) of the
    validation data.
    """
    return TemperatureScaling(input="logit", classes=range(len(CLASSES))).fit(
        logits, labels
    )


def on_device(temperature, logits):
    """Return calibrated probabilities as a tensor on the device of the logits.
    Gradients are tracked.
    """
    return (logits * temperature.inverse_temperature_).softmax(dim=1)


def report(temperature, logits, labels, folder):
    """Write reports of the test data before and after calibration, and return their
    paths.
    """
    forecasts = {
        "raw": softmax(np.asarray(logits.detach().cpu().float()), axis=1),
        "calibrated": temperature.predict_proba(logits),
    }
    pages = []
    for kind, proba in forecasts.items():
        table, page = folder / f"{kind}.csv", folder / f"{kind}.html"
        frame = pd.DataFrame(proba, columns=[f"p_{name}" for name in CLASSES])
        frame.assign(label=np.array(CLASSES)[np.asarray(labels)]).to_csv(
            table, index=False
        )
        command = [
            sys.executable,
            "-m",
            "skcalib",
            "report",
            table,
            "--label",
            "label",
            "--score",
            "p_*",
            "-o",
            page,
        ]
        subprocess.run(command, check=True)
        pages.append(page)
    return pages


def main(folder):
    """Run the example. Return the temperature, the largest difference on the device and
    the pages.
    """
    validation, test = train()
    temperature = calibrate(*validation)
    print(f"temperature {temperature.temperature_:.2f}")
    same = on_device(temperature, test[0]).detach().cpu().numpy()
    difference = np.abs(same - temperature.predict_proba(test[0])).max()
    print(f"largest difference between the device and predict_proba: {difference:.1e}")
    return temperature, difference, report(temperature, *test, folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
