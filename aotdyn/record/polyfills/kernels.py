"""Triton's functions for the host."""

from ...package.user_kernels import start


def launch(made_of, _, *args, **kwargs):
    kernel, grid = made_of
    return start(kernel, grid, args, kwargs)


def cdiv(x, y):
    return (x + y - 1) // y


def next_power_of_2(n):
    power = 1
    while power < n:
        power *= 2
    return power
