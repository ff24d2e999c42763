"""Graphs for GPUs, compiled where there is none: Inductor is shown a made-up device, and Triton
compiles its kernels for the architecture that is asked for."""
