"""`functools.lru_cache` for functions that are cached within a frame."""

import functools


class Cache:
    """What the wrapper in C does. kept: key -> result, the one used last at the end."""

    def __init__(self, function, maxsize, typed):
        self.function = function
        self.maxsize = maxsize
        self.typed = typed
        self.cache_clear()

    def __call__(self, *args, **kwargs):
        key = self.key(args, kwargs)
        if key in self.kept:
            self.hits += 1
            result = self.kept.pop(key)
            self.kept[key] = result
            return result
        self.misses += 1
        result = self.function(*args, **kwargs)
        if self.maxsize == 0 or key in self.kept:
            return result
        if self.maxsize is not None and len(self.kept) >= self.maxsize:
            del self.kept[next(iter(self.kept))]
        self.kept[key] = result
        return result

    def key(self, args, kwargs):
        if len(args) == 1 and not kwargs and not self.typed and type(args[0]) in (int, str):
            # It differs from an equal number of another type.
            return args[0]
        key = (args, tuple(kwargs.items()))
        if self.typed:
            key = (*key, tuple([type(arg) for arg in (*args, *kwargs.values())]))
        return key

    def cache_info(self):
        return functools._CacheInfo(self.hits, self.misses, self.maxsize, len(self.kept))

    def cache_clear(self):
        self.hits = 0
        self.misses = 0
        self.kept = {}
