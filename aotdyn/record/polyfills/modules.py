"""`Module.__call__` in the presence of forward hooks."""


def call_with_hooks(module, forward, pre_hooks, hooks, args, kwargs):
    """pre_hooks, hooks: (hook, whether it takes keyword arguments), in order."""
    for hook, with_kwargs in pre_hooks:
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
    result = forward(*args, **kwargs)
    for hook, with_kwargs in hooks:
        if with_kwargs:
            changed = hook(module, args, kwargs, result)
        else:
            changed = hook(module, args, result)
        if changed is not None:
            result = changed
    return result
