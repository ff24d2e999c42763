"""What calling objects of C does. The arguments they were made of come first, as a tuple and a
dict."""


def itemgetter(args, kwargs, obj):
    if len(args) == 1:
        return obj[args[0]]
    return tuple([obj[item] for item in args])


def attrgetter(args, kwargs, obj):
    values = []
    for path in args:
        value = obj
        for name in path.split("."):
            value = getattr(value, name)
        values.append(value)
    return values[0] if len(values) == 1 else tuple(values)


def methodcaller(args, kwargs, obj):
    return getattr(obj, args[0])(*args[1:], **kwargs)


def cmp_to_key(args, kwargs, obj):
    return ComparedBy(args[0], obj)


class ComparedBy:
    """Compares as a function says."""

    def __init__(self, compare, obj):
        self.compare = compare
        self.obj = obj

    def __lt__(self, other):
        return self.compare(self.obj, other.obj) < 0

    def __gt__(self, other):
        return self.compare(self.obj, other.obj) > 0

    def __le__(self, other):
        return self.compare(self.obj, other.obj) <= 0

    def __ge__(self, other):
        return self.compare(self.obj, other.obj) >= 0

    def __eq__(self, other):
        return self.compare(self.obj, other.obj) == 0
