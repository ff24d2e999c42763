"""Containers whose items have methods of their own, `__eq__`, `__lt__`, `__hash__`, that see and
change the container, and tables that change as they are iterated."""

import collections
import copy
import heapq

import torch

from tests.record.programs import Programs, note

program = Programs()


class Clearing:
    """Empties a list when it is compared."""

    def __init__(self, items):
        self.items = items

    def __eq__(self, other):
        self.items.clear()
        return NotImplemented


def clearing(count):
    items = []
    items += [Clearing(items) for _ in range(count)]
    return items


@program(breaks=None)
def p_comparison_empties_the_list(x):
    a, b, c, d, e = (clearing(2) for _ in range(5))
    found = [a == [1, 2], b.count(1), c != [1, 2], 1 in d]
    try:
        e.remove(1)
    except ValueError as error:
        found.append(str(error))
    return x + 1, found, [len(each) for each in (a, b, c, d, e)]


class Weighed:
    def __init__(self, weight, log):
        self.weight, self.log = weight, log

    def __lt__(self, other):
        self.log.append((self.weight, other.weight))
        if self.weight == other.weight:
            raise ValueError("equal")
        return self.weight < other.weight


@program()
def p_sort_compares_in_pythons_order(x):
    log = []
    items = [Weighed(weight, log) for weight in (3, 1, 2, 5, 4)]
    items.sort()
    sorted(items, reverse=True)
    return x + 1, log, [item.weight for item in items]


@program()
def p_sort_that_fails_leaves_what_is_sorted(x):
    log = []
    items = [Weighed(weight, log) for weight in (3, 1, 2, 3, 4)]
    try:
        items.sort()
    except ValueError as error:
        log.append(str(error))
    return x + 1, log, [item.weight for item in items]


@program()
def p_sort_finds_the_list_changed(x):
    found = []
    for change in (lambda: a.append(9), lambda: (a.append(3), a.pop()), lambda: len(a)):
        a = [3, 1, 2]

        def key(item):
            found.append(change())
            return item

        try:
            a.sort(key=key)
        except ValueError as error:
            found.append(str(error))
        found.append(list(a))
    return x + 1, found


@program(breaks=None)
def p_tables_that_change_as_they_are_iterated(x):
    found = []
    one, three, ints = {0: 0}, {0: 0, 1: 1, 2: 2}, {1, 2, 3}
    for table in (one, three):
        try:
            for key in table:
                found.append(key)
                del table[0]
                table[0] = 0
        except RuntimeError as error:
            found.append(str(error))
    for item in ints:
        found.append(item)
        if item == 1:
            ints.discard(2)
            ints.add(5)
    return x + 1, found


@program()
def p_an_iterator_that_has_ended_stays_ended(x):
    table = {0: 0}
    keys, values = iter(table), iter(table.values())
    found = [list(keys), list(values)]
    table[1] = 1
    return x + 1, found, next(keys, "end"), next(values, "end")


class Counting:
    """Counts how often it is hashed and compared."""

    def __init__(self):
        self.hashed = self.compared = 0

    def __hash__(self):
        self.hashed += 1
        return 42

    def __eq__(self, other):
        self.compared += 1
        return self is other


@program(breaks=None)
def p_hashes_are_asked_as_often_as_by_python(x):
    log = []
    a, b, c, d = (Counting() for _ in range(4))
    table, members = {a: 1}, {c}
    table.setdefault(b, [])
    members.add(d)
    note(log, len(table) + len(members))
    return x + 1, [(each.hashed, each.compared) for each in (a, b, c, d)], log


class Moved:
    """Has another hash when its value has changed, and none without one."""

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        if self.value is None:
            raise KeyError("no value")
        return hash(self.value)

    def __eq__(self, other):
        return self.value == other.value


@program(breaks=None)
def p_keys_whose_hash_has_changed(x):
    log = []
    a, b = Moved(1), Moved(3)
    table, members = {a: 1}, {b}
    a.value, b.value = 2, None
    note(log, len(table))
    try:
        members.add(b)
    except KeyError as error:
        log.append(str(error))
    return x + 1, log, Moved(1) in table, Moved(2) in table, len(members), list(table.values())


@program(breaks=None)
def p_hash_of_a_key_changes_after_a_break(x):
    key, log = Moved(1), []
    table, members = {key: 1}, {(key, 1)}
    note(log, len(table))
    key.value = 2
    found = [Moved(n) in table for n in (1, 2)] + [(Moved(n), 1) in members for n in (1, 2)]
    return x + 1, log, found, len(table), [each.value for each in table]


@program(*((torch.ones(2), {1, 2}) for _ in range(2)), breaks=None)
def p_sets_and_views_compare(x, s):
    d = {1: 1, 2: 2}
    return (
        s == d.keys(), d.keys() == s, s != d.keys(), s <= d.keys(), {1} < d.keys(), s > d.keys(),
        {(1, 1), (2, 2)} == d.items(), s == d.values(), d.keys() == [1, 2], d.items() != 3, x + 1,
    )  # fmt: skip


def raised(*functions):
    found = []
    for function in functions:
        try:
            found.append(function())
        except (TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
            found.append((type(error).__name__, str(error)))
    return found


@program(breaks=None)
def p_functions_of_c_refuse_arguments(x):
    return x + 1, raised(
        lambda: [].sort(1, 2), lambda: {}.get(), lambda: [].append(), lambda: len(1, 2),
        lambda: isinstance(1), lambda: list(1, 2), lambda: tuple(x=1), lambda: [].pop(1, 2),
        lambda: sorted(), lambda: {}.setdefault(), lambda: [].sort(reverse="a"), lambda: [][::0],
        lambda: [1][2**70], lambda: [1] * 2**70, lambda: [1, 2] * (2**63 - 1),
    )  # fmt: skip


@program(breaks=None)
def p_lists_that_are_too_deep_or_too_long(x):
    deep = []
    for _ in range(300):
        deep = [deep]
    long = [0] * 200_000
    return x + len(repr(deep)), len(long), len(repr(long))


class Emptying:
    """Empties a deque or a heap when it is compared."""

    def __init__(self, items):
        self.items = items

    def __eq__(self, other):
        self.items.clear()
        return False

    def __lt__(self, other):
        self.items.clear()
        return True


@program(breaks=None)
def p_deques_and_heaps_that_change_as_they_are_searched(x):
    found = []
    for search in (lambda d: 1 in d, lambda d: d.count(1), lambda d: d.index(1)):
        items = collections.deque()
        items += [Emptying(items), Emptying(items)]
        try:
            found.append(search(items))
        except (RuntimeError, ValueError) as error:
            found.append((type(error).__name__, str(error)))
    heap = []
    heap += [Emptying(heap) for _ in range(3)]
    try:
        heapq.heapify(heap)
    except RuntimeError as error:
        found.append(str(error))
    return x + 1, found, len(heap)


class Compared:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.__dict__ == other.__dict__


@program()
def p_dictionaries_of_objects_compare(x):
    a, b = Compared([1]), Compared([1])
    c = copy.copy(a)
    return a == b, c == a, vars(a) == {"value": [1]}, {"value": [1]} == vars(a), x


test_agrees = program.test()
