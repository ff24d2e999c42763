"""The iterators of `itertools` in Python. What C does when the iterator is made is done when the
function is called; what it does when it is advanced is done by the generator that is returned.

A StopIteration that the program raises there ends the generator, as it ends an iterator of C.
"""

import operator


def chain(*iterables):
    return _chain(iter(iterables))


def chain_from_iterable(iterables, /):
    return _chain(iter(iterables))


def _chain(iterables):
    for iterable in iterables:
        yield from iterable


def islice(iterable, /, *bounds):
    if not bounds:
        raise TypeError("islice expected at least 2 arguments, got 1")
    if len(bounds) > 3:
        raise TypeError(f"islice expected at most 4 arguments, got {len(bounds) + 1}")
    what = "Stop argument" if len(bounds) == 1 else "Indices"
    part = slice(*[_bound(bound, what) for bound in bounds[:2]])
    step = 1
    if bounds[2:] and bounds[2] is not None:
        step = _number(bounds[2], 1, "Step for islice() must be a positive integer or None.")
    return _islice(iter(iterable), 0 if part.start is None else part.start, part.stop, step)


def _bound(bound, what):
    """A bound of `islice` as a number."""
    if bound is None:
        return None
    told = f"{what} for islice() must be None or an integer: 0 <= x <= sys.maxsize."
    return _number(bound, 0, told)


def _number(value, least, told):
    """A whole number that is not too small. Raises ValueError with a text for all else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(told)
    return number


def _islice(iterator, start, stop, step):
    position = 0
    wanted = start
    while stop is None or wanted < stop:
        while position <= wanted:
            try:
                item = next(iterator)
            except StopIteration:
                return
            position += 1
        yield item
        wanted += step
    # What lies before the end is taken from the iterator even when it is not wanted.
    while stop is not None and position < stop:
        try:
            next(iterator)
        except StopIteration:
            return
        position += 1


def count(start=0, step=1):
    for number in (start, step):
        if not any(hasattr(type(number), name) for name in _OF_NUMBERS):
            raise TypeError("a number is required")
    if type(start) is not int and isinstance(start, int) and isinstance(step, int) and step == 1:
        start = int.__index__(start)  # C then counts by itself.
    return _count(start, step)


_OF_NUMBERS = ("__index__", "__int__", "__float__", "__complex__")


def _count(value, step):
    while True:
        yield value
        value = value + step


def cycle(iterable, /):
    return _cycle(iter(iterable))


def _cycle(iterator):
    saved = []
    for item in iterator:
        saved.append(item)
        yield item
    while saved:
        yield from saved


_FOREVER = object()


def repeat(object, times=_FOREVER):
    return _repeat(object, times if times is _FOREVER else operator.index(times))


def _repeat(item, times):
    if times is _FOREVER:
        while True:
            yield item
    for _ in range(times):
        yield item


def accumulate(iterable, func=None, *, initial=None):
    return _accumulate(iter(iterable), func, initial)


def _accumulate(iterator, function, initial):
    total = initial
    if initial is None:
        try:
            total = next(iterator)
        except StopIteration:
            return
    yield total
    for item in iterator:
        total = total + item if function is None else function(total, item)
        yield total


def takewhile(predicate, iterable, /):
    return _takewhile(predicate, iter(iterable))


def _takewhile(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate, iterable, /):
    return _dropwhile(predicate, iter(iterable))


def _dropwhile(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            yield item
            break
    yield from iterator


def starmap(function, iterable, /):
    return _starmap(function, iter(iterable))


def _starmap(function, iterator):
    for args in iterator:
        yield function(*tuple(args))


def filterfalse(predicate, iterable, /):
    return _filterfalse(predicate, iter(iterable))


def _filterfalse(predicate, iterator):
    for item in iterator:
        if not (item if predicate is None or predicate is bool else predicate(item)):
            yield item


def compress(data, selectors):
    return _compress(iter(data), iter(selectors))


def _compress(data, selectors):
    for item, selected in zip(data, selectors):
        if selected:
            yield item


def pairwise(iterable, /):
    return _pairwise(iter(iterable))


def _pairwise(iterator):
    try:
        left = next(iterator)
    except StopIteration:
        return
    for right in iterator:
        yield left, right
        left = right


def zip_longest(*iterables, fillvalue=None):
    return _zip_longest([iter(each) for each in iterables], fillvalue)


def _zip_longest(iterators, fill):
    ended = [False] * len(iterators)
    while iterators:
        row = []
        for index, iterator in enumerate(iterators):
            item = fill
            if not ended[index]:
                try:
                    item = next(iterator)
                except StopIteration:
                    ended[index] = True
                    if all(ended):
                        return
            row.append(item)
        yield tuple(row)


def tee(iterable, n=2, /):
    if operator.index(n) < 0:
        raise ValueError("n must be >= 0")
    iterator = iter(iterable)
    waiting = [[] for _ in range(n)]
    shared = [False]
    return tuple([teed(_tee(iterator, mine, waiting, shared)) for mine in waiting])


def teed(iterator):
    """One of the iterators that `tee` gives; a rule makes it of what advances it."""


def _tee(iterator, mine, waiting, shared):
    while True:
        if not mine:
            if shared[0]:
                raise RuntimeError("cannot re-enter the tee iterator")
            shared[0] = True
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                shared[0] = False
            for each in waiting:
                each.append(item)
        yield mine.pop(0)


def groupby(iterable, key=None):
    return Groups(iter(iterable), key)


def grouper(group):
    """A group that `groupby` gives; a rule makes it of what advances it."""


class Groups:
    """Hands out (key, group); a group ends when the next one is asked for.

    key_there, value_there: whether there are a key and a value that nobody has taken.
    """

    def __init__(self, iterator, function):
        self.iterator = iterator
        self.function = function
        self.key_there = self.value_there = self.started = False
        self.group = None

    def step(self):
        item = next(self.iterator)
        self.key = item if self.function is None else self.function(item)
        self.item = item
        self.key_there = self.value_there = True

    def __iter__(self):
        return self

    def __next__(self):
        self.group = None
        while not self.key_there or self.started and self.target == self.key:
            self.step()
        self.target, self.started = self.key, True
        self.group = Group(self, self.key)
        return self.key, grouper(self.group)


class Group:
    def __init__(self, groups, target):
        self.groups = groups
        self.target = target

    def __iter__(self):
        return self

    def __next__(self):
        groups = self.groups
        if groups.group is not self:
            raise StopIteration
        if not groups.value_there:
            groups.step()
        if not self.target == groups.key:
            raise StopIteration
        groups.key_there = groups.value_there = False
        return groups.item


def call_until(function, sentinel):
    """`iter(function, sentinel)`."""
    while True:
        value = function()
        if value == sentinel:
            return
        yield value


def by_index(sequence, first=0):
    """`iter()` of an object that has only `__getitem__`."""
    while True:
        try:
            item = sequence[first]
        except (IndexError, StopIteration):
            return
        yield item
        first += 1


def backwards(sequence, size):
    """`reversed()` of an object that has only `__len__` and `__getitem__`."""
    while size:
        size -= 1
        yield sequence[size]


def count_elements(mapping, iterable):
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1
