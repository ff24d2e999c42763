"""Shapes of which not all sizes are fixed."""


def broadcast_shapes(shapes):
    """What shapes are broadcast to, None where they do not fit."""
    rows = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    found = [1] * max([len(row) for row in rows])
    for row in rows:
        for place in range(1, len(row) + 1):
            size = row[-place]
            if size < 0:
                return None
            if found[-place] == 1:
                found[-place] = size
            elif size != 1 and size != found[-place]:
                return None
    return found
