"""`warnings` and `logging`: what is told is told in order, from the line that it comes from, and as
often as in plain Python, without a break in the graph."""

import functools
import logging
import warnings

import pytest
import torch

import aotdyn
from tests.record.programs import note

LOG = logging.getLogger("aotdyn.tests.messages")
X = torch.arange(3.0) + 1


class Keeper(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def emit(self, record):
        where = (record.pathname, record.lineno, record.funcName, record.levelname)
        self.kept.append((record.getMessage(), *where))


@pytest.fixture
def told():
    """told(function, x): what a call gives, and what it tells by logs and by warnings."""
    keeper = Keeper()
    LOG.addHandler(keeper)
    LOG.setLevel(logging.INFO)

    def run(function, x=X):
        keeper.kept.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(x)
        shown = [(str(w.message), w.category, w.filename, w.lineno) for w in caught]
        return result.tolist(), list(keeper.kept), shown

    yield run
    LOG.removeHandler(keeper)
    LOG.setLevel(logging.NOTSET)


def warns(x):
    warnings.warn("plain")
    warnings.warn(f"sizes {x.shape[0]}", FutureWarning)
    warnings.warn(UserWarning("an object"))
    warnings.warn(
        "on several "
        "lines", DeprecationWarning, stacklevel=1,
    )  # fmt: skip
    return x + 1


def helped(x):
    LOG.info("helper %d of %s", 3, "many")
    warnings.warn("of the caller", stacklevel=2)
    return x * 2


def warns_of_callers(x):
    y = helped(x)

    def inner(y):
        warnings.warn("two up", stacklevel=2)
        return helped(y)

    return inner(y) + helped(y)


def logs(x):
    LOG.debug("unseen")
    LOG.info("seen")
    LOG.log(logging.WARNING, "a tuple %s", (1, 2))
    LOG.error("sizes %s", x.shape[0])
    LOG.warning("of the caller", stacklevel=1)
    return x + 1


def numbered(count):
    for index in range(count):
        LOG.info("item %d", index)
        yield index


def tells_in_order(x):
    for index in numbered(2):
        x = x + index
        warnings.warn(f"turn {index}")
    [LOG.info("comprehension") for _ in range(2)]
    sorted([2, 1], key=lambda value: LOG.info("key") or value)
    return x


class Layer(torch.nn.Module):
    def forward(self, x):
        warnings.warn("layer")
        LOG.info("layer")
        return x * 2


LAYER = Layer()


def of_modules(x):
    return LAYER(LAYER(x))


@functools.lru_cache
def once(text):
    LOG.warning(text)


def logs_once(x):
    once("the first time")
    return x + 1


ENDED = (warns, warns_of_callers, logs, tells_in_order, of_modules)


@pytest.mark.parametrize("program", ENDED)
def test_told_as_in_python(told, program):
    expected = told(program)
    traced = aotdyn.compile(program, backend="eager", fullgraph=True)
    for _ in range(3):
        assert told(traced) == expected


@pytest.mark.parametrize("program", ENDED)
def test_told_from_packages(told, program, tmp_path):
    expected = told(program)
    with aotdyn.record(tmp_path / "it.rec"):
        aotdyn.compile(program, backend="eager")(X)
    aotdyn.pack([tmp_path / "it.rec"], tmp_path / "it.pkg")
    with aotdyn.load(tmp_path / "it.pkg", on_miss="error"):
        assert told(aotdyn.compile(program, backend="eager")) == expected


def caller_of(program):
    return lambda x: program(x + 1)


def warns_above(x):
    warnings.warn("of who has called", stacklevel=2)
    return helped(x)


def test_told_of_who_has_called(told):
    traced = aotdyn.compile(warns_above, backend="eager", fullgraph=True)
    for _ in range(2):
        assert told(caller_of(traced)) == told(caller_of(warns_above))


def tells_and_breaks(x):
    LOG.info("before")
    y = helped(x)
    note([], 1)
    warnings.warn("after", stacklevel=1)
    LOG.info("after")
    return y


def logs_what_changes(x):
    values = [1]
    LOG.info("values %s", values)
    values.append(2)
    LOG.info("tensor %s", x)
    return x.add_(1)


def logs_exceptions(x):
    try:
        raise ValueError("it")
    except ValueError:
        LOG.exception("caught")
    LOG.info("with %s", "stack", stack_info=True)
    return x + 1


class Up(torch.nn.Module):
    def forward(self, x):
        warnings.warn("from torch's file", stacklevel=2)
        return x + 1


UP = Up()


def from_above_a_module(x):
    return UP(x * 2)


@pytest.mark.parametrize(
    "program", [tells_and_breaks, logs_what_changes, logs_exceptions, from_above_a_module]
)
def test_told_around_breaks(told, program):
    expected = told(program, X.clone())
    traced = aotdyn.compile(program, backend="eager")
    for _ in range(3):
        assert told(traced, X.clone()) == expected


def catches(x):
    try:
        warnings.warn("raised")
    except UserWarning:
        return x * 100
    return x + 1


def test_filters_that_raise():
    traced = aotdyn.compile(catches, backend="eager")
    for action in ("ignore", "error", "always", "error"):
        with warnings.catch_warnings(record=True):
            warnings.simplefilter(action)
            assert torch.equal(traced(X), catches(X))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        warnings.filterwarnings("error", module="no.such")
        assert torch.equal(traced(X), X + 1)


@pytest.mark.parametrize("action", ["default", "once", "ignore", "always", "module"])
def test_shown_as_often_as_in_python(action):
    def shown(warn):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            for _ in range(3):
                warn(X)
        return len(caught)

    def warn(x):
        warnings.warn("again and again")
        return x + 1

    assert shown(aotdyn.compile(warn, backend="eager")) == shown(warn)


def test_a_logger_once(told):
    traced = aotdyn.compile(logs_once, backend="eager")
    assert [len(told(traced)[1]) for _ in range(3)] == [1, 0, 0]


def test_levels_are_asked_again(told):
    traced = aotdyn.compile(logs, backend="eager")
    assert [text for text, *_ in told(traced)[1]][:1] == ["seen"]
    LOG.setLevel(logging.ERROR)
    assert told(traced) == told(logs)


class Loud(logging.Logger):
    """A logger that makes something else of its records."""

    def makeRecord(self, *args, **kwargs):
        record = super().makeRecord(*args, **kwargs)
        record.msg = record.msg.upper()
        return record


LOUD = Loud("aotdyn.tests.loud", logging.INFO)


def test_loggers_of_other_classes():
    keeper = Keeper()
    LOUD.addHandler(keeper)

    def logs(x):
        LOUD.info("quiet")
        return x + 1

    traced = aotdyn.compile(logs, backend="eager")
    for function in (logs, traced, traced):
        function(X)
    assert len(keeper.kept) == 3 and len(set(keeper.kept)) == 1


# -- the program looks at what it has told ----------------------------------------------------

KEEPER = Keeper()
KEPT = KEEPER.kept
OWN = logging.getLogger("aotdyn.tests.messages.own")
OWN.addHandler(KEEPER)
OWN.propagate = False


def counts_warnings(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("one")
        first = len(caught)
        warnings.warn("two")
    return x, first, [str(each.message) for each in caught]


def counts_records(x):
    KEEPER.kept.clear()
    OWN.warning("one")
    first = len(KEEPER.kept)
    OWN.error("two")
    return x, first, len(KEPT)


def shows_warnings_itself(x):
    shown, before = [], warnings.showwarning
    warnings.showwarning = lambda message, *more: shown.append(str(message))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("one")
            shown.append("told")
    finally:
        warnings.showwarning = before
    return x, shown


@pytest.mark.parametrize(
    "function", [counts_warnings, counts_records, shows_warnings_itself]
)
def test_what_was_told_is_there(agree, function):
    agree(function, (X,), (X,))
