"""What `match` does with mappings of classes of the program."""


def keys_of(mapping, keys):
    """The values of these keys, as a mapping's own `get` finds them; None where one is missing."""
    get, missing = mapping.get, object()
    found = []
    for key in keys:
        value = get(key, missing)
        if value is missing:
            return None
        found.append(value)
    return tuple(found)
