"""Limits of what scores and weights may be."""

# By the type of the scores: how far a probability or a row sum may be off by rounding
# before it is refused, and up to which distance it is left unchanged.
ROUNDING = {
    "bfloat16": (5e-2, 5e-3),
    "float16": (1e-2, 1e-3),
    "float32": (1e-3, 1e-6),
    "float64": (1e-6, 1e-12),
}

# Larger logits, and weights that are larger or (the largest of them) smaller than the
# inverse, are refused: their squares and sums would leave the range of float64.
MAX_MAGNITUDE = 1e100
