"""Functions of `inspect` that ask C for more than a trace needs."""


def unwrap(func, *, stop=None):
    """What the innermost of a chain of wrappers wraps."""
    seen = [func]
    while hasattr(func, "__wrapped__") and not (stop is not None and stop(func)):
        func = func.__wrapped__
        if any([func is each for each in seen]):
            raise ValueError(f"wrapper loop when unwrapping {seen[0]!r}")
        seen.append(func)
    return func
