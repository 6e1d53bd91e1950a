"""What the fuzzers share: numbered examples, counts, and checks of messages and warnings."""

from __future__ import annotations

import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

SECONDS_AN_EXAMPLE = 120
EXPECTED_WARNINGS = (ConvergenceWarning, DataConversionWarning)


class CheckError(AssertionError):
    """Something that must hold does not."""


def check(holds: object, what: str) -> None:
    """Fail with a sentence unless it holds."""
    if not holds:
        raise CheckError(what)


@dataclass
class Run:
    """The options of a run and what it has counted.

    Attributes
    ----------
    name : str, of the fuzzer
    seed : int
    seconds : float, how long examples are made; the last one is finished
    first : int, number of the first example
    examples : int or None, at most so many examples
    """

    name: str
    seed: int
    seconds: float
    first: int = 0
    examples: int | None = None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def failures(self) -> int:
        return self.counts["failed"]

    def count(self, what: str, n: int = 1) -> None:
        self.counts[what] += n

    def fail(self, number: int, text: str) -> None:
        """Count a failure and show how to repeat it."""
        self.count("failed")
        again = f"python fuzz/run.py --only {self.name} --seed {self.seed} --first {number} --examples 1"
        print(f"--- {self.name} failed; again: {again}\n{text}", file=sys.stderr, flush=True)

    def numbers(self) -> Iterator[int]:
        """The numbers of the examples, until the time is over."""
        end, number = time.monotonic() + self.seconds, self.first
        while time.monotonic() < end and (self.examples is None or number < self.first + self.examples):
            yield number
            number += 1

    def each(self, example: Callable[[np.random.Generator], str]) -> None:
        """Run examples, each with a generator of its own; `example` returns what is counted."""
        for number in self.numbers():
            self.count("examples")
            try:
                with no_endless_loop():
                    self.count(example(np.random.default_rng([self.seed, number])))
            except Exception as error:
                self.fail(number, "".join(traceback.format_exception(error)))


@contextmanager
def no_endless_loop(seconds: int = SECONDS_AN_EXAMPLE) -> Iterator[None]:
    """Raise an error in a block that takes too much CPU time, or on the clock ten times as long: others may be busy."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, 10 * seconds)}
    before = {number: signal.signal(number, stop) for number, _ in timers.values()}
    for timer, (_, limit) in timers.items():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, (number, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Let the process use at most `more` bytes beside those that it has when the block begins."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def no_foreign_warning(from_classifiers: bool = False) -> Iterator[None]:
    """Fail on a warning that the package does not raise itself: those of NumPy, deprecations and the like.

    With `from_classifiers`, RuntimeWarnings of code outside of the package are those of the user's classifiers.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for found in caught:
        ours = found.category is UserWarning or issubclass(found.category, EXPECTED_WARNINGS)
        if from_classifiers and found.category is RuntimeWarning and "otprop" not in Path(found.filename).parts:
            continue
        check(ours, f"{found.category.__name__} at {found.filename}:{found.lineno}: {found.message}")


def check_sentence(text: str) -> None:
    """Fail unless it is one line, neither empty nor the text of an internal error."""
    check(text.strip() and "\n" not in text.strip(), f"no message of one line: {text!r}")
    internal = re.search(r"Traceback|object has no attribute|Error:|--debug|broadcast|out of bounds for", text)
    check(not internal, f"an internal message: {text!r}")
