"""Encodings of text files: decoded to UTF-8, written back in the encoding of the file."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

import numpy as np

from otprop._validation import ParameterError
from otprop.files._errors import file_error

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = [*range(9), *range(14, 27), *range(28, 32)]  # bytes that do not occur in text
_SNIFFED = 65_536  # bytes searched for the NULs of UTF-16


@dataclass(frozen=True)
class Encoding:
    """The encoding of a file, and its byte order mark."""

    name: str
    bom: bytes = b""

    def encode(self, utf8: bytes) -> bytes:
        """The bytes of the file for a piece of its text."""
        return utf8 if self.name == "utf-8" else utf8.decode("utf-8").encode(self.name)


def to_utf8(data: bytes, encoding: str | None, origin: str) -> tuple[bytes, Encoding, str | None]:
    """The text as UTF-8 without its byte order mark, its encoding, and a note where that was guessed."""
    mark, marked = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", None))
    note, guessed = None, False
    if encoding is not None:
        name = _known(encoding)
        if marked is not None and (name == marked or marked.startswith(f"{name}-")):
            name = marked
        else:
            mark = b""
            name += "-le" if name in ("utf-16", "utf-32") else ""
    elif marked is not None:
        name, note = marked, f"encoding {marked} (byte order mark)" if marked != "utf-8" else None
    else:
        name, note = _guess(data, origin)
        guessed = name == "utf-8"
    found = Encoding(name, mark)
    body = data[len(mark) :] if mark else data
    text = body if guessed else _decode(body, found, origin)
    where = text.find(b"\0")
    if where >= 0:
        problem = f"has a NUL byte in line {line_of(text, where)}: it is not a text file, or has another encoding"
        raise file_error(origin, problem, "pass {} if it is that", encoding="utf-16")
    return text, found, note


def _known(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "a".encode(name)
    except (LookupError, ValueError):
        why = f"must be an encoding that Python knows, such as utf-8, utf-16, cp1252; got {encoding!r}."
        raise ParameterError("encoding", why) from None
    return {"utf-8-sig": "utf-8", "ascii": "utf-8"}.get(name, name)


def _guess(data: bytes, origin: str) -> tuple[str, str | None]:
    """UTF-16 if it has many NULs, UTF-8 if it is valid, else cp1252, else Latin-1, in which everything is valid."""
    head = np.frombuffer(data[:_SNIFFED], dtype=np.uint8)
    zero = head == 0
    if zero.any():
        even, odd = zero[::2].mean(), zero[1::2].mean() if len(zero) > 1 else 0.0
        if odd > 0.3 and even < 0.05:
            return "utf-16-le", "encoding utf-16-le, guessed"
        if even > 0.3 and odd < 0.05:
            return "utf-16-be", "encoding utf-16-be, guessed"
    wrong = _wrong_utf8(data)
    if wrong is None:
        return "utf-8", None
    if np.isin(head, _CONTROL).mean() > 0.01:
        raise file_error(origin, "is not a table: it is neither text nor a known format", "check what it is")
    name = "cp1252"
    try:
        data.decode(name)
    except UnicodeDecodeError:
        name = "latin-1"
    why = f"guessed since line {line_of(data, wrong)} is not UTF-8 (set the encoding if this is wrong)"
    return name, f"encoding {name}, {why}"


def _wrong_utf8(data: bytes) -> int | None:
    """The position of the first byte that is not valid UTF-8."""
    block = 1 << 24
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, max(len(data), 1), block):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + block], final=start + block >= len(data))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None


def _decode(body: bytes, encoding: Encoding, origin: str) -> bytes:
    """The text as UTF-8, after a check that it can be written back byte for byte."""
    name = encoding.name
    if name == "utf-8":
        wrong = _wrong_utf8(body)
        if wrong is not None:
            problem = f"is not UTF-8: line {line_of(body, wrong)} has the byte 0x{body[wrong]:02X}"
            raise file_error(origin, problem, "pass its encoding, {} for instance", encoding="cp1252")
        return body
    try:
        text = body.decode(name)
        utf8 = text.encode("utf-8")
    except UnicodeError as error:
        problem = f"is not {name}: line {line_of(body, getattr(error, 'start', 0))} cannot be decoded"
        raise file_error(origin, problem, "pass its encoding with {}", encoding=None) from error
    if text.encode(name) != body:
        raise file_error(origin, f"would not come back unchanged from {name}", "convert it to UTF-8 first")
    return utf8


def line_of(data: bytes, position: int) -> int:
    """The number of the line, from 1, that a byte is in; lines end in LF, CR or CR LF."""
    before = data[:position]
    return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
