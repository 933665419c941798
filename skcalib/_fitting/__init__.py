"""What fits share: folds, paths of ridges, learned floors, pooled classes, and where a
fit comes from.
"""
