"""Checks of what a page sends."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from otprop.files import MISSING_MARKERS

MAX_NAME = 200  # characters of the name of a class


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    data = await request.body()
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValueError("the body must be JSON.") from error
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object.")
    return body


def row_of(value: Any, n_rows: int) -> int:
    """A row by its number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < n_rows:
        raise ValueError(f"a row is a number from 0 to {n_rows - 1}.")
    return value


def rows_of(body: dict[str, Any], n_rows: int) -> list[int]:
    """The rows of a body."""
    rows = body.get("rows")
    if not isinstance(rows, list) or not rows:
        raise ValueError("rows must be a list of numbers.")
    return [row_of(row, n_rows) for row in rows]


def class_of(body: dict[str, Any]) -> int | None:
    """The class of a body; None for none."""
    number = body.get("class")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 65535):
        raise ValueError("class must be the id of a class, or null.")
    return number


def share_of(value: Any) -> float | None:
    """An expected error; None for no goal."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 < value < 1:
        raise ValueError("error must be a share between 0 and 1, or null.")
    return float(value)


def query_number(text: str, least: int, most: int) -> int:
    """A whole number of a query, cut to its limits."""
    if not text.isdecimal() or len(text) > 9:
        raise ValueError("a whole number was expected.")
    return max(least, min(int(text), most))


def check_class_name(name: Any, unlabeled: Sequence[str] = ()) -> str:
    """The name of a class without blanks around it."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError("the name of a class must be text.")
    name = name.strip()
    if len(name) > MAX_NAME:
        raise ValueError(f"the name of a class may have {MAX_NAME} characters.")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ValueError("the name of a class may not hold control characters.")
    if name in MISSING_MARKERS or name in unlabeled:
        raise ValueError(f"{name!r} marks rows without a label: choose another name.")
    return name
