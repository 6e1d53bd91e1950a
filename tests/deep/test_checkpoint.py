"""A killed run goes on after its last finished round."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.deep.bars import NO_TORCH, bars, narrow, partly_labelled, quick

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytest.importorskip("safetensors", reason=NO_TORCH)

from otprop.deep import CheckpointError, conv_net  # noqa: E402

KILLED = """
import os, signal, sys
from tests.deep.bars import bars, narrow, partly_labelled, quick
X, truth = bars(90)
kill = lambda _: os.kill(os.getpid(), signal.SIGKILL)
quick(network=narrow(), checkpoint=sys.argv[1], callback=kill).fit(X, partly_labelled(truth, 4))
"""


@pytest.fixture(scope="module")
def images():
    X, truth = bars(90)
    return X, partly_labelled(truth, 4)


@pytest.fixture(scope="module")
def undisturbed(images):
    return quick().fit(*images)


@pytest.fixture
def one_round(tmp_path, images):
    """A folder with the first round."""
    quick(n_rounds=1, checkpoint=tmp_path).fit(*images)
    return tmp_path


def assert_same(found, expected):
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    for mine, theirs in zip(found.module_.state_dict().values(), expected.module_.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_run_goes_on_with_the_result_of_an_undisturbed_one(tmp_path, images):
    folder = tmp_path / "run"
    root = Path(__file__).resolve().parents[2]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], cwd=root, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in folder.iterdir()] == ["round-01.safetensors"]
    steps: list[str] = []
    model = quick(network=narrow(), checkpoint=folder)
    model.set_progress(lambda done, total, step: steps.append(step)).fit(*images)
    assert not any(step.startswith("round 1") for step in steps)
    undisturbed = quick(network=narrow()).fit(*images)
    assert_same(model, undisturbed)
    assert [record.n_changed for record in model.rounds_] == [record.n_changed for record in undisturbed.rounds_]
    np.testing.assert_array_equal(model.rounds_[0].codes, undisturbed.rounds_[0].codes)


def test_what_was_learnt_without_labels_is_not_learnt_again(tmp_path, images):
    class KilledError(Exception):
        pass

    def kill(done, total, step):
        if step.startswith("round 1: step"):
            raise KilledError

    options = {"n_rounds": 1, "augment": torch.clone, "n_pretraining_steps": 5}
    undisturbed = quick(**options).fit(*images)
    with pytest.raises(KilledError):
        quick(checkpoint=tmp_path, **options).set_progress(kill).fit(*images)
    assert [path.name for path in tmp_path.iterdir()] == ["round-00.safetensors"]
    steps = []
    model = quick(checkpoint=tmp_path, **options).set_progress(lambda done, total, step: steps.append(step))
    assert_same(model.fit(*images), undisturbed)
    assert not any("without labels" in step for step in steps)


def test_more_rounds_can_be_added_later(one_round, images, undisturbed):
    assert_same(quick(n_rounds=2, checkpoint=one_round).fit(*images), undisturbed)


def test_the_file_is_tensors_and_json(one_round):
    from safetensors import safe_open

    with safe_open(one_round / "round-01.safetensors", framework="pt") as file:
        record = json.loads(file.metadata()["record"])
        assert record["number"] == 1
        assert record["hidden_accuracy"] is None
        assert file.get_tensor("codes").shape == (90,)


@pytest.mark.parametrize("change", [{"learning_rate": 0.01}, {"random_state": 1}, {"augment": torch.clone}])
def test_rounds_of_other_parameters_are_refused_and_left_alone(one_round, images, change):
    before = (one_round / "round-01.safetensors").read_bytes()
    with pytest.raises(CheckpointError, match="round of other data, labels or parameters"):
        quick(checkpoint=one_round, **change).fit(*images)
    assert (one_round / "round-01.safetensors").read_bytes() == before


def test_rounds_of_other_labels_are_refused(one_round, images):
    X, y = images
    other = y.copy()
    other[other == "down"] = "across"
    other[0] = "down"
    with pytest.raises(CheckpointError, match="round of other data, labels or parameters"):
        quick(checkpoint=one_round).fit(X, other)


def test_a_function_that_makes_another_network_now_is_refused(tmp_path, images):
    width = 8

    def network(shape, n_classes):
        return conv_net(shape, n_classes, n_features=width)

    quick(n_rounds=1, checkpoint=tmp_path, network=network).fit(*images)
    width = 9
    with pytest.raises(CheckpointError, match="holds another network than network= makes"):
        quick(checkpoint=tmp_path, network=network).fit(*images)


def test_a_later_round_of_another_run_is_not_overwritten(one_round, images):
    first, second = (one_round / f"round-0{number}.safetensors" for number in (1, 2))
    first.rename(second)
    before = second.read_bytes()
    with pytest.raises(CheckpointError, match=r"round-02\.safetensors is a round of other"):
        quick(checkpoint=one_round, random_state=9).fit(*images)
    assert second.read_bytes() == before


def test_a_damaged_file_is_named(one_round, images):
    (one_round / "round-01.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match=r"round-01\.safetensors cannot be read"):
        quick(checkpoint=one_round).fit(*images)


def test_a_file_in_place_of_the_folder_and_a_seed_that_is_none_are_refused(tmp_path, images):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="is a file; name a folder"):
        quick(checkpoint=tmp_path / "file").fit(*images)
    with pytest.raises(ValueError, match="random_state must be an integer with checkpoint"):
        quick(checkpoint=tmp_path, random_state=None).fit(*images)
