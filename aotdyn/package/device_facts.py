"""What `torch.cuda` tells of a device, for guards: where it cannot tell, no guard holds."""

from typing import Any

import torch


def fact(function: str, *args: Any) -> Any:
    """What the function of `torch.cuda` answers. Raises LookupError where there is no answer: there
    is no device, or not this one."""
    try:
        return getattr(torch.cuda, function)(*args)
    except (AssertionError, RuntimeError) as error:
        raise LookupError(f"torch.cuda.{function}: {error}") from error
