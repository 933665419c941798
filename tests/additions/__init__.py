"""A recalibrator, a metric and a display as they would stand in the library.

``tests/test_additions.py`` adds them to a copy by the steps of the how-to pages. They
are those of the pages' examples, with the annotations and the docstrings that public
names have: a start for one of your own.
"""
