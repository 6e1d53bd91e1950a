"""tools/results.py and benchmarks/provenance.py: results know their code, and documents say which are older."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks" / "results").exists(), reason="only in the checkout")
SCRIPT = """
import os, pathlib
{imports}
folder = pathlib.Path(os.environ["OTPROP_RESULTS"])
rows = folder / "rows.txt"
rows.write_text((rows.read_text() if rows.exists() else "") + "x")
if os.environ.get("TOY_FAILS"):
    raise SystemExit(3)
head = "# otprop 0.3.0, commit abc, 2026-01-02\\nmethod,runs\\n"
(folder / "toy.csv").write_text(head + "ours," + rows.read_text() + "\\n")
"""


def load(name: str, folder: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tools() -> Iterator[SimpleNamespace]:
    """Modules of their own, so that what a test changes in them does not stay."""
    before, path = dict(sys.modules), list(sys.path)
    modules = {"provenance": "benchmarks", "results": "tools", "write_figures": "tools"}
    yield SimpleNamespace(**{name: load(name, folder) for name, folder in modules.items()})
    sys.path[:] = path
    for name in modules:
        sys.modules.pop(name)
        if name in before:
            sys.modules[name] = before[name]


@pytest.fixture
def toy(tools: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository of one benchmark, whose script imports a module that imports another."""
    sources = tmp_path / "benchmarks"
    (sources / "results").mkdir(parents=True)
    (sources / "toy.py").write_text(SCRIPT.format(imports="import near"))
    (sources / "near.py").write_text("def f(x):\n    from far import g\n    return g(x)\n")
    (sources / "far.py").write_text("def g(x):\n    return x + 1\n")
    monkeypatch.setattr(tools.results, "ROOT", tmp_path)
    monkeypatch.setattr(tools.provenance, "SOURCES", (sources,))
    benchmark = tools.provenance.Benchmark(("toy.py",), ("toy.csv",), peers="theirs")
    monkeypatch.setattr(tools.provenance, "BENCHMARKS", {"toy": benchmark})
    forget(tools)
    yield sources
    forget(tools)


def forget(tools: SimpleNamespace) -> None:
    """As a new process would see the code."""
    for name in ("_read", "_file", "_homes", "code_digests", "data_digests"):
        getattr(tools.provenance, name).cache_clear()


def run(tools: SimpleNamespace, toy: Path, *arguments: str) -> int:
    forget(tools)
    return int(tools.results.main(list(arguments), toy / "results"))


def test_a_benchmark_is_run_once_and_again_when_code_changes_that_it_imports(
    tools: SimpleNamespace, toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tools, toy, "--check") == 1
    assert "there is no result" in capsys.readouterr().out
    assert run(tools, toy) == 0
    written = toy / "results" / "toy.csv"
    assert written.read_text().endswith("method,runs\nours,x\n")
    assert not (toy / "results" / "new" / "toy").exists()
    made = written.stat().st_mtime_ns
    assert run(tools, toy, "--check") == run(tools, toy) == 0
    assert written.stat().st_mtime_ns == made
    before = tools.provenance.origin(written).code["far"]
    (toy / "far.py").write_text("def g(x):\n    return x + 2\n")
    capsys.readouterr()
    assert run(tools, toy, "--check") == 1
    now = tools.provenance.code_digests("toy")["far"]
    assert f"toy.csv (version 0.3.0, 2026-01-02): far: {before} then, {now} now\n" in capsys.readouterr().out
    assert run(tools, toy) == 0
    assert run(tools, toy, "--check") == 0


def test_an_interrupted_benchmark_goes_on_unless_the_code_has_changed(
    tools: SimpleNamespace, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "1")
    assert run(tools, toy) == 1
    assert not (toy / "results" / "toy.csv").exists()
    monkeypatch.delenv("TOY_FAILS")
    assert run(tools, toy) == 0
    assert (toy / "results" / "toy.csv").read_text().endswith("ours,xx\n")
    monkeypatch.setenv("TOY_FAILS", "1")
    (toy / "far.py").write_text("def g(x):\n    return x + 2\n")
    assert run(tools, toy) == 1
    (toy / "far.py").write_text("def g(x):\n    return x + 3\n")
    monkeypatch.delenv("TOY_FAILS")
    assert run(tools, toy) == 0
    assert (toy / "results" / "toy.csv").read_text().endswith("ours,x\n")


def test_a_result_made_with_other_options_is_current_and_still_to_be_run(
    tools: SimpleNamespace, toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tools, toy, "toy", "--", "--draws", "1") == 0
    assert tools.provenance.changes("toy.csv", toy / "results") == []
    capsys.readouterr()
    assert run(tools, toy, "--check") == 1
    assert "of the present code, but perhaps not all of it" in capsys.readouterr().out
    assert (tools.results.prepared("toy", toy / "results") / "toy.csv").read_text().endswith("ours,x\n")
    assert run(tools, toy) == run(tools, toy, "--check") == 0


def test_an_accepted_result_is_current_and_says_why(tools: SimpleNamespace, toy: Path) -> None:
    (toy / "results" / "toy.csv").write_text("# otprop 0.2.0, commit abc, 2026-01-02\nmethod,runs\nours,x\n")
    assert run(tools, toy, "--check") == 1
    assert run(tools, toy, "toy", "--accept", "nothing changed") == 0
    assert run(tools, toy, "--check") == 0
    assert "# accepted: nothing changed\n" in (toy / "results" / "toy.csv").read_text()


@pytest.mark.parametrize(("changed", "kept"), [("otprop.evidence", True), ("near", False)])
def test_rows_of_peers_are_kept_for_the_next_run_if_only_our_code_has_changed(
    tools: SimpleNamespace, toy: Path, changed: str, kept: bool
) -> None:
    then = tools.provenance.code_digests("toy") | {changed: "0000"}
    head = f"# code: {' '.join(f'{key}={value}' for key, value in then.items())}\n"
    (toy / "results" / "toy.csv").write_text(f"{head}method,runs\nours,1\ntheirs,2\n")
    new = tools.results.prepared("toy", toy / "results")
    assert (new / "toy.csv").exists() == kept
    if kept:
        assert tools.provenance.origin(new / "toy.csv").code == tools.provenance.code_digests("toy")
        assert (new / "toy.csv").read_text().endswith("method,runs\ntheirs,2\n")
    new = tools.results.prepared("toy", toy / "results", fresh=True)
    assert not (new / "toy.csv").exists()


def test_data_and_a_script_of_one_name_are_two_things(
    tools: SimpleNamespace, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (toy / "data").mkdir()
    (toy / "data" / "toy.npz").write_text("1")
    monkeypatch.setenv("OTPROP_DATA", str(toy / "data"))
    benchmark = tools.provenance.Benchmark(("toy.py",), ("toy.csv",), ("toy",))
    monkeypatch.setattr(tools.provenance, "BENCHMARKS", {"toy": benchmark})
    assert run(tools, toy) == run(tools, toy, "--check") == 0
    (toy / "toy.py").write_text(SCRIPT.format(imports="import near") + "more = 1\n")
    forget(tools)
    assert [one.partition(":")[0] for one in tools.provenance.changes("toy.csv", toy / "results")] == ["toy"]
    (toy / "data" / "toy.npz").write_text("2")
    forget(tools)
    changed = [one.partition(":")[0] for one in tools.provenance.changes("toy.csv", toy / "results")]
    assert changed == ["data toy", "toy"]


def test_a_result_that_is_not_there_cannot_be_accepted(
    tools: SimpleNamespace, toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(tools, toy, "toy", "--accept", "nothing changed")
    assert "there is no result toy.csv to accept" in capsys.readouterr().err


@pytest.mark.parametrize(
    "same",
    [
        '"""Text."""\n\ndef g(x):  # why\n    """More text."""\n    return x + 1\n',
        "def g(x: int) -> int:\n    return (x\n            + 1)\n",
        "import os\n\n\ndef g(x):\n    return x + 1\n",
    ],
)
def test_comments_docstrings_types_and_layout_do_not_change_a_digest(
    tools: SimpleNamespace, toy: Path, same: str
) -> None:
    before = tools.provenance._read(toy / "far.py")[0]
    (toy / "other.py").write_text(same)
    now = tools.provenance._read(toy / "other.py")[0]
    assert (now == before) == ("import os" not in same)  # what is imported may be another function of the same name


def test_an_import_counts_wherever_it_stands_and_the_text_of_an_error_does_not(
    tools: SimpleNamespace, tmp_path: Path
) -> None:
    texts = (
        "import os\ndef f():\n    raise ValueError('a')\n",
        "def f():\n    import os\n    raise ValueError('b', 1)\n",
        "def f():\n    import os\n    raise KeyError('b', 1)\n",
    )
    found = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.py").write_text(text)
        found.append(tools.provenance._read(tmp_path / f"{number}.py")[0])
    assert found[0] == found[1] != found[2]


def test_every_result_belongs_to_one_benchmark_whose_script_exists(tools: SimpleNamespace) -> None:
    provenance = tools.provenance
    listed = [file for one in provenance.BENCHMARKS.values() for file in one.files]
    assert len(listed) == len(set(listed))
    here = {path.relative_to(provenance.RESULTS).as_posix() for path in provenance.RESULTS.rglob("*.csv")}
    assert {name for name in here if not name.startswith("new/")} - set(listed) == set(provenance.NOT_MEASURED)
    for one in provenance.BENCHMARKS.values():
        scripts = [command.split()[0] for command in one.commands if not command.startswith("-m")]
        assert [name for name in scripts if not (ROOT / "benchmarks" / name).exists()] == []
        assert [name for name in one.also if provenance._file(name, provenance.SOURCES) is None] == []


def test_make_results_installs_every_package_that_a_benchmark_needs(tools: SimpleNamespace) -> None:
    installed = "playwright"  # of the extra `test`
    for file in sorted((ROOT / "benchmarks").glob("requirements*.txt")):
        installed += "\n" + file.read_text(encoding="utf-8").lower()
        assert file.relative_to(ROOT).as_posix() in (ROOT / "Makefile").read_text(encoding="utf-8")
    names = set(re.findall(r"^[\w-]+", installed, re.MULTILINE))
    needed = {package for one in tools.provenance.BENCHMARKS.values() for package in one.needs}
    assert needed - names == {"tabpfn"}  # an old version, which needs changes: see benchmarks/tables.py


def test_a_benchmark_depends_on_the_estimator_and_not_on_the_pages(tools: SimpleNamespace) -> None:
    code = tools.provenance.code_digests("default")
    assert {"default", "otprop._otp", "otprop.evidence", "otprop.transport", "otprop.propagation"} <= set(code)
    assert not {"otprop", "otprop.report", "otprop.studio", "otprop.cli", "otprop.table"} & set(code)
    assert {"otprop.table", "otprop.labelling", "otprop.files"} <= set(tools.provenance.code_digests("tables"))


def test_figures_of_older_results_say_so(tools: SimpleNamespace, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = tools.write_figures
    monkeypatch.setattr(figures, "RESULTS", toy / "results")
    inline = lambda: str(len(figures.read_results("toy.csv")))  # noqa: E731
    table = lambda: figures.table(["runs"], [[row["runs"]] for row in figures.read_results("toy.csv")])  # noqa: E731
    monkeypatch.setattr(figures, "FIGURES", {"one": inline, "many": table})
    (toy / "results" / "toy.csv").write_text("# otprop 0.2.0, commit abc, 2026-01-02\nmethod,runs\nours,x\n")
    mark, end = "<!-- figures: one -->", "<!-- /figures -->"
    alone = f"a {mark}{end}, b {mark}{end}"
    assert figures.rewritten(alone) == (f"a {mark}1 (measured on 2026-01-02 with version 0.2.0){end}, b {mark}1{end}")
    page = figures.rewritten(f"a {mark}{end}\n\n<!-- figures: many -->\n{end}\n")
    assert f"a {mark}1{end}" in page
    assert "| x |\n\n*Measured on 2026-01-02 with version 0.2.0; the code has changed since.*\n\n<!--" in page
    assert run(tools, toy) == 0
    assert "easured" not in figures.rewritten(page)
