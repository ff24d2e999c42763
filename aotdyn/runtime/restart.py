"""A frame starts over as plain Python when its graph has raised, so that the program's own handlers
find the exception: what the graph had done by then is undone first. Bodies call `keep`."""

from typing import Any

import torch

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401


class Kept:
    """Tensors as they were before a graph that changes them, and the generators' states.

    copied: the tensors of which there are copies; the others must not have changed.
    """

    __slots__ = ("copied", "watched", "copies", "versions", "random")

    def __init__(self, copied: list, watched: list, draws: bool):
        self.copied, self.watched = copied, watched
        self.copies = [tensor.detach().clone() for tensor in copied]
        self.versions = [_version(tensor) for tensor in (*copied, *watched)]
        self.random = [(each, each.get_state()) for each in _generators()] if draws else []

    def put_back(self) -> bool:
        """Undoes what the graph has done; whether that was possible."""
        versions = self.versions[len(self.copied) :]
        if any(_version(t) != v or v is None for t, v in zip(self.watched, versions)):
            return False
        for tensor, copy, version in zip(self.copied, self.copies, self.versions):
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                tensor.copy_(copy)
            if version is not None:
                # Whoever has saved the tensor for a backward pass finds it unchanged.
                torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
        for generator, state in self.random:
            generator.set_state(state)
        return True


class NotSo(Exception):
    """What a trace has assumed of a tensor is not so."""


def require(*assumed: tuple[torch.Tensor, bool]) -> None:
    """Raises NotSo unless each tensor is true, or is not, as was assumed."""
    for condition, holds in assumed:
        if bool(condition) is not holds:
            raise NotSo


def keep(inputs: tuple, copied: tuple, watched: tuple, draws: bool) -> Kept:
    """What is needed to undo a graph. copied, watched: places of tensors among the inputs."""
    return Kept([inputs[i] for i in copied], [inputs[i] for i in watched], draws)


def _version(tensor: torch.Tensor) -> Any:
    """How often a tensor was changed; None if nobody counts."""
    return None if tensor.is_inference() else tensor._version


def _generators() -> list[torch.Generator]:
    """The generators that operators draw from."""
    cuda = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return [torch.default_generator, *cuda]
