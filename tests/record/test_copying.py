"""`copy.copy` and `copy.deepcopy`: containers, objects, slots, tensors."""

import collections
import copy
import dataclasses
import enum
import types
import typing

import pytest
import torch

from tests.record.programs import Programs, note

program = Programs()


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b=None):
        self.a = a
        if b is not None:
            self.b = b


class SlottedAndMore(Slotted):
    def __init__(self, a):
        super().__init__(a)
        self.more = a


@dataclasses.dataclass
class Custom:
    a: object
    b: list = dataclasses.field(default_factory=list)

    def __deepcopy__(self, memo):
        return Custom(copy.deepcopy(self.a, memo), [9])


class Reduced:
    def __init__(self, a):
        self.a = a

    def __reduce__(self):
        return Reduced, (self.a,), {"b": [self.a]}


class Stateful:
    def __init__(self, a):
        self.a, self.cache = a, object()

    def __getstate__(self):
        return {"a": self.a}

    def __setstate__(self, state):
        self.__dict__.update(state, cache=None)


class Field(typing.NamedTuple):
    a: object
    b: int = 2


class Color(enum.Enum):
    RED = 1


class Listed(list):
    pass


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factors = [2, 3]

    def forward(self, x):
        return x * self.factors[0]


SCALE = Scale()


@program()
def p_tensor(x):
    y = copy.deepcopy(x)
    y.mul_(2)
    return x, y


@program()
def p_shared_tensor(x):
    made = copy.deepcopy([x, [x, 1], x])
    made[0].add_(1)
    return made[0] is made[1][0], made[2] is made[0], made, x


@program()
def p_tensor_made(x):
    y = (x * 2).reshape(3, 1).t()
    return copy.deepcopy(y).contiguous(), y


@program((torch.ones(2, 3), torch.zeros(4)), (torch.zeros(2, 3), torch.ones(4)))
def p_two_tensors(x, y):
    a, b = copy.deepcopy((x, y))
    return a.add_(1), b.add_(1), x, y


def p_views(x):
    a, b = copy.deepcopy([x, x.view(-1)])
    a.add_(1)
    return b, x


def p_part(x):
    y = copy.deepcopy(x[1:])
    return y.untyped_storage().nbytes() > 8, y + 1


@pytest.mark.parametrize("function", [p_views, p_part])
def test_copies_of_other_tensors_break(agree, function):
    assert agree(function, (torch.ones(2, 3),)).breaks


def test_tensors_that_share_memory_later_are_copied_together(agree):
    def program(x, y):
        a, b = copy.deepcopy((x, y))
        a.add_(1)
        return b

    # The helper copies the arguments of a call together: they still share memory.
    whole = torch.zeros(4)
    found = agree(program, (torch.zeros(4), torch.ones(4)), (whole, whole.view(4)))
    assert len(found.variants) >= 2


@program()
def p_dict(x):
    d = {"a": x, "b": [1, 2], "c": (1, x), "d": {3}}
    made = copy.deepcopy(d)
    made["b"].append(3)
    made["d"].add(4)
    return made, d, made["c"] is d["c"]


@program((torch.ones(3), [[1, 2], torch.ones(2)]))
def p_argument(x, given):
    made = copy.deepcopy(given)
    made[0].append(5)
    return made, x, given


@program()
def p_contains_itself(x):
    a = [x]
    a.append(a)
    made = copy.deepcopy(a)
    return made[1] is made, made[0]


@program()
def p_slots(x):
    s = Slotted(x, [1])
    made, shallow = copy.deepcopy(s), copy.copy(s)
    made.b.append(2)
    return made.a, made.b, s.b, shallow.b is s.b, shallow.a is x


@program()
def p_unset_slot(x):
    made = copy.copy(Slotted(x))
    more = copy.deepcopy(SlottedAndMore(x))
    return hasattr(made, "b"), made.a, more.more, more.a is more.more, hasattr(more, "b")


@program((torch.ones(3), Slotted(1, [2])))
def p_slots_of_argument(x, s):
    made = copy.deepcopy(s)
    made.b.append(x)
    return made.a, made.b, s.b


@program()
def p_deque(x):
    d = collections.deque([x, 1], maxlen=3)
    made, shallow = copy.deepcopy(d), copy.copy(d)
    made.append(3)
    return list(made), list(d), made.maxlen, list(shallow), shallow[0] is x


@program()
def p_sets(x):
    s = {1, 2}
    made = copy.deepcopy(s)
    made.add(3)
    return made, s, copy.copy(s) is s, copy.deepcopy(frozenset({1})), x


@program()
def p_namespace(x):
    o = types.SimpleNamespace(a=x, b=[1])
    made, shallow = copy.deepcopy(o), copy.copy(o)
    made.b.append(1)
    return o.a, o.b, made.b, shallow.b is o.b


@program()
def p_custom(x):
    made = copy.deepcopy(Custom(x, [1]))
    listed = copy.deepcopy([Custom(1)])
    return made.a, made.b, listed[0].b, copy.copy(Custom(3, [1])).b


@program()
def p_reduce(x):
    made = copy.deepcopy(Reduced(x))
    return made.a, made.b[0] is made.a, copy.copy(Reduced(1)).b


@program()
def p_state(x):
    made = copy.deepcopy(Stateful(x))
    return made.a, made.cache, copy.copy(Stateful(x)).a is x


@program()
def p_named_tuples(x):
    made = copy.deepcopy(Field([x]))
    return made, type(made) is Field, copy.copy(Field(x)), made.a[0] is x


@program()
def p_mappings(x):
    ordered = copy.deepcopy(collections.OrderedDict(a=x, b=1))
    lists = copy.deepcopy(collections.defaultdict(list, a=[x]))
    lists["z"].append(1)
    return list(ordered), ordered["a"], dict(lists), copy.copy(collections.Counter("aab"))


@program()
def p_list_subclass(x):
    made = Listed([x, [1]])
    made.tag = [2]
    copied = copy.deepcopy(made)
    copied[1].append(3)
    copied.tag.append(4)
    return list(copied), list(made), copied.tag, made.tag, type(copied) is Listed


@program()
def p_atoms(x):
    atoms = (print, Slotted, p_atoms, torch.float32, Color.RED, None, 1.5, b"x", ..., range(3))
    return [copy.deepcopy(a) is a for a in atoms], torch.device("cpu"), x


@program()
def p_exceptions(x):
    e = ValueError(1, [2])
    made = copy.deepcopy(e)
    made.args[1].append(3)
    return made.args, e.args, type(copy.copy(KeyError("a"))) is KeyError, x


@program()
def p_module(x):
    made = copy.deepcopy(SCALE)
    made.factors[0] = 5
    return made(x), SCALE(x)


@program(breaks=None)
def p_copied_then_break(x):
    log = []
    a, b = copy.deepcopy([[x], {"k": (x, 2)}])
    note(log, len(a))
    return a[0] is b["k"][0], a, log


class StateOfClass(list):
    @classmethod
    def __getstate__(cls):
        return {"a": cls.__name__}


class ArgumentsOfClass(list):
    def __new__(cls, a=0):
        self = super().__new__(cls)
        self.a = a
        return self

    @classmethod
    def __getnewargs__(cls):
        return (7,)


@program(breaks=None)
def p_class_methods_say_how_to_copy(x):
    copies = copy.deepcopy(StateOfClass([1])), copy.copy(ArgumentsOfClass(1))
    return [(list(each), each.a) for each in copies], x


class Text(str):
    pass


@program(breaks=None)
def p_names_of_slots_that_a_class_lists_itself(x):
    class A:
        __slotnames__ = [Text("spam")]

        def __getattr__(self, name):
            if name == "spam":
                A.__slotnames__[:] = [Text("spam")]
                return 42
            raise AttributeError

    return A().__reduce_ex__(2)[2], x


test_agrees = program.test()
