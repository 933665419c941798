"""Fits, errors and predictions where the logits are: ``python -m benchmarks.device``.

Prints the seconds of each job on tensors, beside those of PyTorch itself (its L-BFGS
and softmax), torchmetrics and probmetrics, which are left out where they are not
installed. The device is the GPU if PyTorch sees one, else the processor, for which the
sizes are smaller and the times are processor time on one thread. Each time is the best
of three after one call that is not counted; a job that has taken `--seconds` is not
repeated, and peers are left out after four minutes.
"""

import argparse
import os
import sys
import time

# SciPy decides at its import whether it takes tensors.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from sklearn import config_context

from skcalib import TemperatureScaling, VectorScaling
from skcalib.metrics import expected_calibration_error

try:
    import torch
except ImportError:  # `main` says so
    torch = None

_GPU_SIZES = ((50_000, 1_000), (500_000, 100))
_PROCESSOR_SIZES = ((2_000, 1_000), (20_000, 100))
_REPEATS = 3
_SECONDS_FOR_PEERS = 240


def main(argv=None):
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.device", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--device", help="such as cuda or cpu")
    parser.add_argument(
        "--sizes", nargs="+", help="rows and classes, such as 50000x1000"
    )
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="after which a job is not repeated"
    )
    options = parser.parse_args(argv)
    if torch is None:
        print("benchmarks.device needs PyTorch: pip install torch", file=sys.stderr)
        return 2
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    is_gpu = device.startswith("cuda")
    sizes = _GPU_SIZES if is_gpu else _PROCESSOR_SIZES
    if options.sizes:
        sizes = [tuple(map(int, size.split("x"))) for size in options.sizes]
    card = "the processor: its time on one thread, reduced sizes"
    if is_gpu:
        card = torch.cuda.get_device_name(device)
    else:
        torch.set_num_threads(1)
    start = time.perf_counter()
    print(f"device: {device} ({card}), PyTorch {torch.__version__}; seconds")
    print(f"{'job':<34}{'skcalib':>10}  peers")
    for size in sizes:
        data = _data(*size, device)
        for name, ours, peers in _jobs(data):
            seconds = _seconds(ours, device, options.seconds)
            texts = []
            if time.perf_counter() - start > _SECONDS_FOR_PEERS:
                peers = {}
            for peer, call in peers.items():
                of_peer = _seconds(call, device, options.seconds)
                texts.append(f"{peer} {of_peer:.4g} (ratio {seconds / of_peer:.2g})")
            job = f"{name}, {size[0]:,} x {size[1]:,}"
            print(f"{job:<34}{seconds:>10.4g}  {'; '.join(texts)}", flush=True)
    return 0


def _data(n_rows, n_classes, device):
    """Return labels and overconfident logits in single precision, on a device."""
    generator = torch.Generator(device=device).manual_seed(0)
    true_logits = 2 * torch.randn(n_rows, n_classes, device=device, generator=generator)
    uniform = torch.rand(n_rows, n_classes, device=device, generator=generator)
    gumbel = -torch.log(-torch.log(uniform.clamp(1e-12, 1 - 1e-7)))
    # each class has a sample, without which a fit would ask for their names
    labels = (true_logits / 1.5 + gumbel).argmax(dim=1)
    labels[:n_classes] = torch.arange(n_classes, device=device)
    return labels, true_logits


def _jobs(data):
    """Yield the name of each job, a call that does it, and those of the peers."""
    labels, logits = data
    probabilities = torch.softmax(logits, dim=1)
    n_classes = logits.shape[1]
    temperature = TemperatureScaling(input="logit", clip=None)
    vector = VectorScaling(input="logit", alpha=1.0, clip=None)
    yield (
        "fit temperature",
        lambda: temperature.fit(logits, labels),
        {"torch L-BFGS": lambda: _torch_fit(logits, labels, 1)}
        | _of_probmetrics("temp-scaling", labels, logits),
    )
    yield (
        "fit vector scaling",
        lambda: vector.fit(logits, labels),
        {"torch L-BFGS": lambda: _torch_fit(logits, labels, n_classes)}
        | _of_probmetrics("svs", labels, logits),
    )
    yield (
        "top-label error",
        lambda: expected_calibration_error(labels, probabilities),
        _of_torchmetrics(labels, probabilities),
    )
    fitted = TemperatureScaling(input="logit", clip=None).fit(logits, labels)
    yield (
        "predict",
        lambda: fitted.predict_proba(logits),
        {
            "torch softmax": lambda: torch.softmax(
                logits * fitted.inverse_temperature_, dim=1
            )
        },
    )


def _torch_fit(logits, labels, n_slopes):
    """Return the loss of one slope, or of one slope and intercept for each class,
    fitted by PyTorch's L-BFGS.
    """
    slope = torch.ones(n_slopes, device=logits.device, requires_grad=True)
    intercept = torch.zeros(n_slopes, device=logits.device, requires_grad=n_slopes > 1)
    parameters = [slope, intercept] if n_slopes > 1 else [slope]
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=100, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(logits * slope + intercept, labels)
        value.backward()
        return value

    return float(optimizer.step(loss).detach())


def _of_probmetrics(method, labels, logits):
    """Return a fit by probmetrics as a dict, which is empty where it is missing."""
    try:
        from probmetrics.calibrators import get_calibrator
        from probmetrics.distributions import CategoricalLogits
    except ImportError:  # or a package that it needs
        return {}

    def fit():
        get_calibrator(method).fit_torch(CategoricalLogits(logits), labels)

    return {"probmetrics": fit}


def _of_torchmetrics(labels, probabilities):
    """Return the top-label error by torchmetrics as a dict, empty without it."""
    try:
        from torchmetrics.functional.classification import multiclass_calibration_error
    except ImportError:
        return {}
    n_classes = probabilities.shape[1]
    return {
        "torchmetrics": lambda: float(
            multiclass_calibration_error(
                probabilities, labels, num_classes=n_classes, n_bins=15
            )
        )
    }


def _seconds(call, device, enough):
    """Return the seconds of a call: the best of three after a first one, unless the
    first takes `enough` seconds.
    """
    is_gpu = device.startswith("cuda")
    # Other programs do not change the processor's own time.
    clock = time.perf_counter if is_gpu else time.process_time
    seconds = []
    for _ in range(_REPEATS + 1):
        start = clock()
        with config_context(array_api_dispatch=True):
            call()
        if is_gpu:
            torch.cuda.synchronize()
        seconds.append(clock() - start)
        if seconds[-1] > enough:
            break
    return min(seconds[1:] or seconds)


if __name__ == "__main__":
    sys.exit(main())
