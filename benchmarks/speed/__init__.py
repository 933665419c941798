"""Speed and memory of the library against the least work that a job needs and against other libraries."""
