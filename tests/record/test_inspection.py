"""`inspect`: predicates, signatures and their parameters, wrappers."""

import functools
import inspect

import torch

from tests.record.programs import Programs, note

program = Programs()


def helper(a, b=2, *c, d=3, **e):
    return a


def annotated(a: int, b: "str" = "x", /, *, c: float = 1.0) -> list:
    return [a, b, c]


@functools.wraps(annotated)
def wrapper(*args, **kwargs):
    return annotated(*args, **kwargs)


def generator():
    yield 1


async def coroutine():
    pass


class Thing:
    attribute = 1

    def method(self, a=1):
        return a

    @staticmethod
    def static():
        return 2

    @classmethod
    def of_class(cls, a):
        return 3

    @property
    def prop(self):
        return 4

    def __call__(self, q):
        return q


class Net(torch.nn.Module):
    def forward(self, a, mask=None):
        return a


THING, NET = Thing(), Net()


@program()
def p_predicates(x):
    subjects = [helper, THING.method, Thing, len, torch, generator, coroutine, THING, 3, x]
    subjects.append(str.join)
    found = []
    for test in (inspect.isfunction, inspect.ismethod, inspect.isclass, inspect.isbuiltin,
                 inspect.ismodule, inspect.isgeneratorfunction, inspect.iscoroutinefunction,
                 inspect.isroutine, inspect.ismethoddescriptor, inspect.isabstract,
                 inspect.isawaitable):  # fmt: skip
        found.append([test(subject) for subject in subjects])
    return found, x + 1


@program()
def p_predicates_of_what_the_frame_makes(x):
    def f(a):
        return a

    def g():
        yield x

    class A:
        def m(self):
            return 1

    return (
        inspect.isfunction(f), inspect.isfunction(lambda: 0), inspect.ismethod(A().m),
        inspect.isgeneratorfunction(g), inspect.isgeneratorfunction(f), inspect.isgenerator(g()),
        inspect.isclass(A), f.__code__.co_argcount, inspect.isfunction(A.m), x,
    )  # fmt: skip


@program()
def p_parameters(x):
    s = inspect.signature(helper)
    kinds = [(p.name, p.kind.name, p.default is p.empty) for p in s.parameters.values()]
    return kinds, list(s.parameters), "a" in s.parameters, s.parameters["b"].default, x


@program()
def p_kinds(x):
    s = inspect.signature(helper)
    given = [p for p in s.parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]
    late = [n for n, p in s.parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    some = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in s.parameters.values())
    return [p.name for p in given], late, some, len(s.parameters), x


@program()
def p_bind(x):
    bound = inspect.signature(helper).bind(1, 2, 3, d=x)
    bound.apply_defaults()
    return dict(bound.arguments), bound.args, bound.kwargs, helper(*bound.args, **bound.kwargs), x


@program()
def p_bind_partial(x):
    bound = inspect.signature(annotated).bind_partial(x)
    before = list(bound.arguments)
    bound.apply_defaults()
    return before, bound.args, bound.kwargs


@program()
def p_bind_refuses(x):
    try:
        inspect.signature(annotated).bind(1, 2, 3)
    except TypeError as e:
        return str(e), x


@program()
def p_annotations(x):
    s = inspect.signature(annotated)
    noted = {name: p.annotation for name, p in s.parameters.items()}
    return noted, s.return_annotation, inspect.signature(helper).return_annotation is s.empty, x


@program()
def p_of_methods(x):
    return (
        list(inspect.signature(Thing.method).parameters),
        list(inspect.signature(THING.method).parameters),
        list(inspect.signature(Thing.of_class).parameters),
        list(inspect.signature(Thing.static).parameters),
        list(inspect.signature(THING).parameters),
        x,
    )


@program()
def p_of_a_module(x):
    kept = set(inspect.signature(NET.forward).parameters.keys())
    return "mask" in kept, "mask" in inspect.signature(Net.forward).parameters, NET(x)


@program()
def p_of_a_wrapper(x):
    return list(inspect.signature(wrapper).parameters), inspect.unwrap(wrapper) is annotated, x


@program()
def p_of_what_the_frame_makes(x):
    def f(a, b=x, *, c: int = 3):
        return a

    s = inspect.signature(f)
    return list(s.parameters), s.parameters["b"].default is x, s.parameters["c"].annotation, x


@program()
def p_of_a_partial(x):
    s = inspect.signature(functools.partial(helper, 1, d=x))
    return list(s.parameters), s.parameters["d"].default is x


@program()
def p_argspec(x):
    spec = inspect.getfullargspec(helper)
    return spec.args, spec.varargs, spec.varkw, spec.defaults, spec.kwonlydefaults, x


@program()
def p_mro(x):
    return inspect.getmro(Thing), x


@program()
def p_unwrap_made(x):
    @functools.wraps(helper)
    def made(*args):
        return helper(*args)

    stopped = inspect.unwrap(made, stop=lambda f: f is made)
    return inspect.unwrap(made) is helper, stopped is made, x


@program(breaks=1)
def p_signature_across_a_break(x):
    log = []
    s = inspect.signature(helper)
    note(log, 1)
    return [p.name for p in s.parameters.values()], log, x


@program((torch.ones(2), helper), (torch.ones(2), annotated))
def p_of_an_argument(x, f):
    return [p.default for p in inspect.signature(f).parameters.values()], x


@program()
def p_signature_of_a_closure(x):
    def inner(a, b=x, *c):
        return x

    found = inspect.signature(inner)
    return list(found.parameters), found.parameters["b"].default is x


@program(breaks=None)
def p_descriptors_of_c(x):
    kinds = []
    for cls in (int, dict, object, BaseException, type):
        kinds += [(name, type(held).__name__) for name, held in cls.__dict__.items()]
    method = vars(int)["from_bytes"]
    return len(kinds) > 100, method.__get__(None, int)(b"a", "big"), int.from_bytes(b"ab", "big"), x


test_agrees = program.test()


def test_a_changed_default_is_seen(agree):
    def f(a=1):
        return a

    def program(x, value):
        f.__defaults__ = (value,)
        return x * inspect.signature(f).parameters["a"].default

    agree(program, (torch.ones(2), 2), (torch.ones(2), 3), package=False)
