"""One HTML file that needs nothing from elsewhere and runs nothing but its own script."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any


def document(title: str, body: str, style: str, script: str = "", data: Any = None) -> str:
    """A page whose policy lets it use this style and this script and fetch nothing.

    Parameters
    ----------
    title : str, as text
    body : str, markup
    style : str
    script : str
    data : anything JSON has, for the script: in the element with id "data"

    Returns
    -------
    str
    """
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    tail = ""
    if script:
        policy += f"; script-src {_hash(script)}"
        words = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        tail = f'\n<script type="application/json" id="data">{_inert(words)}</script>\n<script>{script}</script>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head><body>\n'
        f"{body}{tail}\n</body></html>\n"
    )


def _hash(words: str) -> str:
    return f"'sha256-{b64encode(sha256(words.encode()).digest()).decode()}'"


def _inert(words: str) -> str:
    """JSON in which no markup can begin or end."""
    return words.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
