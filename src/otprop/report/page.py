"""Pages from templates (one HTML file with style, script and data, which loads nothing else), and values as text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import floor
from typing import Any

from otprop._errors import install_command

_NOT_SHOWN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_UNSAFE = re.compile("[&<>\ud800-\udfff]")  # could start markup, or has no UTF-8


def render_page(
    template: str,
    style: str,
    scripts: Sequence[str] = (),
    data: Any = None,
    package: str = "otprop.report",
    **context: Any,
) -> str:
    """Fill a template; its content security policy allows this style and these scripts only, and no request.

    `data` is JSON for the scripts, in the element with id "data". The files are in the folder `templates` of
    `package`, whose templates can extend and import those here.
    """
    environment = _environment(package)
    from markupsafe import Markup

    css, script = _file(package, style), "\n".join(_file(package, name) for name in scripts)
    policy = f"default-src 'none'; img-src data:; style-src {_hash(css)}; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src {_hash(script)}"
        context |= {"script": Markup(script), "data": Markup(_json(data))}
    return environment.get_template(template).render(style=Markup(css), policy=Markup(policy), **context)


@cache
def _environment(package: str) -> Any:
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(f"pages need jinja2: {install_command('files')}") from error
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("otprop.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = {"text": display_text, "count": format_count, "percent": format_percent, "threshold": format_threshold}
    environment.filters.update(filters)
    return environment


def _file(package: str, name: str) -> str:
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _json(data: Any) -> str:
    """JSON that holds no markup and can be encoded as UTF-8."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def display_text(value: object, length: int = 200) -> str:
    """A value of the file as text: control characters replaced, cut to `length` characters, empty for None."""
    if value is None:
        return ""
    text = _NOT_SHOWN.sub("\N{REPLACEMENT CHARACTER}", str(value)[: length + 1])
    return text if len(text) <= length else text[: length - 1] + "…"


def format_count(number: int) -> str:
    """An integer with narrow spaces between thousands.

    Examples
    --------
    >>> from otprop.report.page import format_count
    >>> format_count(1234567).split()
    ['1', '234', '567']
    """
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def format_percent(share: float) -> str:
    """A share as a percentage, with more digits near 0 % and 100 %.

    Examples
    --------
    >>> from otprop.report.page import format_percent
    >>> [format_percent(share).split()[0] for share in (0.00012, 0.021, 0.98, 0.9999)]
    ['0.01', '2.1', '98', '99.99']
    """
    edge = min(abs(share), abs(1.0 - share))
    if 0 < edge < 0.00005:
        return "under 0.01\N{NO-BREAK SPACE}%" if share < 0.5 else "over 99.99\N{NO-BREAK SPACE}%"
    digits = 2 if 0 < edge < 0.001 else 1 if 0 < edge < 0.1 else 0
    text = f"{100 * share:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "\N{NO-BREAK SPACE}%"


def format_threshold(confidence: float) -> str:
    """A confidence rounded down, so that rows of this confidence are not below it.

    Examples
    --------
    >>> from otprop.report.page import format_threshold
    >>> format_threshold(0.98765), format_threshold(0.99998765)
    ('0.9876', '0.999987')
    """
    digits = 4 if confidence < 0.999 else 6
    return f"{floor(confidence * 10**digits) / 10**digits:.{digits}f}"
