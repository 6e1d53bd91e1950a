"""Pages from templates: one HTML file with its style, script and data, which loads nothing else."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from otprop._errors import install_command

try:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise ImportError(f"pages need jinja2: {install_command('files')}") from error

from otprop.report.formatting import display_text, format_count, format_percent, format_threshold

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
    css, script = _file(package, style), "\n".join(_file(package, name) for name in scripts)
    policy = f"default-src 'none'; img-src data:; style-src {_hash(css)}; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src {_hash(script)}"
        context |= {"script": Markup(script), "data": Markup(_json(data))}
    return _environment(package).get_template(template).render(style=Markup(css), policy=Markup(policy), **context)


@cache
def _environment(package: str) -> Environment:
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
