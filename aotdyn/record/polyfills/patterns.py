"""`re` where it calls functions of the program."""


def substitute(pattern, function, string, count):
    """(the text in which matches are replaced by what the function gives for them, how many)."""
    parts = []
    end = made = 0
    for match in pattern.finditer(string):
        if count and made == count:
            break
        parts.append(string[end : match.start()])
        replacement = function(match)
        if replacement is not None:
            parts.append(replacement)
        end = match.end()
        made += 1
    parts.append(string[end:])
    return string[:0].join(parts), made
