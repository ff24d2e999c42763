"""A device for captures where there is no GPU: it notes the operations of torch that a run calls,
undoes what they did, and a replay does them again in the same memory."""

import threading
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GARBAGE = 77  # each byte of memory that was captured, and not yet replayed


def tensors(*trees):
    return [leaf for leaf in tree_leaves(trees) if isinstance(leaf, torch.Tensor)]


def memories(*trees):
    return {t.untyped_storage()._cdata: t.untyped_storage() for t in tensors(*trees)}


class Notes(TorchDispatchMode):
    """Notes operations. before: what was in memory that was there before them."""

    def __init__(self):
        super().__init__()
        self.done = []
        self.before = {}
        self.made = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing\nmore lines")
        given = memories(args, kwargs)
        for key, memory in given.items():
            if key not in self.made:
                self.before.setdefault(key, (memory, memory.clone()))
        found = func(*args, **kwargs)
        new = {k: m for k, m in memories(found).items() if k not in given}
        self.made |= new
        self.done.append((func, args, kwargs, found, frozenset(new)))
        return found


class StandIn:
    """captured, replayed, run_aside: how often."""

    def __init__(self):
        self.lock = threading.RLock()
        self.captured = self.replayed = self.run_aside = 0
        self.busy = False
        self.capturing = False  # the program does so itself
        self.setting = 0
        self.before_replay = lambda: None
        self._notes = None

    def settings(self):
        return (self.setting,)

    def free(self):
        return not self.capturing and not self.busy

    def aside(self, run):
        self.run_aside += 1
        return run()

    def capture(self, run):
        self.captured += 1
        random, notes = torch.get_rng_state(), Notes()
        self._notes = notes
        try:
            with notes:
                found = run()
        finally:
            self._notes = None
            torch.set_rng_state(random)
            for memory, contents in notes.before.values():
                memory.copy_(contents)
        for memory in (m for m in notes.made.values() if m.device.type == "cpu"):
            torch.empty(0, dtype=torch.uint8).set_(memory).fill_(GARBAGE)
        return lambda: self._replay(notes.done), found

    def launch(self, start):
        """Starts a kernel, which a capture does not."""
        if self._notes is None:
            start()
        else:
            self._notes.done.append((start, (), {}, None, frozenset()))

    def _replay(self, done):
        self.replayed += 1
        self.before_replay()
        for func, args, kwargs, kept, new in done:
            for made, old in zip(tensors(func(*args, **kwargs)), tensors(kept), strict=True):
                if old.untyped_storage()._cdata in new:
                    old.copy_(made)

    @contextmanager
    def turn(self):
        assert not self.busy
        self.busy = True
        try:
            yield
        finally:
            self.busy = False
