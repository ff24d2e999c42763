"""Objects of C that hold plain data and change: bytearray, memoryview, array, StringIO, BytesIO,
Random; made in the frame, and come in."""

import array
import copy
import io
import random
import re

import torch

from tests.record.programs import Programs, note

DATA, NUMBERS, TEXT = bytearray(b"xyz"), array.array("f", [1.0]), io.StringIO()

program = Programs()


@program()
def _bytes_that_change(x):
    b = bytearray(b"ab")
    c = b
    b.append(99)
    b[0] = 65
    c += b"zz"
    b.extend(n + 1 for n in range(2))
    del b[-1]
    errors = []
    for change in (lambda: b.append(300), lambda: b[9], lambda: bytearray("text")):
        try:
            change()
        except (ValueError, IndexError, TypeError) as error:
            errors.append((type(error), str(error)))
    pieces = [b[1:3], b.find(b"z"), b.upper(), b"x" + b, b == b"A", [v for v in b], list(b)]
    it = iter(b)
    next(it)
    other = bytearray(x.dim()), bytearray([1, 2]), copy.copy(b), b.hex(), f"{b}", not bytearray()
    return x * len(b), b, b is c, pieces, errors, list(it), other, int.from_bytes(b[:2], "big")


@program()
def _views_and_arrays(x):
    m, n = memoryview(b"abcd"), memoryview(bytearray(b"1234"))
    n[0] = 7
    views = bytes(m[1:3]), m.tolist(), m.nbytes, m.readonly, n[1:3].tobytes(), bytes(m[::2]), len(m)
    a = array.array("i", [1, 2, 3])
    a.append(4)
    a[0] = 9
    a.extend([7])
    held = a.tolist(), a.typecode, sum(a), a.index(3), a[1:3], 2 in a
    return x * a[1] * m[1], views, a, held, [c for c in m], m == b"abcd", n[0]


@program()
def _files_in_memory(x):
    text, data = io.StringIO(), io.BytesIO()
    text.write("hello")
    text.write(f" {x.dim()}")
    with io.StringIO("a\nb\n") as lines:
        read = [line.strip() for line in lines]
    data.write(b"123")
    data.seek(1)
    return x, text.getvalue(), read, lines.closed, data.read(), data.getvalue(), data.tell()


@program()
def _generators_with_a_seed(x):
    r = random.Random(0)
    drawn = [r.random(), r.randint(1, 6), r.choice([x, x])[0], r.uniform(0, 1), r.gauss(0, 1)]
    items = [1, 2, x, 4]
    r.shuffle(items)
    state = random.Random("text").getstate()[0], random.Random(x.dim()).random()
    return x * drawn[0], drawn, items, r.sample(range(10), 3), state, r.random()


@program(breaks=2)
def _changed_around_a_break(x):
    r, b, text, log = random.Random(3), bytearray(b"a"), io.StringIO(), []
    first = r.random()
    DATA.append(1)
    NUMBERS.append(2.5)
    TEXT.write("a")
    note(log, (bytes(DATA), NUMBERS[-1], TEXT.getvalue()))
    del DATA[-1]
    NUMBERS.pop()
    TEXT.seek(0)
    TEXT.truncate()
    b.append(5)
    text.write("b")
    return x * first, r.random(), b, text.getvalue(), log, DATA, NUMBERS, TEXT.tell()


@program((bytearray(b"ab"), torch.ones(2)), (bytearray(b"abc"), torch.ones(2)))
def _come_in(data, x):
    data[0] += 1
    data.reverse()
    return x * data[0], bytes(data), len(data)


@program(breaks=None)
def _resized_where_others_have_a_view(x):
    log, made = [], [bytearray(b"ab"), array.array("d", [1.0]), io.BytesIO(b"ab")]
    views = [memoryview(made[0]), memoryview(made[1]), made[2].getbuffer()]
    note(log, len(views))
    for each in made:
        try:
            each.write(b"c") if isinstance(each, io.BytesIO) else each.append(1)
        except BufferError:
            log.append("has a view")
    for view in views:
        view.release()
    made[0].append(1)
    return x + 1, log, bytes(made[0])


def _grow(data, x):
    try:
        data.extend(data[:1])
    except BufferError as error:
        return str(error), x
    return data[-1], x


@program((bytearray(b"ab"), torch.ones(2)), breaks=None)
def _are_held(data, x):
    view = memoryview(data)
    note([], view)
    held = _grow(data, x)
    view.release()
    return held, _grow(data, x)


@program((bytearray(b"ab"), torch.ones(2)), breaks=None)
def _are_searched(data, x):
    found = re.match(b"a", data), re.search(b"b", string=data)
    data[:] = b"zz"
    ahead = re.finditer(b"a", made := bytearray(b"aa"))
    return x, [each.group() for each in found], found[0].string is data, _grow(made, x), [*ahead]


test_agrees = program.test()
