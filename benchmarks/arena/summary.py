"""What the results say: means, win rates, head-to-head, harm.

The models of one data set share its rows: intervals are bootstrap intervals over data
sets.
"""

import numpy as np

from benchmarks.arena.experiments import SCORES

_HARM_SHARE, _HARM_NATS = 0.01, 0.001
_FEW_ROWS = 250
_PROPER = SCORES[:2]
_TITLES = {"binary": "Two classes", "multiclass": "K classes"}


def summarize(results):
    """Return by method: mean scores, ratios to the uncalibrated model, win rates,
    head-to-head, harm and seconds.
    """
    names = list(results[0]["scores"])
    scores = np.array(
        [[result["scores"][name] for name in names] for result in results]
    )
    groups = np.array([result["name"].split("/")[0] for result in results])
    n_cal = np.array([result["n_cal"] for result in results])
    best = max(range(len(names)), key=lambda j: win_rate(scores[:, :, 0], j))
    uncalibrated = names.index("uncalibrated")
    summary = {}
    for j, name in enumerate(names):
        row = {}
        for k, score in enumerate(_PROPER):
            row[score] = scores[:, j, k].mean()
            row[f"{score}_ratio"] = row[score] / scores[:, uncalibrated, k].mean()
            row[f"win_rate_{score}"] = win_rate(scores[:, :, k], j)
            row[f"head_to_head_{score}"] = head_to_head(
                scores[:, best, k], scores[:, j, k], groups
            )
        # the root of the mean signed square
        for k, score in enumerate(SCORES[2:], start=2):
            row[score] = max(scores[:, j, k].mean(), 0.0) ** 0.5
        row |= harm(scores[:, j, 0], scores[:, uncalibrated, 0], n_cal)
        row["failed"] = sum(name in result["errors"] for result in results)
        row["seconds"] = scores[:, j, -1].sum()
        summary[name] = {key: _plain(value) for key, value in row.items()}
    return summary


def win_rate(losses, j):
    """Return the share of comparisons with the other methods that method j wins:
    CalArena's, where a tie is no win.
    """
    others = np.delete(losses, j, axis=1)
    return float(np.mean(losses[:, j : j + 1] < others))


def head_to_head(mine, other, groups, n_resamples=1000):
    """Return the share of experiments that `mine` wins, with a 90 % bootstrap interval
    over data sets.
    """
    wins = (mine < other) + 0.5 * (mine == other)
    names, inverse = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(inverse, weights=wins), np.bincount(inverse)
    drawn = np.random.default_rng(0).integers(
        len(names), size=(n_resamples, len(names))
    )
    shares = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return [wins.mean(), *np.quantile(shares, [0.05, 0.95])]


def harm(losses, uncalibrated, n_cal):
    """Return the share of experiments that got worse by over 1 % and .001 nats, and the
    largest harm in nats.

    Harm is 0 where no experiment got worse.
    """
    more, few = losses - uncalibrated, n_cal < _FEW_ROWS
    return {
        "harmed": ((more > _HARM_SHARE * uncalibrated) & (more > _HARM_NATS)).mean(),
        "worst_harm": more.max(initial=0.0),
        "worst_harm_below_250_rows": more.max(initial=0.0, where=few),
        "worst_harm_from_250_rows": more.max(initial=0.0, where=~few),
    }


_COLUMNS = {
    "log-loss": ("log_loss", "{:.4f}"),
    "ratio": ("log_loss_ratio", "{:.3f}"),
    "Brier": ("brier", "{:.4f}"),
    "top-label": ("top_label_error", "{:.4f}"),
    "marginal": ("marginal_error", "{:.4f}"),
    "win rate": ("win_rate_log_loss", "{:.3f}"),
    "win rate (Brier)": ("win_rate_brier", "{:.3f}"),
    "harmed": ("harmed", "{:.1%}"),
    "worst below 250": ("worst_harm_below_250_rows", "{:.3f}"),
    "worst from 250": ("worst_harm_from_250_rows", "{:.3f}"),
    "seconds": ("seconds", "{:.1f}"),
    "failed": ("failed", "{:.0f}"),
}
_SHOWN = ("log-loss", "ratio", "Brier", "win rate", "harmed")
_FOLDED = (
    ("top-label", "marginal", "win rate (Brier)", "worst below 250", "worst from 250"),
    ("wins", "wins (Brier)"),
)


def print_summary(kind, results, summary, out, *, markdown=False):
    """Print the table of one kind, the best win rate first; as Markdown three narrow
    tables, two of them folded.
    """
    names = sorted(summary, key=lambda name: -summary[name]["win_rate_log_loss"])
    table = {name: _cells(summary[name], name == names[0]) for name in names}
    n_sets = len({result["name"].split("/")[0] for result in results})
    print(
        f"\n{'## ' if markdown else ''}{_TITLES[kind]}, {len(results)} experiments on"
        f" {n_sets} data sets\n",
        file=out,
    )
    if markdown:
        print(_markdown(table, _SHOWN), file=out)
        for title, columns in zip(
            ("errors and harm", f"how often {names[0]} wins"), _FOLDED, strict=True
        ):
            folded = _markdown(table, columns)
            print(
                f"\n<details><summary>{_TITLES[kind]}:"
                f" {title}</summary>\n\n{folded}\n\n</details>",
                file=out,
            )
        return
    lines = [
        ["method", *table[names[0]]],
        *([name, *row.values()] for name, row in table.items()),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        print(
            first.ljust(widths[0]),
            *(text.rjust(w) for text, w in zip(others, widths[1:], strict=True)),
            file=out,
        )


def _cells(row, is_first):
    cells = {
        name: text.format(row[key]).replace("%", " %")
        for name, (key, text) in _COLUMNS.items()
    }
    for score, column in zip(_PROPER, _FOLDED[1], strict=True):
        cells[column] = (
            ""
            if is_first
            else "{:.2f} ({:.2f} to {:.2f})".format(*row[f"head_to_head_{score}"])
        )
    return cells


def _markdown(table, columns):
    lines = [f"| method | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | {' | '.join(row[column] for column in columns)} |"
        for name, row in table.items()
    ]
    return "\n".join(lines)


def _plain(value):
    return [float(item) for item in value] if isinstance(value, list) else float(value)
