"""The text on the reproduction follows from the figures it is given, whatever they are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from paper.tests.made import line

from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.output import Origin, csv_text
from otprop_paper.benchmark.paper import published_score

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "reproduction.py"
DATASETS = ("iris", "heart", "ionosphere", "dermatology", "waveform", "digits", "mnist10k")
PERCENTS = (5.0, 15.0, 25.0, 35.0)

Value = Callable[[str, str, float, str, str], float | None]  # score, data set, percentage, method, rows scored


def write(folder: Path, value: Value) -> str:
    """The text for made-up results; a cell without a value was not run."""
    for tuning in ("honest", "oracle"):
        lines = []
        for dataset in DATASETS:
            for percent in PERCENTS:
                for method in METHODS:
                    found = {
                        f"{score}_{where}": value(score, dataset, percent, method, where)
                        for score in ("nmi", "ari")
                        for where in ("unlabelled", "all")
                    }
                    if None not in found.values():
                        thinned = "one split" if (dataset, method) == ("mnist10k", "released") else ""
                        lines.append(line(dataset, method, percent, 0, 0.5, tuning=tuning, thinned=thinned) | found)
        origin = Origin("otprop benchmark", "0.1.0", "", "2030-01-01")
        (folder / f"stratified-{tuning}.csv").write_text(csv_text(lines, origin))
    out = folder / "reproduction.md"
    run_script("--results", str(folder), "--out", str(out))
    return out.read_text()


def run_script(*arguments: str) -> None:
    """Run the script as a command would, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        patch.setattr(sys, "argv", [str(SCRIPT), *arguments])
        importlib.import_module(SCRIPT.stem).main()


def as_printed(score: str, dataset: str, percent: float, method: str, where: str) -> float:
    """The paper's own figures; 0.1 for methods that it does not have, all rows 0.05 higher."""
    value = published_score(score, dataset, percent, METHODS[method].paper) or 0.1
    return value + 0.05 * (where == "all")


def below(score: str, dataset: str, percent: float, method: str, where: str) -> float | None:
    """Worse with more labels, OTP last, all rows as printed, and MNIST not run."""
    if dataset == "mnist10k":
        return None
    value = published_score(score, dataset, percent, METHODS[method].paper)
    if where == "all" and value is not None:
        return value
    return (0.05 if METHODS[method].paper == "OTP" else 0.9) - percent / 1000


@pytest.fixture(scope="module")
def agreeing(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("agreeing"), as_printed)


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("differing"), below)


def rows(text: str, start: str) -> list[str]:
    return [row for row in text.splitlines() if row.startswith(f"| {start} |")]


def test_results_that_are_the_papers_own_are_found_to_agree_in_every_respect(agreeing: str) -> None:
    assert f"All {28 * len(METHODS)} cells of the honest tables were run." in agreeing
    assert "OTP released as OTP, oracle: by mean rank the order is OTP, LS, LP, LNP, PLCC, CNMF, as claimed" in agreeing
    assert "mean tau 1.00 over 56 cells" in agreeing
    assert "scoring the unlabelled rows is nearer in 392 of 392 cells (100 %): that is what" in agreeing
    assert "the paper's methods agree with it within 0.02 in 392 of 392 cells" in agreeing
    assert "no peer has a higher mean NMI than `OTP()`" in agreeing
    assert "it is at or above the best of all peers in 56 of 56 cells, at least half" in agreeing


def test_results_that_contradict_the_paper_are_said_to(differing: str) -> None:
    assert "so they do for no method" in differing
    assert "not as claimed, LS being ahead of OTP" in differing
    assert "scoring all rows is nearer in" in differing
    assert "have a higher mean NMI than `OTP()`" in differing
    assert "it is at or above the best of all peers in 0 of 48 cells, less than half" in differing
    assert "turns against the method after the first round" in differing


def test_the_papers_one_step_down_is_counted_and_named(agreeing: str) -> None:
    assert "1 of 252 steps from one percentage to the next goes down (PLCC on digits, ARI, 25 to 35 %)" in agreeing


def test_every_cell_of_every_method_is_in_both_tables_run_or_not(agreeing: str, differing: str) -> None:
    for text in (agreeing, differing):
        for dataset in DATASETS:
            for percent in PERCENTS:
                assert len(rows(text, f"{dataset} | {percent:g} % | honest")) == 2
    assert differing.count("| mnist10k | 5 % | honest" + " | not run" * len(METHODS) + " |") == 2
    assert f"**{4 * len(METHODS)} of the {28 * len(METHODS)} cells of the honest tables were not run:**" in differing
    assert "self-trained trees on mnist10k." in differing
    assert "(24 cells)" in differing  # a mean over fewer says so


def test_thinned_cells_are_marked_and_explained(agreeing: str) -> None:
    assert f"{published_score('nmi', 'mnist10k', 5, 'OTP'):.4f}†" in agreeing
    assert "- † OTP released on mnist10k: one split." in agreeing


def test_all_tables_have_as_many_cells_in_every_row(agreeing: str, differing: str) -> None:
    for text in (agreeing, differing):
        for block in text.split("\n\n"):
            if block.startswith("|"):
                assert len({row.count("|") for row in block.splitlines()}) == 1
        assert "nan" not in text.lower()


def test_a_folder_without_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_script("--results", str(tmp_path), "--out", str(tmp_path / "out.md"))
    assert ended.value.code == 2
    assert "run make benchmark first" in capsys.readouterr().err
    assert not (tmp_path / "out.md").exists()
