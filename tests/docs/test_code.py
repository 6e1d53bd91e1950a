"""The code of the README, the guide and the reference runs as it is printed."""

from __future__ import annotations

import csv
import doctest
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import otprop.deep
from otprop.cli import main
from otprop.cli._command import COMMANDS, build_parser
from tests.deep.bars import NO_TORCH
from tests.docs.pages import DOCS, README, ROOT, Block, blocks, documents, guide_pages, name

SERVERS = {"studio"}  # commands that run until they are stopped
COMMAND_PAGE = DOCS / "reference" / "commands.md"
TASKS = [DOCS / f"{task}.md" for task in ("tickets", "patients", "survey", "parquet-folder", "web-service")]
PAGES = [DOCS / "index.md", *guide_pages(), DOCS / "extending.md"]
RUNNING = [page for page in PAGES if page not in TASKS and any(block.language == "python" for block in blocks(page))]
SETUP = {  # what the reader of a page has already
    "loop.md": """
import pandas as pd
frame = pd.read_csv("lots.csv", index_col="lot")
frame.index = [f"lot {number}" for number in range(1, len(frame) + 1)]
answers = ["Elstar"] * 20
pd.DataFrame({"row": [50], "label": ["Elstar"]}).to_csv("corrections.csv", index=False)
""",
    "many-rows.md": """
import dask.array as da, dask.dataframe as dd, numpy as np, pandas as pd
from dask import delayed
rng = np.random.default_rng(0)
truth = rng.integers(3, size=300)
rows, labels = rng.normal(size=(300, 4)) + 4 * truth[:, None], np.where(np.arange(300) < 30, truth, -1)
X, y, X_new = da.from_array(rows, chunks=(100, 4)), labels, da.from_array(rows[:50])
names = np.where(labels < 0, None, np.array(["ash", "elm", "oak"], dtype=object)[labels])
frame = dd.from_pandas(pd.DataFrame(rows, columns=list("abcd")).assign(variety=names), npartitions=3)
pairs = [(delayed(rows[:150]), delayed(labels[:150])), (delayed(rows[150:]), delayed(labels[150:]))]
""",
    "networks.md": """
from tests.deep.bars import bars, partly_labelled
images, truth = bars(60, 28)
X, y = images.reshape(60, -1), partly_labelled(truth, 5)
new_images, my_augmentation = bars(6, 28, 1)[0], None
""",
}
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
N_UNLABELLED = 260  # rows of the table in the tests: the pages speak of 3 000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a reader: a part of the orchard under the names that the pages use."""
    with (ROOT / "examples" / "orchard.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    target = head.index("variety")
    kept = [row for row in rows if row[target]] + [row for row in rows if not row[target]][:N_UNLABELLED]
    (tmp_path / "examples").mkdir()
    for path in ("orchard.csv", "lots.csv", "examples/orchard.csv"):
        with (tmp_path / path).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head, *kept])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(page: Path, found: list[Block]) -> None:
    """Run the blocks in one namespace, those with prompts as doctests."""
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(SETUP.get(page.name, ""), namespace)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
    for block in found:
        if ">>> " in block.text:
            test = parser.get_doctest(block.text, namespace, page.name, str(page), block.line)
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            namespace.update(test.globs)
            assert not runner.summarize(verbose=False).failed, f"{name(page)}:{block.line}\n{''.join(report)}"
        else:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)


def masked(text: str) -> str:
    """A text in which every number is the same: numbers differ between versions of what is computed with."""
    return " ".join(re.sub(r"\d[\d.]*", "0", text).replace(">", ",").replace(",", " ,").split())


def run_command(line: str) -> None:
    """Run a line `otprop ...` of a page."""
    arguments = shlex.split(line)[1:]
    assert main(arguments) == 0, line


def run_page(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Run the Python and the commands of a page in order; a block `text` is what the block before it prints."""
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
        elif block.language == "sh":
            for line in block.text.splitlines():
                if line.startswith("otprop ") and line.split()[1] not in SERVERS:
                    run_command(line)
        elif block.language == "text" and not block.text.startswith("curl "):
            for line in block.text.splitlines():
                shapes = [sorted(masked(each).split(" ")) for each in printed.splitlines()]  # classes in any order
                alike = sorted(masked(line).split(" ")) in shapes
                assert alike or masked(line) in masked(printed), f"{page}:{block.line}\n{printed}"
            continue
        printed = "".join(capfd.readouterr())


def otprop_commands(page: Path) -> list[str]:
    """The commands `otprop ...` in the shell blocks of a page."""
    lines = [line for block in blocks(page) if block.language in ("", "sh") for line in block.text.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith("otprop ")]


@pytest.mark.parametrize("page", RUNNING, ids=name)
def test_the_python_of_a_page_runs_and_prints_what_it_says(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.name == "networks.md":
        pytest.importorskip("torch", reason=NO_TORCH)
        for network in (otprop.deep.PseudoLabelTrainer, otprop.deep.NetworkClassifier):
            monkeypatch.setitem(network.__init__.__kwdefaults__, "n_steps", 5)
    if page.name == "pictures.md":
        pytest.importorskip("PIL", reason="needs the extra images")
        monkeypatch.setenv("OTPROP_IMAGE_CACHE", "")
    if page.name == "many-rows.md":
        distributed = pytest.importorskip("distributed", reason="needs the extra dask")
        here = partial(distributed.Client, processes=False, n_workers=1, dashboard_address=":0")
        monkeypatch.setattr("dask.distributed.Client", lambda address: here())
    run_python(page, [block for block in blocks(page) if block.language == "python"])


@pytest.mark.parametrize("page", TASKS, ids=name)
def test_a_page_of_a_task_runs_from_top_to_bottom_and_prints_what_it_says(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if page.name == "web-service.md":
        pytest.importorskip("starlette", reason="needs the extra studio")
    if page.name == "parquet-folder.md":
        distributed = pytest.importorskip("distributed", reason="needs the extra dask")

        @contextmanager
        def client(options: Any) -> Iterator[Any]:
            """Threads in place of processes, which take long to start."""
            with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as found:
                yield found

        monkeypatch.setattr("otprop.cli.folder._client", client)
    monkeypatch.setenv("COLUMNS", "200")
    run_page(page, capfd)


def test_the_readme_prints_what_it_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run_page(README, capfd)


def test_an_output_that_a_page_does_not_print_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "```python\nprint('3 apples')\n```\n\n```text\n{}\n```\n"
    page = tmp_path / "page.md"
    page.write_text(text.format("4 apples"), encoding="utf-8")
    run_page(page, capfd)
    page.write_text(text.format("4 pears"), encoding="utf-8")
    with pytest.raises(AssertionError, match="3 apples"):
        run_page(page, capfd)


@pytest.mark.parametrize("page", [page for page in documents() if otprop_commands(page)], ids=name)
def test_every_command_on_a_page_can_be_parsed(page: Path) -> None:
    for line in otprop_commands(page):
        arguments = shlex.split(line.partition("|")[0])[1:]
        assert arguments[0] in COMMANDS, line
        parser, commands = build_parser(arguments[0])
        commands[arguments[0]].refuse_unknown(arguments[1:])
        parser.parse_args(arguments)


@pytest.mark.parametrize("page", [DOCS / "first-steps.md", DOCS / "index.md", COMMAND_PAGE], ids=name)
def test_the_commands_of_a_page_run(page: Path, folder: Path) -> None:
    for line in otprop_commands(page):
        if line.split()[1] not in SERVERS:
            run_command(line)


def test_the_orchard_is_as_large_as_the_readme_says() -> None:
    with (ROOT / "examples" / "orchard.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), sum(bool(row["variety"]) for row in rows)) == (3000, 40)
    assert "the 3 000 rows of examples/orchard.csv from 40 labels" in README.read_text(encoding="utf-8")


def test_a_page_with_a_wrong_output_fails(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    with pytest.raises(AssertionError, match="Expected"):
        run_python(page, [Block("python", ">>> 1 + 1\n3\n", 1)])
    with pytest.raises(NameError):
        run_python(page, [Block("python", "undefined\n", 1)])


def test_commands_of_a_page_are_found() -> None:
    assert any("--report" in line for line in otprop_commands(README))
