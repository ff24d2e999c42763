"""Every error that aotdyn raises on its own account."""


class AotdynError(Exception):
    """Base of all errors of aotdyn."""


class Unsupported(AotdynError):
    """A frame could not be captured whole although `fullgraph=True` asked for it."""


class PackageError(AotdynError):
    """A recording or package file is damaged, foreign, or does not fit this process."""


class Miss(AotdynError):
    """No recorded variant covers a call, and `on_miss="error"` forbids anything else."""
