"""Logits larger than memory:
``python -m benchmarks.mapped_logits [--rows 2000000] [--classes 500]``.

Writes float32 logits into a file, and takes them from there as `numpy.memmap`:
`TemperatureScaling` and `VectorScaling` are fitted, `predict_proba` writes a second
file by blocks of rows, and the top-label and marginal errors are those of that file.
Each step runs in a process of its own. What is counted is its memory without pages of
files (RssAnon of /proc/self/status, Linux only), above that at the start: pages of
files can be dropped at any time. Prints a table.
"""

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

_BLOCK = 20_000  # rows at a time of predictions
_LIMIT = 1.5  # gigabytes, for the default size
_STEPS = (
    "fit temperature",
    "fit vector",
    "predict by blocks",
    "top-label error",
    "marginal error",
)


def main(argv=None):
    """Measure, print the figures, and return the exit status: 1 where a step takes too
    much memory.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mapped_logits", description=__doc__
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--classes", type=int, default=500)
    parser.add_argument(
        "--limit", type=float, default=_LIMIT, help="gigabytes (default: 1.5)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="of the files, two of rows x classes x 4 bytes (deleted at the end)",
    )
    parser.add_argument("--steps", nargs="+", choices=_STEPS, default=list(_STEPS))
    options = parser.parse_args(argv)
    shape, missed = (options.rows, options.classes), 0
    print("| step | processor seconds | GB of its own |\n|---|--:|--:|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        _write(Path(folder), shape)
        for step in options.steps:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, gigabytes, note = pool.apply(
                    _measured, (step, Path(folder), shape)
                )
            missed += gigabytes > options.limit
            print(f"| {step} ({note}) | {seconds:.1f} | {gigabytes:.2f} |", flush=True)
    print(f"\n{missed} of {len(options.steps)} steps above {options.limit} GB")
    return int(missed > 0)


def mapped(folder, name, shape, mode="r"):
    """Return one of the files as an array of float32."""
    return np.memmap(folder / name, np.float32, mode, shape=shape)


def _write(folder, shape):
    """Write logits whose temperature is 2, and labels."""
    logits, rng = mapped(folder, "logits", shape, "w+"), np.random.default_rng(0)
    labels = np.empty(shape[0], np.int16)
    for start in range(0, shape[0], _BLOCK):
        block = 4 * rng.standard_normal(
            (min(_BLOCK, shape[0] - start), shape[1]), np.float32
        )
        noise = -np.log(
            np.maximum(rng.standard_exponential(block.shape, np.float32), 1e-30)
        )
        labels[start : start + len(block)] = (block / 2 + noise).argmax(axis=1)
        logits[start : start + len(block)] = block
    logits.flush()
    np.save(folder / "labels.npy", labels)


def _run(step, folder, shape):
    """Do one step, and return a note about its result."""
    from skcalib import TemperatureScaling, VectorScaling
    from skcalib.metrics import calibration_error

    labels, logits = np.load(folder / "labels.npy"), mapped(folder, "logits", shape)
    temperature = TemperatureScaling(input="logit", classes=range(shape[1]))
    if step == "fit temperature":
        return f"temperature {temperature.fit(logits, labels).temperature_:.4f}"
    if step == "fit vector":
        slopes = (
            VectorScaling(input="logit", classes=range(shape[1]))
            .fit(logits, labels)
            .coef_
        )
        return f"slopes {np.min(slopes):.3f} to {np.max(slopes):.3f}"
    if step == "predict by blocks":
        temperature.fit(logits[:_BLOCK], labels[:_BLOCK])
        out = mapped(folder, "probabilities", shape, "w+")
        for start in range(0, shape[0], _BLOCK):
            out[start : start + _BLOCK] = temperature.predict_proba(
                logits[start : start + _BLOCK]
            )
        return f"{shape[0]:,} rows"
    multiclass = "top_label" if step == "top-label error" else "marginal"
    probabilities = mapped(folder, "probabilities", shape)
    error = calibration_error(
        labels, probabilities, multiclass=multiclass, labels=range(shape[1])
    )
    return f"error {error:.5f}"


def _measured(step, folder, shape):
    """Return the processor time of a step, its memory above that of the imports in
    gigabytes, and its note.
    """
    import skcalib
    import skcalib.metrics  # noqa: F401

    done, peak, start = threading.Event(), [0], _anonymous_memory()

    def watch():
        while not done.wait(0.005):
            peak[0] = max(peak[0], _anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.process_time()
    try:
        note = _run(step, folder, shape)
    finally:
        seconds = time.process_time() - begun
        done.set()
        watcher.join()
    return seconds, (peak[0] - start) / 2**20, note


def _anonymous_memory():
    """Return the kilobytes of this process that belong to no file."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(
            int(line.split()[1]) for line in status if line.startswith("RssAnon")
        )


if __name__ == "__main__":
    sys.exit(main())
