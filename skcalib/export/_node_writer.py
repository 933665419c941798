"""The walk over the nodes of a map that all formats share."""


class NodeWriter:
    """Base of what writes maps: `write` asks the method that is named after a node's class, once for each node."""

    format = None  # as errors name it

    def __init__(self):
        self.written = {}

    def write(self, node):
        """Return what a node is in this format."""
        if id(node) not in self.written:
            write = getattr(self, f"_write_{type(node).__name__}", None)
            if write is None:
                raise TypeError(f"no {self.format} for {type(node).__name__}")
            self.written[id(node)] = write(node), node  # the node is held, so that its id stays its own
        return self.written[id(node)][0]
