"""Checks of torch, by a branch of which one side only raises."""


def check_tensor_all(error, cond, message):
    if not cond._is_all_true():
        raise error(message)
