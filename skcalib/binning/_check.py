"""A binning strategy for what a user gave."""

from numbers import Integral

from skcalib.binning._base import BaseBinning
from skcalib.binning._equal_mass import EqualMass
from skcalib.binning._equal_width import EqualWidth


def check_binning(binning, default=None):
    """Return a binning strategy for what a user gave as `binning`.

    Parameters
    ----------
    binning : BaseBinning, int or None
        A strategy, None for the default, or a number of bins.
    default : BaseBinning, optional
        What None stands for; ``EqualMass()`` if not given. A number of bins means equal width if the default is
        `EqualWidth`, else equal mass.

    Returns
    -------
    strategy : BaseBinning
        The strategy.

    Raises
    ------
    TypeError
        If `binning` is something else.

    See Also
    --------
    skcalib.binning.BaseBinning : The base of strategies of your own.
    skcalib.binning.assign_bins : The bin of each score.

    Examples
    --------
    >>> from skcalib.binning import EqualWidth, check_binning
    >>> check_binning(20)
    EqualMass(n_bins=20)
    >>> check_binning(20, EqualWidth())
    EqualWidth(n_bins=20)
    """
    default = EqualMass() if default is None else default
    if binning is None:
        return default
    if isinstance(binning, BaseBinning):
        return binning
    if isinstance(binning, Integral) and not isinstance(binning, bool):
        return (EqualWidth if type(default) is EqualWidth else EqualMass)(int(binning))
    raise TypeError(
        f"binning must be a strategy of skcalib.binning (such as EqualMass(15)), an int or None, found {binning!r}."
    )
