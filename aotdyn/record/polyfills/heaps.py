"""`heapq`: a list of which every item is no greater than the two at twice its place plus one and
two. Which of equal items goes where is that of C."""


def heappush(heap, item):
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap):
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sink(heap, 0)
    return first


def heapreplace(heap, item):
    first = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return first


def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sink(heap, 0)
    return item


def heapify(heap):
    for place in reversed(range(len(heap) // 2)):
        _sink(heap, place)


def _rise(heap, top, place):
    """Moves an item towards the top, past all greater ones."""
    item = heap[place]
    while place > top:
        above = (place - 1) // 2
        size = len(heap)
        rises = item < heap[above]
        _require_size(heap, size)
        if not rises:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _sink(heap, top):
    """Moves an item to the bottom, along the lesser of two each time, and up again from there."""
    item = heap[top]
    place = top
    size = len(heap)
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and not heap[child] < heap[child + 1]:
            child += 1
        _require_size(heap, size)
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    _rise(heap, top, place)


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[: max(n, 0)]


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def _require_size(heap, size):
    """A comparison may have changed the list."""
    if len(heap) != size:
        raise RuntimeError("list changed size during iteration")
