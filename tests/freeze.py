"""Write the frozen files anew: results, fits and signatures of all public names.

``python tests/freeze.py`` is needed where a name is new, and where a result, a fit or a
signature changes on purpose: the diff of the files then shows what users will see, and
the changelog says why.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import _golden_recalibrators
import _golden_results
import _signatures


def main():
    _golden_results.write()
    _golden_recalibrators.write()
    _signatures.main()


if __name__ == "__main__":
    main()
