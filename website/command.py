"""The reference of the command, made from what it declares."""

from collections.abc import Iterator
from typing import Any

import typer.main


def sections() -> str:
    """A section for each verb, and for each command of a verb that has some."""
    from chainroute.cli import app

    return "\n".join(_verbs("chainroute", typer.main.get_command(app), 2))


def _verbs(path: str, group: Any, level: int) -> Iterator[str]:
    for name, verb in group.commands.items():
        yield from _section(f"{path} {name}", verb, level)
        if hasattr(verb, "commands"):
            yield from _verbs(f"{path} {name}", verb, level + 1)


def _section(path: str, verb: Any, level: int) -> Iterator[str]:
    """The heading, how it is called, what it does, and a table of what it takes."""
    shown = [p for p in verb.params if not p.hidden]
    usage = " ".join([path, *(_placeholder(p) for p in shown if p.param_type_name == "argument")])
    yield f"{'#' * level} {path.removeprefix('chainroute ')}\n"
    yield f"    {usage}{' COMMAND' * hasattr(verb, 'commands')} [OPTIONS]\n"
    yield f"{(verb.help or '').strip()}\n"
    rows = [_row(p) for p in shown]
    if rows:
        yield "\n".join(["| | what it is | by default |", "| --- | --- | --- |", *rows]) + "\n"


def _placeholder(argument: Any) -> str:
    """An argument in the usage: in brackets if it may be left out, with dots if there may be several."""
    text = _name(argument) + "..." * (argument.nargs == -1)
    return text if argument.required else f"[{text}]"


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _row(parameter: Any) -> str:
    """A row of the table: names, help, and the default where one is set."""
    option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in (parameter.opts if option else [_name(parameter)]))
    unset = parameter.default in (None, False, [], ()) or callable(parameter.default)
    default = "needed" if parameter.required else "" if unset else f"`{parameter.default}`"
    text = (parameter.help or "").replace("|", "\\|") + " May be repeated." * bool(
        option and parameter.multiple
    )
    return f"| {names} | {text} | {default} |"
