"""A killed run goes on after its last finished round."""

from __future__ import annotations

import errno
import json
import os
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
from tests.deep.sources import AUGMENT, made_by  # noqa: E402

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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_steps": 30}, "n_steps is 30, the rounds were made with 40"),
        ({"random_state": 1}, "random_state is 1, the rounds were made with 0"),
        ({"augment": torch.clone}, "augment is <built-in method clone.*>, the rounds were made with None"),
        (
            {"learning_rate": 0.01, "batch_size": 16},
            "batch_size is 16, the rounds were made with 32; learning_rate is 0.01",
        ),
    ],
)
def test_rounds_of_other_parameters_are_refused_by_name_and_left_alone(one_round, images, change, message):
    before = (one_round / "round-01.safetensors").read_bytes()
    with pytest.raises(CheckpointError, match=rf"round-01\.safetensors is a round of another run: {message}"):
        quick(checkpoint=one_round, **change).fit(*images)
    assert (one_round / "round-01.safetensors").read_bytes() == before


def test_rounds_of_other_labels_or_rows_are_refused(one_round, images):
    X, y = images
    other = y.copy()
    other[other == "down"] = "across"
    other[0] = "down"
    with pytest.raises(CheckpointError, match="another run: y holds other labels than"):
        quick(checkpoint=one_round).fit(X, other)
    with pytest.raises(CheckpointError, match="another run: X holds other values than"):
        quick(checkpoint=one_round).fit(X + 1, y)
    with pytest.raises(CheckpointError, match=r"X is an array of shape \(89, 8, 8\), the rounds were made with an"):
        quick(checkpoint=one_round).fit(X[:-1], y[:-1])


def test_rounds_of_an_older_format_are_refused(one_round, images):
    from safetensors.torch import load_file, save_file

    path = one_round / "round-01.safetensors"
    save_file(load_file(path), path, metadata={"format": "otprop.deep 1", "fingerprint": "0", "record": "{}"})
    with pytest.raises(CheckpointError, match="is a round of another version of otprop"):
        quick(checkpoint=one_round).fit(*images)


def test_an_edited_augmentation_is_refused(tmp_path, images):
    quick(n_rounds=1, checkpoint=tmp_path, augment=made_by(AUGMENT, "augment")).fit(*images)
    edited = made_by(AUGMENT.replace("0.5", "0.25"), "augment")
    with pytest.raises(CheckpointError, match="augment differs in its code or values from the one that the rounds"):
        quick(checkpoint=tmp_path, augment=edited).fit(*images)


def test_a_function_that_makes_another_network_now_is_refused(tmp_path, images):
    width = 8

    def network(shape, n_classes):
        return conv_net(shape, n_classes, n_features=width)

    quick(n_rounds=1, checkpoint=tmp_path, network=network).fit(*images)
    width = 9
    with pytest.raises(CheckpointError, match="network differs in its code or its layers"):
        quick(checkpoint=tmp_path, network=network).fit(*images)


def test_a_later_round_of_another_run_is_not_overwritten(one_round, images):
    first, second = (one_round / f"round-0{number}.safetensors" for number in (1, 2))
    first.rename(second)
    before = second.read_bytes()
    with pytest.raises(CheckpointError, match=r"round-02\.safetensors is a round of another run"):
        quick(checkpoint=one_round, random_state=9).fit(*images)
    assert second.read_bytes() == before


def test_a_damaged_file_is_named(one_round, images):
    (one_round / "round-01.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match=r"round-01\.safetensors cannot be read"):
        quick(checkpoint=one_round).fit(*images)


def test_a_changed_byte_among_the_weights_is_noticed(one_round, images):
    path = one_round / "round-01.safetensors"
    content = bytearray(path.read_bytes())
    content[-20] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match=r"round-01\.safetensors is damaged.*Delete it to run this round again"):
        quick(checkpoint=one_round).fit(*images)


class TiedNet(torch.nn.Module):
    """Two layers that share one weight."""

    def __init__(self, shape, n_classes):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
        self.second.weight, self.head = self.first.weight, torch.nn.Linear(64, n_classes)

    def forward(self, rows):
        return self.head(torch.relu(self.second(torch.relu(self.first(rows.flatten(1))))))


def test_rounds_of_a_network_with_tied_weights_are_kept(tmp_path, images):
    quick(network=TiedNet, n_rounds=1, checkpoint=tmp_path).fit(*images)
    model = quick(network=TiedNet, checkpoint=tmp_path).fit(*images)
    assert_same(model, quick(network=TiedNet).fit(*images))
    assert model.module_.first.weight is model.module_.second.weight


def test_the_average_of_a_tied_weight_moves_once_in_a_step():
    from otprop.deep.training import _move_average

    module, average = TiedNet((8, 8), 3), TiedNet((8, 8), 3)
    expected = (average.first.weight + module.first.weight) / 2
    _move_average(average, module, 0.5)
    torch.testing.assert_close(average.first.weight, expected)


def test_a_file_in_place_of_the_folder_and_a_seed_that_is_none_are_refused(tmp_path, images):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="is a file; name a folder"):
        quick(checkpoint=tmp_path / "file").fit(*images)
    with pytest.raises(ValueError, match="random_state must be an integer with checkpoint"):
        quick(checkpoint=tmp_path, random_state=None).fit(*images)


def refuse_new_files(monkeypatch, folder):
    """Make the folder as one on a disk that can only be read."""
    real = os.open

    def refusing(path, flags, *others, **more):
        if flags & os.O_CREAT and Path(path).parent == folder.resolve():
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, *others, **more)

    monkeypatch.setattr(os, "open", refusing)


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, images, monkeypatch):
    (tmp_path / "file").write_text("mine")
    steps = []
    inside = quick(checkpoint=tmp_path / "file" / "rounds").set_progress(lambda *step: steps.append(step))
    with pytest.raises(CheckpointError, match=r"^checkpoint='.*rounds' cannot be written: Not a directory"):
        inside.fit(*images)
    refuse_new_files(monkeypatch, tmp_path)
    read_only = quick(checkpoint=tmp_path).set_progress(lambda *step: steps.append(step))
    with pytest.raises(CheckpointError, match=r"^checkpoint='.*' cannot be written: Read-only file system"):
        read_only.fit(*images)
    assert not steps


def test_finished_rounds_can_be_read_from_a_folder_that_cannot_be_written(one_round, images, monkeypatch):
    refuse_new_files(monkeypatch, one_round)
    assert len(quick(n_rounds=1, checkpoint=one_round).fit(*images).rounds_) == 1
    with pytest.raises(CheckpointError, match="cannot be written"):
        quick(n_rounds=2, checkpoint=one_round).fit(*images)


def test_a_disk_that_is_full_later_leaves_the_rounds_before(tmp_path, images, monkeypatch):
    with pytest.raises(CheckpointError, match=r"cannot be written: Read-only.*finished rounds are kept"):
        quick(checkpoint=tmp_path, callback=lambda _: refuse_new_files(monkeypatch, tmp_path)).fit(*images)
    assert [path.name for path in tmp_path.iterdir()] == ["round-01.safetensors"]


def rewritten(folder, change=lambda tensors: None, record=None):
    """Change the first round as one who knows the format would: with a digest that fits."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    from otprop.deep.checkpoint import _digest

    path = folder / "round-01.safetensors"
    with safe_open(path, framework="pt") as file:
        header, tensors = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors)
    header["record"] = header["record"] if record is None else record
    header["digest"] = _digest(header["record"], tensors)
    save_file(tensors, path, metadata=header)


def first_weight(tensors):
    return next(name for name in tensors if name.endswith("weight"))


def infinite(tensors):
    tensors[first_weight(tensors)].view(-1)[3] = torch.inf


def halved(tensors):
    tensors[first_weight(tensors)] = tensors[first_weight(tensors)].to(torch.bfloat16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("codes"), "is damaged: it holds no class numbers of the rows"),
        (lambda tensors: tensors.update(codes=torch.zeros(90)), "is damaged: it holds no class numbers of the rows"),
        (lambda tensors: tensors.update(codes=tensors["codes"][:-1].clone()), "it holds other rows or classes"),
        (lambda tensors: tensors.update(codes=tensors["codes"] + 1), "it holds other rows or classes"),
        (infinite, r"holds weights that are not finite, in .*weight"),
        (halved, r"another network than network= makes: .*weight is torch.bfloat16, not torch.float32"),
        (lambda tensors: tensors.pop(first_weight(tensors)), "another network than network= makes: .*Missing key"),
    ],
    ids=["no codes", "codes of no number", "few codes", "other codes", "infinite", "bfloat16", "a part less"],
)
def test_a_round_that_was_changed_with_care_is_refused_in_one_line(one_round, images, change, message):
    rewritten(one_round, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        quick(checkpoint=one_round).fit(*images)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("[]", "it has no record of its round"),
        ("[" * 100_000, "it has no record of its round"),
        ("", "it has no record of its round"),
        ("{}", "its record has other parts than a round has"),
        ('{"number": "1"}', "its record has other parts than a round has"),
    ],
)
def test_a_round_whose_record_is_none_is_refused(one_round, images, record, message):
    rewritten(one_round, record=record)
    with pytest.raises(CheckpointError, match=rf"is damaged: {message}\. Delete it to run this round again"):
        quick(checkpoint=one_round).fit(*images)


@pytest.mark.parametrize(("part", "value"), [("number", 2), ("n_steps", 1.5), ("loss", []), ("loss", 1e999)])
def test_a_round_whose_record_has_odd_values_is_refused(one_round, images, part, value):
    from safetensors import safe_open

    with safe_open(one_round / "round-01.safetensors", framework="pt") as file:
        record = json.loads(file.metadata()["record"])
    rewritten(one_round, record=json.dumps(record | {part: value}))
    with pytest.raises(CheckpointError, match=r"is damaged: it"):
        quick(checkpoint=one_round).fit(*images)


class HalfNet(torch.nn.Module):
    """A network with weights in half precision, and a buffer that is infinite by design."""

    def __init__(self, shape, n_classes):
        super().__init__()
        self.head = torch.nn.Linear(64, n_classes)
        self.register_buffer("scale", torch.ones((), dtype=torch.bfloat16))
        self.register_buffer("mask", torch.tensor([-torch.inf, 0.0]))

    def forward(self, rows):
        return self.head(rows.flatten(1)) * self.scale.float()


def test_rounds_of_a_network_in_half_precision_are_kept(tmp_path, images):
    quick(network=HalfNet, n_rounds=1, checkpoint=tmp_path).fit(*images)
    assert len(quick(network=HalfNet, n_rounds=1, checkpoint=tmp_path).fit(*images).rounds_) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_a_round_stops_nothing(one_round, images):
    (one_round / "round-01.safetensors").unlink()
    os.mkfifo(one_round / "round-01.safetensors")
    with pytest.raises(CheckpointError, match=r"round-01\.safetensors is not a file"):
        quick(checkpoint=one_round).fit(*images)
