"""Exception groups and `except*`, causes and contexts."""

import aotdyn
from tests.record.programs import Programs, note

program = Programs()


@program()
def p_exgroup(x):
    try:
        raise ExceptionGroup("g", [ValueError("a"), TypeError("b"), KeyError("c")])
    except* ValueError as g:
        r = [str(e) for e in g.exceptions]
    except* (TypeError, KeyError) as g:
        r2 = (type(g), g.message, len(g.exceptions))
    return r, r2, x


@program()
def p_exgroup_rest(x):
    log = []
    try:
        try:
            raise ExceptionGroup("g", [ValueError("a"), TypeError("b")])
        except* ValueError as g:
            log.append(repr(g))
        finally:
            log.append("f")
    except ExceptionGroup as g:
        return log, repr(g), x


@program()
def p_exgroup_naked2(x):
    r = None
    try:
        raise ValueError("n")
    except* ValueError as g:
        r = repr(g)
    return r, x


@program()
def p_exgroup_none(x):
    r = 0
    try:
        r = 1
    except* ValueError:
        r = 2
    else:
        r += 10
    return r, x


@program()
def p_exgroup_raise(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError("a"), TypeError("b")])
        except* ValueError as g:
            raise KeyError("new")
    except ExceptionGroup as g:
        return repr(g), x


@program()
def p_exgroup_api(x):
    g = ExceptionGroup("m", [ValueError("a"), ExceptionGroup("n", [TypeError("b")])])
    return (
        g.message,
        len(g.exceptions),
        repr(g.subgroup(TypeError)),
        [repr(p) for p in g.split(ValueError)],
        repr(g.derive([KeyError()])),
        str(g),
        x,
    )


@program()
def p_exgroup_nested(x):
    r = []
    try:
        raise ExceptionGroup(
            "m", [ValueError("a"), ExceptionGroup("n", [TypeError("b"), ValueError("c")])]
        )
    except* TypeError as g:
        r.append(repr(g))
    except* ValueError as g:
        r.append(repr(g))
    return r, x


@program(breaks=None)
def p_eg_break(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError("a"), TypeError("b"), KeyError("k")])
    except* ValueError as g:
        note(log, repr(g))
        x = x + 1
    except* TypeError as g:
        x = x * 2
        note(log, repr(g))
    except* KeyError:
        pass
    return log, x


@program()
def p_eg_reraise(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError("a"), TypeError("b"), KeyError("k")])
        except* ValueError as g:
            raise
        except* TypeError as g:
            raise OSError("x") from g
    except BaseException as e:
        return repr(e), e.message, repr(e.exceptions), x


@program()
def p_eg_errors(x):
    r = []
    for a in (
        ("m", []),
        ("m", [1]),
        (1, [ValueError()]),
        ("m", 3),
        ("m",),
        ("m", [KeyboardInterrupt()]),
    ):
        try:
            ExceptionGroup(*a)
        except Exception as e:
            r.append((type(e), str(e)))
    return (
        r,
        type(BaseExceptionGroup("m", [ValueError()])),
        type(BaseExceptionGroup("m", [KeyboardInterrupt()])),
        x,
    )


class MyEG(ExceptionGroup):
    def derive(self, excs):
        return MyEG("d" + self.message, excs)


@program()
def p_eg_sub(x):
    try:
        raise MyEG("m", [ValueError(1), TypeError(2)])
    except* ValueError as g:
        r = (type(g), g.message)
    except* TypeError as g:
        r2 = (type(g), g.message)
    return r, r2, x


@program()
def p_eg_notes(x):
    g = ExceptionGroup("m", [ValueError(1), TypeError(2)])
    g.add_note("n")
    a, b = g.split(ValueError)
    return a.__notes__, b.__notes__, a.__notes__ is b.__notes__, x


@program()
def p_eg_catch_eg(x):
    try:
        try:
            raise ExceptionGroup("m", [ValueError(1)])
        except* ExceptionGroup:
            pass
    except TypeError as e:
        return str(e), x


@program()
def p_eg_pred(x):
    g = ExceptionGroup("m", [ValueError(1), ValueError(2)])
    return (
        repr(g.subgroup(lambda e: e.args == (2,))),
        g.subgroup(KeyError),
        [repr(v) for v in g.split(lambda e: isinstance(e, ValueError))],
        x,
    )


@program()
def p_eg_finally(x):
    r = []
    for k in (ValueError, TypeError, None):
        try:
            if k:
                raise k("q")
        except* ValueError as g:
            r.append(("v", repr(g)))
        except* TypeError:
            r.append("t")
        else:
            r.append("else")
        finally:
            r.append("fin")
    return r, x


@program()
def p_eg_unmatched(x):
    try:
        try:
            raise ExceptionGroup(
                "m", [ValueError(1), ExceptionGroup("n", [TypeError(2), OSError(3)])]
            )
        except* TypeError:
            x = x + 1
    except ExceptionGroup as g:
        return repr(g), x


@program()
def p_suppress(x):
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise KeyError(2) from None
    except KeyError as e:
        return e.__suppress_context__, e.__cause__, repr(e.__context__), x


@program(breaks=None)
def p_suppress_kept(x):
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise KeyError(2) from None
    except KeyError as e:
        k = e
    log = []
    note(log, 1)
    return k.__suppress_context__, repr(k.__context__), x


@program()
def p_parts_are_readonly(x):
    group = ExceptionGroup("a", [ValueError(1)])
    found = []
    for name in ("message", "exceptions"):
        try:
            setattr(group, name, 3)
        except AttributeError as error:
            found.append(str(error))
    return x + 1, found


@program(breaks=None)
def p_a_group_of_a_list_that_changes(x):
    errors = [ValueError(1), ValueError(2)]
    group = ExceptionGroup("m", errors)
    errors.append(ValueError(3))
    del errors[0]
    aotdyn.graph_break()
    return [str(each) for each in group.exceptions], group.args[1] is errors, str(group), x


@program(breaks=None)
def p_a_group_of_what_was_caught(x):
    def fails(count):
        errors = []
        for number in range(count):
            try:
                raise ValueError(number)
            except ValueError as error:
                errors.append(error)
        raise ExceptionGroup("m", errors)

    try:
        fails(3)
    except ExceptionGroup as error:
        group = error
    aotdyn.graph_break()
    return [str(each) for each in group.exceptions], len(group.args[1]), x


test_agrees = program.test()
