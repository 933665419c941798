"""Where the guide is: the one place that has its address."""

SITE = "https://skcalib.github.io/skcalib"


def see(anchor):
    """Return the sentence that ends a message: where its cure is, under an `anchor` of
    the page on troubleshooting.
    """
    return f" See {SITE}/troubleshooting.html#{anchor}"
