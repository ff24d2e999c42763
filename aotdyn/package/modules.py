"""What guards on modules of torch.nn look at."""

from typing import Any


def hook_kinds(module: Any) -> tuple | None:
    """For pre-hooks and hooks, whether each takes keyword arguments; None if there are others."""
    own = module.__dict__
    if (
        own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or own["_forward_hooks_always_called"]
        or own.get("_compiled_call_impl")
    ):
        return None
    before, after = own["_forward_pre_hooks_with_kwargs"], own["_forward_hooks_with_kwargs"]
    return (
        tuple(key in before for key in own["_forward_pre_hooks"]),
        tuple(key in after for key in own["_forward_hooks"]),
    )
