"""Checks of torch, by a branch of which one side only raises; what it warns of."""

import warnings


def check_tensor_all(error, cond, message):
    if not cond._is_all_true():
        raise error(message)


def warn_caller(text):
    warnings.warn(text, stacklevel=2)
