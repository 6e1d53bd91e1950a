"""tools/hygiene.py finds untidy files and phrases that have a plainer form."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import README, ROOT


@pytest.fixture(scope="module")
def hygiene() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hygiene", ROOT / "tools" / "hygiene.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_and_docstrings_are_in_plain_words(hygiene: ModuleType) -> None:
    files = sorted(hygiene.plain_files())
    assert {README, ROOT / "docs" / "index.md", ROOT / "src" / "otprop" / "_otp.py"} <= set(files)
    assert [problem for path in files for problem in hygiene.wording(path)] == []


def test_edited_files_have_no_phrase_of_the_list_not_even_in_comments_and_messages(hygiene: ModuleType) -> None:
    files = sorted(hygiene.strict_files())
    assert {README, ROOT / "docs" / "label.md", ROOT / "src" / "otprop" / "table" / "target.py"} <= set(files)
    assert [problem for path in files for problem in hygiene.wording(path, strict=True)] == []


@pytest.mark.parametrize(
    "phrase",
    [
        "Columns to leave out",
        "standard input is none",
        "up to a constant, but for the first",
        "a truth value",
        "the encoding is found out",
        "what the model says of it",
        "use it all the same",
        "no more is known",
        "MOST_ROWS",
        "one a row",
        "the file is written anew",
        "a table of whose rows few are labelled",
        "the next run goes on with the rest",
        "the least sure rows",
        "a process of its own",
    ],
)
def test_strict_files_are_held_to_more_patterns_in_strings_and_comments(
    phrase: str, tmp_path: Path, hygiene: ModuleType
) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"{phrase}.\n", encoding="utf-8")
    module.write_text(f'TEXT = "{phrase}"  # {phrase}\n', encoding="utf-8")
    assert len(list(hygiene.wording(page, strict=True))) == 1
    assert len(list(hygiene.wording(module, strict=True))) == 2


@pytest.mark.parametrize("phrase", ["None where there is none", "is none of these", "5 left over"])
def test_plain_phrases_are_accepted_in_strict_files(phrase: str, tmp_path: Path, hygiene: ModuleType) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{phrase}.\n", encoding="utf-8")
    assert list(hygiene.wording(page, strict=True)) == []


@pytest.mark.parametrize(
    "phrase",
    [
        "Once it is mended",
        "`--force` begins anew",
        "weights, one a row",
        "one a\nrow",
        "5 labels a class",
        "one output a file",
        "The column is no feature",
    ],
)
def test_phrases_with_a_plainer_form_are_found_in_pages_and_docstrings(
    phrase: str, tmp_path: Path, hygiene: ModuleType
) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"First line.\n{phrase}.\n", encoding="utf-8")
    module.write_text(f'def f():\n    """{phrase}."""\n', encoding="utf-8")
    for path in (page, module):
        (problem,) = hygiene.wording(path)
        assert problem.startswith(f"{path}:2: ")


@pytest.mark.parametrize(
    "phrase",
    [
        "weights, one per row",
        "There is no telemetry",
        "It is no longer finite",
        "We recommend it",
        "press a key to label a row",
        "the value of a row",
    ],
)
def test_plain_phrases_are_accepted(phrase: str, tmp_path: Path, hygiene: ModuleType) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{phrase}.\n", encoding="utf-8")
    assert list(hygiene.wording(page)) == []


def test_code_and_generated_figures_are_not_checked_for_words(tmp_path: Path, hygiene: ModuleType) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(
        "```sh\nmend a row\n```\n\n<!-- figures: x -->\n\n| one a class |\n\n<!-- /figures -->\n", encoding="utf-8"
    )
    module.write_text('TEXT = "one a row"  # one a class\n', encoding="utf-8")
    assert [*hygiene.wording(page), *hygiene.wording(module)] == []


def test_untidy_files_are_found(tmp_path: Path, hygiene: ModuleType) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"a \n<<<<<<< HEAD\nb")
    assert [problem.removeprefix(str(path)) for problem in hygiene.problems(path)] == [
        ": must end with one newline",
        ":1: blanks or a carriage return at the end of the line",
        ":2: a conflict mark",
    ]
