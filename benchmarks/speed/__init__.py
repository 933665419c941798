"""Speed and memory of the library against the least work that a job needs and against
other libraries.
"""

import os

# Threads that wait for each other on a busy machine count as processor time: a fit then
# seems to take up to six times as long for one shape as for another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
