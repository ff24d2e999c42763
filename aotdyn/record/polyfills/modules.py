"""`Module.__call__` in the presence of forward hooks, what all parts of a module are, and
tensors in groups."""


def run_pre_hooks(module, hooks, args, kwargs):
    """What `forward` is called with. hooks: (hook, whether it takes keyword arguments) in order."""
    for hook, with_kwargs in hooks:
        if with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if isinstance(changed, tuple) and len(changed) == 2:
                    args, kwargs = changed
                else:
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple "
                        f"of (new_args, new_kwargs), but got {changed}."
                    )
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def run_forward(forward, args, kwargs):
    return forward(*args, **kwargs)


def run_hooks(module, hooks, args, kwargs, result):
    """The result of the call; hooks: as in `run_pre_hooks`."""
    for hook, with_kwargs in hooks:
        if with_kwargs:
            changed = hook(module, args, kwargs, result)
        else:
            changed = hook(module, args, result)
        if changed is not None:
            result = changed
    return result


def all_are_there(module, device, dtype):
    """Whether moving a module changes none of its tensors; None: not asked for."""
    for tensor in (*module._parameters.values(), *module._buffers.values()):
        if tensor is None:
            continue
        if device is not None and tensor.device != device:
            return False
        is_of_reals = tensor.is_floating_point() or tensor.is_complex()
        if dtype is not None and is_of_reals and tensor.dtype != dtype:
            return False
    for child in module._modules.values():
        if child is not None and not all_are_there(child, device, dtype):
            return False
    return True


def all_train(module, mode):
    """Whether a module and all below it are in training mode, or all are not."""
    if module.training is not mode:
        return False
    for child in module._modules.values():
        if child is not None and not all_train(child, mode):
            return False
    return True


def group_tensors(lists, with_indices=False):
    """`_group_tensors_by_device_and_dtype`: the lists in parts, by what the first one's tensors
    are."""
    groups = {}
    for index, tensor in enumerate(lists[0]):
        key = (tensor.device, tensor.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in lists], [])
        parts, indices = groups[key]
        for part, given in zip(parts, lists):
            if given:
                part.append(given[index])
        if with_indices:
            indices.append(index)
    return groups
