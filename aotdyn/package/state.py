"""The process' state that compiled code depends on: gradient mode, autocast, defaults."""

import json

import torch

# Not part of what a trace depends on; they differ between machines.
_MACHINE = ("num_threads",)


def process_state() -> str:
    """The state of this thread as JSON: that of torch's `GlobalStateGuard` and inference mode."""
    state = json.loads(torch._C._dynamo.guards.GlobalStateGuard().__getstate__())
    for name in _MACHINE:
        state.pop(name, None)
    state["inference_mode"] = torch.is_inference_mode_enabled()
    return json.dumps(state, sort_keys=True)
