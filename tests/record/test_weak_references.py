"""Weak references that came in, and what lets go of what they refer to."""

import gc
import weakref

import pytest
import torch

from tests.record.programs import note


class Part:
    def __init__(self, value=1):
        self.value = value


class Slotted:
    __slots__ = ("part",)


class Whole:
    """Holds each of its parts once, and refers to them weakly besides."""

    def __init__(self):
        self.part, self.items, self.named = Part(), [Part()], {"a": Part()}
        self.slotted, self.slotted.part = Slotted(), Part()
        self.of_part = weakref.ref(self.part)
        self.of_item = weakref.ref(self.items[0])
        self.of_named = weakref.ref(self.named["a"])
        self.of_slotted = weakref.ref(self.slotted.part)
        self.count = 0

    def __deepcopy__(self, memo):
        # The helper gives each run a whole of its own.
        return Whole()


def w_read(whole):
    return whole.of_part().value, whole.of_item() is whole.items[0], bool(whole.of_named)


def w_counted(whole):
    whole.count += 1
    whole.more = 3
    whole.items.append(2)
    whole.named["b"] = whole.count
    return whole.of_part().value, whole.of_item() is None, whole.count


@pytest.mark.parametrize("function", [w_read, w_counted])
def test_referents_are_traced(agree, function):
    agree(function, (Whole(),), (Whole(),), breaks=0)


def w_deleted(whole):
    del whole.part
    return whole.of_part() is None


def w_replaced(whole):
    whole.part = None
    return whole.of_part() is None


def w_cleared(whole):
    whole.items.clear()
    return whole.of_item() is None


def w_item_replaced(whole):
    whole.items[0] = 2
    return whole.of_item() is None, whole.of_part() is whole.part


def w_popped(whole):
    whole.named.pop("a")
    return whole.of_named() is None


def w_popped_onto_the_stack(whole):
    log = []
    whole.named.pop(note(log, "a"))
    return whole.of_named() is None, note(log, whole.named.pop(note(log, "b"), None)) is None


def w_value_replaced(whole):
    whole.named["a"] = Part(5)
    return whole.of_named() is None


def w_slot_replaced(whole):
    whole.slotted.part = 1
    return whole.of_slotted() is None


def w_kept_elsewhere(whole):
    kept = whole.part
    whole.part = None
    return whole.of_part() is kept


GONE = weakref.proxy(Part(1))


def w_proxy_of_what_is_gone(whole):
    try:
        return GONE.value
    except ReferenceError as error:
        return str(error)


def w_proxy_of_a_deleted_variable(whole):
    part = Part(1)
    proxy = weakref.proxy(part)
    del part
    try:
        return proxy.value
    except ReferenceError as error:
        return str(error)


class Equal:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)


def weak_values():
    objects = [Equal(value) for value in range(4)]
    named = weakref.WeakValueDictionary({each.value: each for each in objects})
    return named, objects


def w_values_live_as_long_as_the_frame(whole):
    named, objects = weak_values()
    left = list(objects)
    for reference in named.itervaluerefs():
        found = reference()
        assert found == named[found.value]
        left.remove(found)
    return len(left), len(named)


@pytest.mark.parametrize(
    "function",
    [w_deleted, w_replaced, w_cleared, w_item_replaced, w_popped, w_popped_onto_the_stack,
     w_value_replaced, w_slot_replaced, w_kept_elsewhere, w_proxy_of_what_is_gone,
     w_proxy_of_a_deleted_variable, w_values_live_as_long_as_the_frame],
)  # fmt: skip
def test_what_is_let_go_is_gone(agree, function):
    agree(function, (Whole(),), (Whole(),))


# -- weak references that the frame makes ------------------------------------------------------


class Node:
    def __init__(self, parent=None):
        self.parent = None if parent is None else weakref.ref(parent)
        self.children = []

    def add(self):
        child = Node(self)
        self.children.append(child)
        return child


def w_made_and_kept(x):
    part = Part()
    reference = weakref.ref(part)
    return part, reference, weakref.ref(part) is reference, reference is None, bool(reference), x


def w_made_by_objects(x):
    node = Node()
    child = node.add()
    return node, len(node.children), child.parent is not None, x * 2


def w_held_by_nobody(x):
    node = Node()
    return node.add().add(), x


def w_given_a_dictionary_of_weak_keys(x):
    held = weakref.WeakKeyDictionary()
    return held, len(held), x


@pytest.mark.parametrize(
    "function", [w_made_and_kept, w_made_by_objects, w_held_by_nobody,
                 w_given_a_dictionary_of_weak_keys],
)  # fmt: skip
def test_what_is_made_is_referred_to(agree, function):
    found = agree(function, (torch.ones(3),), breaks=0)
    held = found.outcomes[0].result[0]
    assert not isinstance(held, Node) or held.parent is None or held.parent() is None


def w_gone_at_once(x):
    return weakref.ref(Part())() is None, x


def w_gone_later(x):
    part = Part()
    reference = weakref.ref(part)
    before = reference() is part
    part = None
    return before, reference() is None, x


def w_asked_through_an_object(x):
    node = Node()
    child = node.add()
    return child.parent() is node, x


def w_table_of_weak_keys(x):
    held, part = weakref.WeakKeyDictionary(), Part()
    held[part] = x
    return held[part], len(held), part in held


def collect_all():
    gc.collect()


def w_gone_as_garbage(x):
    part = Part(x)
    part.own = slice(part)
    reference = weakref.ref(part)
    part = None
    collect_all()
    return reference() is None, x


@pytest.mark.parametrize(
    "function",
    [w_gone_at_once, w_gone_later, w_asked_through_an_object, w_table_of_weak_keys,
     w_gone_as_garbage],
)  # fmt: skip
def test_what_is_made_is_gone_when_it_is_let_go(agree, function):
    agree(function, (torch.ones(3),))


# -- tables of what is referred to weakly ------------------------------------------------------


class Tables:
    def __init__(self):
        self.parts = [Part(1), Part(2), Equal(3)]
        self.values = weakref.WeakValueDictionary(enumerate(self.parts))
        self.keys = weakref.WeakKeyDictionary({part: part.value for part in self.parts})
        self.members = weakref.WeakSet(self.parts)

    def __deepcopy__(self, memo):
        return Tables()

    def __eq__(self, other):
        return [part.value for part in self.parts] == [part.value for part in other.parts]


def t_read(tables):
    first = tables.parts[0]
    values = tables.values[0] is first, len(tables.values), 7 in tables.values, tables.values.get(9)
    keys = tables.keys[first], tables.keys[Equal(3)], Part() in tables.keys, len(tables.keys)
    return values, keys, [*tables.values], sorted(each.value for each in tables.keys)


def t_members(tables):
    members = tables.parts[0] in tables.members, Part() in tables.members
    return members, len(tables.members), sorted(tables.keys[each] for each in tables.members)


def t_gone(tables):
    counts = [len(tables.keys)]
    tables.parts.pop(0)
    counts += [len(tables.keys), len(tables.values), len(tables.members)]
    first = tables.parts[0]
    tables.parts.remove(first)
    counts += [len(tables.keys), first in tables.keys, len(tables.members)]
    first = None
    return counts, len(tables.keys), [each.value for each in tables.members]


def t_changed(tables):
    new = Part(5)
    tables.keys[new] = 9
    tables.members.add(new)
    del tables.keys[tables.parts[0]]
    tables.members.discard(tables.parts[1])
    return tables.keys[new], len(tables.keys), len(tables.members), new in tables.members


def t_broken_in_a_loop(tables):
    found = []
    for each in tables.members:
        gc.isenabled()
        found.append(each.value)
    for each, value in tables.keys.items():
        gc.isenabled()
        found.append((each.value, value))
    return sorted(map(str, found)), len(tables.members._iterating), len(tables.keys._iterating)


@pytest.mark.parametrize(
    ("function", "breaks"), [(t_read, 0), (t_members, None), (t_gone, None), (t_changed, None),
                             (t_broken_in_a_loop, None)],
)  # fmt: skip
def test_tables_of_weak_references(agree, function, breaks):
    # The order of a set of such is another one each time.
    def program(tables, x):
        return function(tables), x * 2

    agree(program, (Tables(), torch.ones(3)), (Tables(), torch.ones(3)), breaks=breaks,
          package=function is t_gone)  # fmt: skip
