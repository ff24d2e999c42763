"""Exception groups: taking them apart, and what an `except*` statement raises in the end."""


def subgroup(group, condition):
    return _part(group, _matcher(condition))


def split(group, condition):
    return _split(group, _matcher(condition))


def derive(group, errors):
    return BaseExceptionGroup(group.message, errors)


def match(error, kinds):
    """[matched, rest] of what an `except*` clause looks at; a bare exception becomes a group."""
    if isinstance(error, BaseExceptionGroup):
        return _split(error, _matcher(kinds))
    if isinstance(error, kinds):
        return ExceptionGroup("", (error,)), None
    return None, error


def prepare_reraise(group, errors):
    """What is raised after all clauses: errors holds what each of them raised, or None, and what
    no clause has matched."""
    if not errors:
        return None
    if not isinstance(group, BaseExceptionGroup):
        return errors[0]
    raised = []
    kept = []
    for error in errors:
        if error is None:
            continue
        if _is_part(error, group):
            _collect_leaves(error, kept)
        else:
            raised.append(error)
    again = _part(group, lambda error: any([error is each for each in kept])) if kept else None
    if not raised:
        return again
    if again is not None:
        raised.append(again)
    return ExceptionGroup("", raised)


def _matcher(condition):
    if isinstance(condition, (type, tuple)):
        return lambda error: isinstance(error, condition)
    if not callable(condition):
        raise TypeError("expected a function, exception type or tuple of exception types")
    return condition


def _part(error, matches):
    if matches(error):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    found = [_part(each, matches) for each in error.exceptions]
    return _like(error, [each for each in found if each is not None])


def _split(error, matches):
    if matches(error):
        return error, None
    if not isinstance(error, BaseExceptionGroup):
        return None, error
    matched = []
    rest = []
    for each in error.exceptions:
        yes, no = _split(each, matches)
        if yes is not None:
            matched.append(yes)
        if no is not None:
            rest.append(no)
    return _like(error, matched), _like(error, rest)


def _like(group, errors):
    """A group of some of the exceptions of another one, which comes from the same place."""
    if not errors:
        return None
    made = group.derive(errors)
    made.__context__ = group.__context__
    made.__cause__ = group.__cause__
    notes = getattr(group, "__notes__", None)
    if notes is not None:
        made.__notes__ = list(notes)
    return made


def _is_part(error, group):
    """Whether a group was split off from another one; what a clause has raised comes from it."""
    return (
        isinstance(error, BaseExceptionGroup)
        and error.__context__ is group.__context__
        and error.__cause__ is group.__cause__
        and getattr(error, "__notes__", None) == getattr(group, "__notes__", None)
    )


def _collect_leaves(error, found):
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            _collect_leaves(each, found)
    else:
        found.append(error)
