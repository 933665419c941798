"""Fitted recalibrators outside Python."""

__all__ = []
