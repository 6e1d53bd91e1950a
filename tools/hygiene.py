"""Check text files: blanks at the end of a line, the last newline, conflict marks, size, and plain words.

python tools/hygiene.py FILE ...
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 1_000_000  # bytes
MARKS = (b"<<<<<<< ", b">>>>>>> ")

# Files whose words are checked: the text of pages, the docstrings of modules.
PACKAGES = ("geometry", "transport", "evidence", "propagation", "loop", "deep")
MODULES = [
    "_base",
    "_labels",
    "_otp",
    "_paper_otp",
    "_parameters",
    "_saving",
    "_transport_base",
    "_validation",
    "model_selection",
]
PLAIN = (
    "README.md",
    "docs/*.md",
    *(f"src/otprop/{name}.py" for name in MODULES),
    *(f"src/otprop/{name}/*.py" for name in PACKAGES),
)

# Files that are held to all patterns, modules with their comments and messages.
STRICT = ("README.md", "docs/*.md", "docs/reference/*.md", "src/otprop/**/*.py")
NOT_STRICT = ("changes.md",)
_COUNT = r"(?:one|two|three|four|five|ten|\d+|number|numbers|value|values|entry|output)(?: labels?| rows?| trees?)?"
_PLACE = r"(?:row|class|line|file|fold|round|table|column|source|setting|node|processor|worker)"
WORDS = (
    (re.compile(r"\bmend(?:s|ed|ing)?\b", re.IGNORECASE), "fix"),
    (re.compile(r"\b(?:begin|start)(?:s|ning|ing)?\s+anew\b", re.IGNORECASE), "start over"),
    (re.compile(rf"\b{_COUNT}\s+an?\s+{_PLACE}\b".replace(" ", r"\s+"), re.IGNORECASE), "per, as in 'one per row'"),
    (
        re.compile(r"(?<!\bthere\s)\b(?:is|are)\s+no\s+(?!longer\b|more\b|less\b|fewer\b)[a-z]+", re.IGNORECASE),
        "is not",
    ),
)

STRICT_WORDS = (
    (re.compile(r"\bleav(?:e|es|ing)\b(?:\s+(?!with)\w+){0,2}\s+out\b", re.IGNORECASE), "skip, omit, remove"),
    (re.compile(r"(?<!there\s)\b(?:is|are)\s+none\b(?!\s+of)"), "is not a"),
    (re.compile(r"\bbut\s+for\b(?!\s+(?:this|that)\b)", re.IGNORECASE), "except, or: up to"),
    (re.compile(r"\btruth\s+values?\b", re.IGNORECASE), "boolean"),
    (re.compile(r"\b(?:find|finds|found)\s+out\b", re.IGNORECASE), "detect"),
    (re.compile(r"\b(?:say|says|said|speak|speaks)\s+of\b", re.IGNORECASE), "say about, describe"),
    (re.compile(r"\ball\s+the\s+same\b", re.IGNORECASE), "anyway"),
    (re.compile(r"\bno\s+more\s+is\s+known\b", re.IGNORECASE), "unexpected error; run again with --debug"),
    (re.compile(r"\bno\s+place\s+for\b", re.IGNORECASE), "unexpected argument"),
    (re.compile(r"\bin\s+disorder\b", re.IGNORECASE), "corrupt"),
    (re.compile(r"\bheed(?:s|ed)?\b", re.IGNORECASE), "respect"),
    (re.compile(r"\b(?:MOST|LEAST)_[A-Z]"), "MAX_, MIN_"),
    (re.compile(r"\banew\b", re.IGNORECASE), "again"),
    (re.compile(r"\bof\s+whose\b", re.IGNORECASE), "whose"),
    (re.compile(r"\bgo(?:es)?\s+(?:on\s+with|on\s+where|by\s+(?:the|how|what))\b"), "continue, use"),
    (re.compile(r"\b(?:least|less|too)\s+sure\b", re.IGNORECASE), "least certain, overconfident"),
    (re.compile(r"\bso\s+many\b(?!\s+that\b)", re.IGNORECASE), "this many"),
    (re.compile(r"\b(?:was|were|be|is)\s+taken\s+back\b", re.IGNORECASE), "undone, reverted"),
    (
        re.compile(r"\b(?:row|class|process|group|thread|package|sentence)s?\s+of\s+(?:its|their)\s+own\b"),
        "own, separate",
    ),
)


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a file, each with its line where it has one."""
    data = path.read_bytes()
    if len(data) > LARGEST:
        yield f"{path}: {len(data)} bytes, more than {LARGEST}"
    if data and (not data.endswith(b"\n") or data.endswith(b"\n\n")):
        yield f"{path}: must end with one newline"
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line != line.rstrip(b" \t\r"):
            yield f"{path}:{number}: blanks or a carriage return at the end of the line"
        if line.startswith(MARKS):
            yield f"{path}:{number}: a conflict mark"


def plain_files() -> set[Path]:
    """The files whose words are checked."""
    return {path for pattern in PLAIN for path in ROOT.glob(pattern)}


def strict_files() -> set[Path]:
    """The files that are held to all patterns."""
    return {path for pattern in STRICT for path in ROOT.glob(pattern) if path.name not in NOT_STRICT}


def wording(path: Path, *, strict: bool = False) -> Iterator[str]:
    """Phrases of a page or a module that have a plainer form: of its docstrings, or if strict of all its texts."""
    text = path.read_text(encoding="utf-8")
    read = (texts if strict else docstrings) if path.suffix == ".py" else lambda page: [(1, prose(page))]
    for first, passage in read(text):
        for pattern, plain in (*WORDS, *STRICT_WORDS) if strict else WORDS:
            for found in pattern.finditer(passage):
                line = first + passage.count("\n", 0, found.start())
                yield f"{path}:{line}: {' '.join(found[0].split())!r}, write: {plain}"


def prose(page: str) -> str:
    """A page with empty lines in place of its code blocks and generated figures."""
    blocks = re.compile(r"^```.*?^```|<!-- figures: .*?<!-- /figures -->", re.MULTILINE | re.DOTALL)
    return blocks.sub(lambda block: "\n" * block[0].count("\n"), page)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, each with the line it starts in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.body[0].lineno, text


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The strings and comments of a module, and its names in capitals, each with the line it starts in."""
    literal = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in literal or (token.type == tokenize.NAME and token.string.isupper()):
            yield token.start[0], token.string


def main() -> int:
    """Print the problems of the files named on the command line."""
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    found = [problem for path in paths for problem in problems(path)]
    strict = strict_files()
    found += [problem for path in plain_files().union(strict).intersection(paths)
              for problem in wording(path, strict=path in strict)]  # fmt: skip
    for problem in found:
        print(problem)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
