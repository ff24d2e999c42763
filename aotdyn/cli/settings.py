"""`--option NAME=VALUE` of the commands."""

import json
from collections.abc import Callable
from typing import Any

import click


def setting_option(help: str) -> Callable:
    """The option, given to the command as `settings`: a tuple of texts."""
    return click.option("--option", "settings", multiple=True, metavar="NAME=VALUE", help=help)


def read(texts: tuple[str, ...]) -> dict[str, Any]:
    """What was given: JSON where it is some, else text."""
    return dict(map(_setting, texts))


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
