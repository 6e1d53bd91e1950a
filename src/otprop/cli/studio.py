"""`otprop studio`: label a table in the browser."""

from __future__ import annotations

import argparse
import os
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otprop._errors import install_command
from otprop.cli._command import UsageError, add_command, hint_text
from otprop.cli._options import (
    FILE_KINDS,
    add_reading_options,
    add_target_options,
    make_request,
    opening_options,
    reading_options,
    require_target,
)

if TYPE_CHECKING:
    from otprop.studio.source import Source

_NEEDED = ("starlette", "uvicorn")
_EXAMPLE = """\
example:
  otprop studio lots.csv --target variety

Label rows in the browser by key, with a map of all rows; each label updates the labels of the other rows. TARGET
need not exist in FILE yet. FILE, which may be a folder of pictures or texts, is never changed: every label is saved at
once in the session file FILE.otprop, and the next start continues from there. The server listens only on this machine
and runs until Ctrl-C.
Exit status: 0 ended by Ctrl-C, 1 failure, 2 wrong usage, 143 terminated.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(commands, "studio", run_command, usage="studio FILE --target COLUMN [options]", text=_EXAMPLE)
    add = parser.add_argument
    add("file", metavar="FILE", help=f"{FILE_KINDS}; or a folder of pictures or texts")
    add("--target", metavar="COLUMN", help="column with the labels; may be new")
    add("--port", type=int, metavar="N", help="port; default: 8756, or the next free one")
    add("--no-browser", action="store_true", help="print the address and do not open it")
    add("--session", metavar="PATH", help="file in which the labels are saved; default: FILE.otprop")
    add(
        "--rescue",
        metavar="PATH",
        help="write the readable labels of a damaged session to a CSV file for --corrections",
    )
    add("--sample", type=int, metavar="N", help="open only N random rows")
    add("--quiet", action="store_true", help="print only the address and errors")
    add("--debug", action="store_true", help="print the traceback of an error")
    add_target_options(parser)
    add_reading_options(parser)


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Open the table, serve it until Ctrl-C; returns the exit status."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f"otprop studio needs {' and '.join(missing)}: {install_command('studio')}")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait must not keep the cores busy
    require_target(options)
    source, session = _source(options), Path(options.session or f"{os.path.normpath(options.file)}.otprop")
    from otprop.cli._streams import bar
    from otprop.cli.console import Messages
    from otprop.studio.run import Studio
    from otprop.table.pictures import quiet_pillow

    messages = Messages(quiet=options.quiet)
    if options.rescue is not None:
        from otprop.studio.export import rescue_labels

        n_labels = rescue_labels(session, Path(options.rescue))
        messages.notes([f"labels rescued: {n_labels}, from {session} to {options.rescue}"])
        return 0
    with bar(quiet=options.quiet) as progress:
        progress(0, 0, f"reading {options.file}")
        studio = Studio(source, session, options.port, hint_text)
    messages.notes(studio.notes)
    try:
        with quiet_pillow():
            studio.serve(lambda: _tell(studio.url, session, browser=not options.no_browser))
    except KeyboardInterrupt as stop:
        if type(stop) is not KeyboardInterrupt:  # SIGTERM
            raise
    messages.notes([studio.session.ending])
    return 0


def _tell(url: str, session: Path, *, browser: bool) -> None:
    """Print the address, and open it where there is a browser."""
    print(f"{url}\nsaved in {session}; end with Ctrl-C", flush=True)  # noqa: T201 - what the command is for
    if browser:
        try:
            opened = webbrowser.open(url)
        except webbrowser.Error:
            opened = False
        if not opened:
            print("no browser was found: open the address yourself", flush=True)  # noqa: T201


def _source(options: argparse.Namespace) -> Source:
    """The file and how to read it."""
    from otprop.studio.source import Source

    if options.file == "-":
        raise UsageError("the studio cannot read standard input; pass a file.")
    if options.port is not None and not 0 <= options.port <= 65_535:
        raise UsageError(f"--port {options.port}: give a number from 1 to 65535, or 0 for any.")
    if options.sample is not None and options.sample < 3:
        raise UsageError(f"--sample {options.sample}: give the number of rows, at least 3.")
    reading = {**reading_options(options), **opening_options(options)}
    return Source(options.file, make_request(options), reading, options.sample)
