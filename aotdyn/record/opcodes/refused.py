"""Opcodes that break the graph whenever they are met: (reason, detail)."""

_ASYNC = ("generator", "async code is not traced")
_CLASS = ("class_body", "the namespace of a class body or module is not traced")

REFUSED: dict[str, tuple[str, str]] = {
    "ASYNC_GEN_WRAP": _ASYNC,
    "BEFORE_ASYNC_WITH": _ASYNC,
    "END_ASYNC_FOR": _ASYNC,
    "GET_AITER": _ASYNC,
    "GET_ANEXT": _ASYNC,
    "GET_AWAITABLE": _ASYNC,
    "LOAD_BUILD_CLASS": ("class_body", "a class statement"),
    "LOAD_CLASSDEREF": _CLASS,
    "LOAD_NAME": _CLASS,
    "STORE_NAME": _CLASS,
    "DELETE_NAME": _CLASS,
    "SETUP_ANNOTATIONS": _CLASS,
    "IMPORT_STAR": ("import", "from … import *"),
    "PRINT_EXPR": ("opcode", "an interactive statement"),
}
