"""Iterators that came into a frame, from outside or from before a graph break: what they have left
is traced, and they are advanced as far as the program does it."""

import collections
import itertools
import operator

import pytest
import torch

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.record.programs import Programs, note, outcome_of

X = torch.arange(3.0) + 1

program = Programs()


# -- from outside ------------------------------------------------------------


@program((X, iter([1, 2, 3])), (X, iter([4.5])), (X, iter([])))
def p_a_loop_to_the_end(x, values):
    for value in values:
        x = x * value
    return x, next(values, "empty"), list(values)


@program((X, iter((1, X, "a"))), (X, iter((2, X + 1, "b"))))
def p_some_of_a_tuple(x, values):
    first = next(values)
    second = next(values)
    return x + first + second, values


@program((X, iter(range(5, 50, 7))), (X, iter(range(6, 60, 7))), (X, iter(range(7, 70, 7))))
def p_some_of_a_range(x, values):
    x = x + next(values)
    x = x * next(values)
    return x - next(values), values


@program((X, reversed([1, 2, 3])), (X, reversed([X])))
def p_backwards(x, values):
    for value in values:
        x = x + value
    return x


@program((X, {"a": 1, "b": 2}, []), (X, {"a": 1, "b": 3, "c": 4}, []), (X, {}, []), breaks=None)
def p_items_of_a_dict(x, table, log):
    for name, value in table.items():
        x = x * value
        note(log, name)
        x = x + 1
    for count, name in enumerate(table):
        note(log, name)
        x = x + count + len(name)
    return x, [value + note(log, 0) for value in table.values()]


@program((X, {1, 2, 3}, []), breaks=None)
def p_members_of_a_set(x, members, log):
    for member in members:
        x = x * member
        note(log, member)
    return x


@program((X, {i: i for i in range(100)}, []), breaks=None)
def p_items_of_a_large_dict(x, table, log):
    for name in table:
        x = x + name
        note(log, name)
    return x


@program((X, {"a": 1, "b": 2}, []), breaks=None)
def p_a_dict_that_changes(x, table, log):
    try:
        for name, value in table.items():
            x = x * value
            note(log, (name, value))
            table["b"] = 7
            if value == 7:
                table["c"] = 3
    except RuntimeError as error:
        return str(error), log
    return x, log


class Holder:
    def __init__(self):
        self.a, self.b = 1, 2


@program((X, Holder(), Holder(), []), breaks=None)
def p_attributes_that_change(x, settings, other, log):
    for name in vars(settings):
        note(log, name)
        other.a = x
        settings.b = settings.b + 1
        log.append(settings.b)
    for name, value in vars(settings).items():
        note(log, (name, value))
        settings.b = 9
    return x + 1, settings.b, other.a, log


@program((X, enumerate([X, X + 1], 5)), (X, enumerate([X, X + 1, X + 2])))
def p_enumerated(x, values):
    for count, value in values:
        x = x + value * count
    return x, next(values, None)


@program((X, zip([1, 2], (X, X + 1))), (X, zip([1, 2, 3], (X,))), (X, zip([], (X,))))
def p_zipped(x, values):
    for count, value in values:
        x = x + value * count
    return x, list(values)


@program((X, zip([1, 2], (3, 4), strict=True)))
def p_zipped_strictly(x, values):
    return [x + a * b for a, b in values]


@program((X, zip([1, 2], (3,), strict=True)), breaks=None)
def p_zipped_strictly_in_vain(x, values):
    try:
        return [x + a * b for a, b in values]
    except ValueError as error:
        return str(error), x


@program((X, enumerate(zip(range(3), [X, X, X]))))
def p_nested(x, values):
    for count, (number, value) in values:
        x = x + value * count + number
    return x


@program((X, iter([1, 2, 3])))
def p_within_others(x, values):
    numbered = enumerate(values)
    found = [x + i * v for i, v in itertools.islice(numbered, 2)]
    return found, list(values)


@program((X, [1, 2], iter([1, 2])))
def p_over_another_list(x, values, iterator):
    values.append(3)
    return x, list(iterator), values


@program(([1, 2],), breaks=None)
def p_over_a_list_that_changes(values):
    found, log = [], []
    for value in values:
        note(log, value)
        found.append(value)
        if len(values) < 5:
            values.append(value * 2)
    return found, values, log


@program((X, iter([1])), breaks=None)
def p_length_hints(x, values):
    return x, operator.length_hint(values)


# -- from before a break ------------------------------------------------------------


@program((X, []), breaks=None)
def p_advanced_from_two_sides(x, log):
    values = iter([1, 2, 3, 4, 5])
    pairs = enumerate(values)
    note(log, 0)
    found = [next(pairs), next(values), next(pairs)]
    note(log, 1)
    return found, list(pairs), x


@program((X, []), breaks=2)
def p_kept_in_an_object(x, log):
    held = {"it": iter([X, X + 1, X + 2])}
    note(log, 0)
    x = x + next(held["it"])
    note(log, 1)
    return x * next(held["it"]), list(held["it"])


@program((X, []), breaks=1)
def p_the_same_twice(x, log):
    values = iter(range(6))
    again = values
    note(log, 0)
    return [x + a * b for a, b in zip(values, again)], list(values)


@program((X, [], 5), (X, [], 5), (X, [], 7), breaks=None)
def p_one_break_late(x, log, n):
    for i, value in enumerate([x * i for i in range(n)]):
        x = x + value
        if i == 1:
            note(log, i)
    else:
        x = x - 1
    return x


@program((X, []), breaks=None)
def p_left_by_break(x, log):
    for i in range(10):
        x = x + i
        note(log, i)
        if i == 2:
            break
    else:
        x = x * 100
    return x


@program(([],), breaks=None)
def p_at_their_end_before_a_break(log):
    table, members, items = {1: 2}, {1}, [1]
    made = [
        iter(range(5)), reversed(range(3)), iter("ab"), iter(b"ab"), iter(table),
        iter(table.items()), iter(table.values()), reversed(table), iter(members), iter(items),
        iter((1, 2)), reversed(items), enumerate(items), zip(items, table),
    ]  # fmt: skip
    for each in made:
        list(each)
    table[3], log = 4, [*log]
    members.add(5)
    items.append(6)
    note(log, "break")
    table[7] = 8
    members.add(9)
    items.append(10)
    return [list(each) for each in made], [type(each) for each in made]


def put_in_place(queue):
    queue[0], queue[-1] = 8, 9


# What ends an iterator over a deque, and what does not.
DEQUE_CHANGES = [
    put_in_place, collections.deque.reverse, collections.deque.rotate, collections.deque.copy,
    collections.deque.clear, lambda queue: queue.append(4),
    lambda queue: queue.append(queue.popleft()), lambda queue: operator.setitem(queue, 1, 7),
]  # fmt: skip


@program(*((X, change, []) for change in DEQUE_CHANGES), breaks=None)
def p_a_deque_is_changed_under_its_iterator(x, change, log):
    for queue in (collections.deque([1, 2, 3]), collections.deque([1, 2, 3], 3)):
        values = iter(queue)
        x = x + next(values)
        note(log, "under way")
        change(queue)
        note(log, "changed")
        try:
            log.append(list(values))
        except RuntimeError as error:
            log.append(str(error))
        log.append(list(queue))
    return x, log


# What a change of a deque does to its iterators depends on its length, too.
CHANGES = [
    *DEQUE_CHANGES, lambda queue: queue.extend([]), lambda queue: queue.extendleft([4, 5]),
    lambda queue: queue.__imul__(1), lambda queue: queue.__imul__(2),
    lambda queue: queue.__imul__(0), lambda queue: queue.__iadd__([1]),
    lambda queue: queue.rotate(0),
]  # fmt: skip


@program((X, []))
def p_deques_of_all_lengths_are_changed_under_their_iterators(x, log):
    for change in CHANGES:
        for limit in (None, 0, 1, 3, 4, 5):
            for count in (0, 1, 3):
                queue = collections.deque(range(count), limit)
                begun, ended = iter(queue), iter(queue)
                list(ended)
                next(begun, None)
                try:
                    change(queue)
                except IndexError as error:
                    log.append(str(error))
                for values in (begun, ended, begun):
                    try:
                        log.append(next(values, None))
                    except RuntimeError as error:
                        log.append(str(error))
                log.append(list(queue))
    return x, log


TABLE_CHANGES = [
    lambda d: d.update(z=1), lambda d: d.update(a=5), lambda d: d.pop("a"), lambda d: d.clear(),
    lambda d: (d.pop("c"), d.update(q=1)), lambda d: d.move_to_end("a"),
]  # fmt: skip


@program(
    *((X, make, []) for make in (dict, collections.OrderedDict, collections.Counter)), breaks=None
)
def p_tables_change_under_their_iterators(x, make, log):
    for change in TABLE_CHANGES:
        for view in (iter, reversed, lambda table: iter(table.items())):
            table = make({"a": 1, "b": 2, "c": 3})
            if change is not TABLE_CHANGES[-1] or make is collections.OrderedDict:
                values = view(table)
                log.append(next(values))
                change(table)
                note(log, "changed")
                log.append((outcome_of(lambda: next(values)), outcome_of(lambda: list(values))))
    return x, log


@program(*((X, make()) for make in (dict, set, collections.Counter, collections.OrderedDict)),
         breaks=None)  # fmt: skip
def p_loops_over_what_grows(x, table):
    grow = table.add if isinstance(table, set) else table.setdefault
    grow("a")
    for each in table:
        x = x + 1
        grow(each + "b")
    return x


@program((X,), breaks=None)
def p_loops_over_what_the_frame_has_made_and_grows(x):
    table = {"a": 1}
    for each in table:
        table[each + "b"] = 1
    return x


@program(*((X, {"b": 9, "c": 0}, n, []) for n in (1, 3, 4)), breaks=None)
def p_the_room_of_a_table_decides_what_comes_next(x, table, n, log):
    for value in table.values():
        log.append(value)
        for _ in range(n):
            table.update(a=2, b=3)
            table.pop("b")
    return x


@program(*((X, {"b": 9, "c": 0}, n, []) for n in (1, 3, 4)), breaks=None)
def p_tables_are_changed_by_other_entries(x, table, n, log):
    def change(x):
        for _ in range(n):
            table["a"], table["b"] = 2, 3
            del table["b"]
        return x + 1

    change = compiled(change, Settings("eager"))

    @aotdyn.disable
    def run():
        for key in table:
            log.append((key, change(x)))

    run()
    return x


test_agrees = program.test()


class Asked:
    """An index that counts how often it is asked for."""

    def __init__(self):
        self.times = 0

    def __index__(self):
        self.times += 1
        return 1


def test_a_deque_asks_an_index_once(agree):
    def program(x):
        queue, index = collections.deque([1, 2, 3]), Asked()
        queue[index] = 5
        del queue[index]
        return x, queue[index], queue, index.times

    agree(program, (X,), package=False)


@pytest.mark.parametrize("limit", [None, 0, 2])
def test_a_deque_that_came_in_empty_and_is_empty_again_has_changed(limit):
    def come_and_go(queue):
        queue.append(1)
        queue.clear()

    queue = collections.deque([], limit)
    values = iter(queue)
    compiled(come_and_go, Settings("eager"))(queue)
    with pytest.raises(RuntimeError, match="mutated during iteration"):
        next(values)


# -- bounds of ranges that are symbolic -----------------------------------------------------


def forwards(x, n, log):
    for i in range(n):
        x = x + i
        note(log, i)
        x = x * 2
    return x


def backwards(x, n, log):
    for i in range(n - 1, -1, -1):
        x = x + i
        note(log, i)
    return x


def from_a_start(x, n, log):
    for i in range(n, 2 * n + 1, 2):
        x = x + i
        note(log, i)
    return x


def listed(x, n, log):
    values = range(n)
    note(log, len(values))
    for i in values:
        x = x + i
    return x, values[-1], n - 1 in values


def unrolled(x, n, log):
    for i in range(n):
        x = x + i
    return x


@pytest.mark.parametrize(
    ("function", "variants"), [(forwards, 5), (backwards, 5), (from_a_start, 5)]
)
def test_a_loop_has_the_same_variants_for_every_range(function, variants):
    settings = Settings("eager")
    served = compiled(function, settings)
    for n in (5, 6, 20, 3, 70):
        log, expected_log = [], []
        assert torch.equal(served(X, n, log), function(X, n, expected_log))
        assert log == expected_log
    assert sum(len(entry.linked) for entry in settings.entries()) <= variants
    breaking = [v for e in settings.entries() for v in e.linked if v.variant.breaks is not None]
    assert all(v.variant.graph is not None for v in breaking)


@pytest.mark.parametrize("function", [forwards, backwards, from_a_start, listed, unrolled])
def test_symbolic_ranges(agree, function):
    agree(function, *((X, n, []) for n in (5, 7, 2, 0, 9, 1, 30)))
