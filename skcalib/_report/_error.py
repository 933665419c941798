"""The error of a report that its user can mend."""


class ReportError(ValueError):
    """What is wrong with the user's file or options, in one line."""

    def __init__(self, message):
        super().__init__(" ".join(str(message).split()))
