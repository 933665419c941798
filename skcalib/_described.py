"""Estimators that say in a sentence what their fit has found."""

import sys
from html import escape

from skcalib._guide import SITE


class DescribedEstimator:
    """Mixin for estimators: once fitted, a sentence is their text, and stands above
    their parameters in a notebook. Their representation stays scikit-learn's.

    A class defines ``_state_sentence()``, which returns the sentence, or an empty text
    before the fit.
    """

    _doc_link_module = "skcalib"
    _doc_link_template = f"{SITE}/_generated/{{public_name}}.html"

    def _doc_link_url_param_generator(self):
        """Return what the address of the page of this class contains."""
        return {"public_name": public_name(type(self))}

    def __str__(self):
        return self._state_sentence() or repr(self)

    def _repr_html_inner(self):
        """Return the HTML of a notebook; scikit-learn calls it if diagrams are on."""
        return self._sentence_html() + super()._repr_html_inner()

    def _repr_mimebundle_(self, **kwargs):
        """Return the forms that a notebook shows, by their types."""
        forms = super()._repr_mimebundle_(**kwargs)
        if "text/html" in forms:
            forms["text/html"] = self._sentence_html() + forms["text/html"]
        return forms

    def _state_sentence(self):
        """Return what the fit has found, an empty text before it."""
        return ""

    def _sentence_html(self):
        """Return the sentence as a paragraph, nothing before the fit."""
        sentence = self._state_sentence()
        if not sentence:
            return ""
        return f"<p><strong>{escape(sentence)}</strong></p>"


def public_name(kind):
    """Return the public import path of a class: the shortest one."""
    name = kind.__name__
    # `skcalib` imports this module, so that it cannot be imported here
    if name in sys.modules["skcalib"].__all__:
        return f"skcalib.{name}"
    module = [part for part in kind.__module__.split(".") if not part.startswith("_")]
    return ".".join((*module, name))
