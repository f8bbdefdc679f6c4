"""For the reference: a field's comment, above it or on its line, is its description."""

import re
from typing import Any

from griffe import Attribute, Class, Docstring, Extension


class FieldComments(Extension):
    """Gives every field of a class that has no docstring the words of its comment."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        lines = cls.lines_collection[cls.filepath] if cls.lines_collection else []
        for member in cls.members.values():
            if isinstance(member, Attribute) and not member.docstring and member.lineno and member.endlineno:
                comment = _comment(lines, member.lineno, member.endlineno)
                member.docstring = Docstring(comment, parent=member) if comment else None


def _comment(lines: list[str], first: int, last: int) -> str:
    """The comments before a field and at its end, without what they tell the type checker."""
    here = re.sub(r"#\s*type: ignore\S*", "", lines[last - 1]).partition("# ")[2]
    above = []
    for line in reversed(lines[: first - 1]):
        if not line.strip().startswith("# ") or line.strip().startswith("# --"):
            break
        above.insert(0, line.strip()[2:])
    text = " ".join(filter(None, [*above, here]))
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
