"""Opcodes that break the graph whenever they are met: (reason, detail)."""

_ASYNC = ("generator", "async code is not traced")

REFUSED: dict[str, tuple[str, str]] = {
    "ASYNC_GEN_WRAP": _ASYNC,
    "BEFORE_ASYNC_WITH": _ASYNC,
    "END_ASYNC_FOR": _ASYNC,
    "GET_AITER": _ASYNC,
    "GET_ANEXT": _ASYNC,
    "GET_AWAITABLE": _ASYNC,
    "IMPORT_STAR": ("import", "from … import *"),
    "PRINT_EXPR": ("opcode", "an interactive statement"),
}
