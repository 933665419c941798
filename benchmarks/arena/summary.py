"""What the results say: means, win rates, head-to-head, harm.

The models of one data set share its rows: intervals are bootstrap intervals over data sets.
"""

import numpy as np

_HARM_SHARE, _HARM_NATS = 0.01, 0.001
_SCORES = ("log_loss", "brier")


def summarize(results):
    """Return by method: mean scores, ratios to the uncalibrated model, win rates, head-to-head, harm and seconds."""
    names = list(results[0]["scores"])
    scores = np.array([[result["scores"][name] for name in names] for result in results])
    groups = np.array([result["name"].split("/")[0] for result in results])
    n_cal = np.array([result["n_cal"] for result in results])
    best = max(range(len(names)), key=lambda j: win_rate(scores[:, :, 0], j))
    uncalibrated = names.index("uncalibrated")
    summary = {}
    for j, name in enumerate(names):
        row = {}
        for k, score in enumerate(_SCORES):
            row[score] = scores[:, j, k].mean()
            row[f"{score}_ratio"] = row[score] / scores[:, uncalibrated, k].mean()
            row[f"win_rate_{score}"] = win_rate(scores[:, :, k], j)
            row[f"head_to_head_{score}"] = head_to_head(scores[:, best, k], scores[:, j, k], groups)
        row |= harm(scores[:, j, 0], scores[:, uncalibrated, 0], n_cal)
        row["failed"] = sum(name in result["errors"] for result in results)
        row["seconds"] = scores[:, j, 2].sum()
        summary[name] = {key: _plain(value) for key, value in row.items()}
    return summary


def win_rate(losses, j):
    """Return the share of comparisons with the other methods that method j wins: CalArena's, where a tie is no win."""
    others = np.delete(losses, j, axis=1)
    return float(np.mean(losses[:, j : j + 1] < others))


def head_to_head(mine, other, groups, n_resamples=1000):
    """Return the share of experiments that `mine` wins, with a 90 % bootstrap interval over data sets."""
    wins = (mine < other) + 0.5 * (mine == other)
    names, inverse = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(inverse, weights=wins), np.bincount(inverse)
    drawn = np.random.default_rng(0).integers(len(names), size=(n_resamples, len(names)))
    shares = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return [wins.mean(), *np.quantile(shares, [0.05, 0.95])]


def harm(losses, uncalibrated, n_cal):
    """Return the share of experiments that got worse by over 1 % and .001 nats, and the largest harm in nats."""
    more = losses - uncalibrated
    enough = more[n_cal >= 250]
    return {
        "harmed": ((more > _HARM_SHARE * uncalibrated) & (more > _HARM_NATS)).mean(),
        "worst_harm": more.max(),
        "worst_harm_from_250_rows": enough.max() if len(enough) else 0.0,
    }


def print_summary(kind, results, summary, out):
    """Print the table of one kind, the best win rate first."""
    rows = sorted(summary.items(), key=lambda item: -item[1]["win_rate_log_loss"])
    n_sets = len({result["name"].split("/")[0] for result in results})
    print(f"\n{kind}: {len(results)} experiments on {n_sets} data sets", file=out)
    columns = {
        "log-loss": "log_loss",
        "ratio": "log_loss_ratio",
        "Brier": "brier",
        "ratio ": "brier_ratio",
        "win rate": "win_rate_log_loss",
        "win(Brier)": "win_rate_brier",
        "harmed": "harmed",
        "worst": "worst_harm",
        "worst 250+": "worst_harm_from_250_rows",
    }
    against = f"  {rows[0][0]} wins: log-loss, Brier"
    print(f"{'method':<28}" + "".join(f"{title:>11}" for title in (*columns, "s")) + against, file=out)
    for name, row in rows:
        figures = "".join(f"{row[key]:11.4f}" for key in columns.values()) + f"{row['seconds']:11.1f}"
        duels = [row[f"head_to_head_{score}"] for score in _SCORES] if name != rows[0][0] else []
        shares = ",".join(f" {share:.2f} ({low:.2f} to {high:.2f})" for share, low, high in duels)
        failed = f"  failed in {row['failed']:.0f}" if row["failed"] else ""
        print(f"{name:<28}{figures} {shares}{failed}", file=out)


def _plain(value):
    return [float(item) for item in value] if isinstance(value, list) else float(value)
