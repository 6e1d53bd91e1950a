"""Columns of paths of pictures as features."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import otprop
from otprop.cli import main
from otprop.labelling.model import ModelError, load_model, predict_table
from otprop.table import images
from otprop.table.errors import CellError, NoFeaturesError, RequestError
from otprop.table.images import LocalImageModel
from otprop.table.opening import open_table
from tests.labelling.models import edited, objects
from tests.table.pictures import GREEN, picture, write_pictures

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OTPROP_IMAGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    """A table beside a folder of red and green pictures, four of which have a label."""
    names = write_pictures(tmp_path / "photos", 20)
    kinds = ["green", "red", "green", "red", *[None] * 16]
    frame = pd.DataFrame({"photo": [f"photos/{name}" for name in names], "kind": kinds})
    frame.to_csv(tmp_path / "photos.csv", index=False)
    return tmp_path / "photos.csv"


def truth(n=20):
    return ["red" if number % 2 else "green" for number in range(n)]


def test_a_column_of_paths_is_labelled_by_its_pictures(photos):
    result = otprop.label(photos, "kind")
    assert [use.role for use in result.job.columns] == ["image"]
    assert result.table["kind_label"].tolist() == truth()
    assert result.notes == []


def test_paths_of_a_frame_start_at_the_current_folder(photos, monkeypatch):
    monkeypatch.chdir(photos.parent)
    result = otprop.label(pd.read_csv(photos), "kind")
    assert result.table["kind_label"].tolist() == truth()
    assert result.table.attrs == {}  # no folder of this machine in a table that is passed on


def test_a_saved_model_reads_pictures_beside_the_new_table(photos, tmp_path):
    otprop.label(photos, "kind").write_files(tmp_path / "out.csv", model=tmp_path / "kind.model")
    names = write_pictures(tmp_path / "later" / "new", 6)
    pd.DataFrame({"photo": [f"new/{name}" for name in names]}).to_csv(tmp_path / "later" / "t.csv", index=False)
    model = load_model(tmp_path / "kind.model")
    codes = predict_table(model, model.frame(open_table(tmp_path / "later" / "t.csv"))).codes
    assert [model.classes[code] for code in codes] == truth(6)


def test_pictures_that_cannot_be_read_are_missing_and_named(photos):
    (photos.parent / "photos" / "07.png").write_text("no picture")
    (photos.parent / "photos" / "09.png").unlink()
    result = otprop.label(photos, "kind")
    (note,) = result.notes
    assert "2 of 20 pictures cannot be read" in note
    assert "photos/07.png is not a picture" in note
    assert "photos/09.png does not exist" in note
    assert len(result.table) == 20


def test_paths_without_files_are_skipped_with_the_reason(tmp_path):
    frame = pd.DataFrame({"photo": [f"{n}.png" for n in range(9)], "kind": ["a", "b", "a", "b", *[None] * 5]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(NoFeaturesError, match=r"paths of pictures that are not there: '0.png'") as caught:
        otprop.label(tmp_path / "t.csv", "kind")
    assert "features" not in str(caught.value)  # naming the column would not help
    frame["size"] = [1.0, 9.0, 1.1, 9.1, 1.2, 9.2, 1.3, 9.3, 1.4]
    assert otprop.label(frame, "kind").table["kind_label"].tolist() == ["a", "b"] * 4 + ["a"]


def test_names_of_icons_without_files_stay_categories(tmp_path):
    frame = pd.DataFrame({"icon": ["up.png", "down.png"] * 6, "kind": ["a", "b", "a", "b", *[None] * 8]})
    result = otprop.label(frame, "kind")
    assert [use.role for use in result.job.columns] == ["category"]


def test_without_pillow_the_column_is_skipped_and_says_what_to_install(photos, monkeypatch):
    monkeypatch.setattr(images, "has_pillow", lambda: False)
    with pytest.raises(NoFeaturesError, match=r"pip install '\.\[images\]'"):
        otprop.label(photos, "kind")


def test_numbers_beside_pictures_are_used_too(photos):
    frame = pd.read_csv(photos).assign(size=np.arange(20) % 2 + np.linspace(0, 0.1, 20))
    frame.to_csv(photos, index=False)
    assert [use.role for use in otprop.label(photos, "kind").job.columns] == ["image", "number"]


def mean_colour(pictures):
    return np.array([np.asarray(one).mean(axis=(0, 1)) for one in pictures])


def test_a_function_makes_the_vectors(photos):
    result = otprop.label(photos, "kind", image_model=mean_colour)
    assert result.job.columns[0].why == "20 pictures, by mean_colour in 3 dimensions"
    assert result.table["kind_label"].tolist() == truth()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda pictures: np.zeros(len(pictures)), "array of shape"),
        (lambda pictures: np.full((len(pictures), 2), np.nan), "infinity or NaN"),
        (lambda pictures: np.zeros((1, 2)), "array of shape"),
        (lambda pictures: np.ones((len(pictures), 2), complex), "not real numbers"),
        (lambda pictures: [["a"]] * len(pictures), "not real numbers"),
        (lambda pictures: None, "not real numbers"),
    ],
)
def test_a_function_that_makes_no_vectors_is_refused(photos, function, reason):
    with pytest.raises(ValueError, match=reason):
        otprop.label(photos, "kind", image_model=function)


def test_a_function_whose_vectors_change_their_length_is_refused(photos, monkeypatch):
    monkeypatch.setattr("otprop.table.picture_vectors.AT_ONCE", 8)
    lengths = iter((3, 4, 5, 6, 7))
    with pytest.raises(ValueError, match="got vectors of 3 and of 4 numbers from its image model"):
        otprop.label(photos, "kind", image_model=lambda pictures: np.ones((len(pictures), next(lengths))))


@pytest.mark.parametrize("model", [7, "no_such_file.onnx"])
def test_an_image_model_that_is_none_is_refused(photos, model):
    with pytest.raises(RequestError, match="image_model"):
        otprop.label(photos, "kind", image_model=model)


def test_an_image_model_without_pictures_has_no_effect():
    frame = pd.DataFrame({"size": [1.0, 1.1, 9.0, 9.1], "kind": ["a", None, "b", None]})
    notes = otprop.label(frame, "kind", image_model=mean_colour).notes
    assert "without effect: image_model, as no column holds pictures" in notes


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_file_makes_the_vectors_and_is_saved_by_its_digest(photos, tmp_path):
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Mean(torch.nn.Module):
        def forward(self, x):
            return x.mean(dim=(2, 3))

    path = tmp_path / "mean.pt"
    torch.jit.save(torch.jit.trace(Mean(), torch.zeros(2, 3, 224, 224)), str(path))
    result = otprop.label(photos, "kind", image_model=path)
    assert result.table["kind_label"].tolist() == truth()
    result.write_files(tmp_path / "out.csv", model=tmp_path / "kind.model")
    picture(GREEN, seed=99).save(tmp_path / "photos" / "00.png")  # a picture that the cache does not know
    assert str(tmp_path).encode() not in (tmp_path / "kind.model").read_bytes()
    with pytest.raises(RequestError, match=r"image_model is needed.*'mean\.pt' with the sha256"):
        load_model(tmp_path / "kind.model")
    (tmp_path / "other.pt").write_bytes(b"another file")
    with pytest.raises(RequestError, match="this model was made with another"):
        otprop.load(tmp_path / "kind.model", image_model=tmp_path / "other.pt")
    with pytest.raises(RequestError, match="image_model expected the path"):
        otprop.load(tmp_path / "kind.model", image_model=mean_colour)
    assert otprop.load(tmp_path / "kind.model", image_model=path).predict(photos)["kind_label"].tolist() == truth()
    out = tmp_path / "new.csv"
    command = ["predict", str(tmp_path / "kind.model"), str(photos), "-o", str(out), "--quiet"]
    assert main(command) == 2
    assert main([*command, "--image-model", str(path)]) == 0
    assert pd.read_csv(out)["kind_label"].tolist() == truth()


def test_an_onnx_file_makes_the_vectors(photos, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    onnx = pytest.importorskip("onnx", reason="needs onnx to make the file")
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 16, 16])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 3, 1, 1])
    graph = helper.make_graph([helper.make_node("GlobalAveragePool", ["x"], ["y"])], "mean", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(tmp_path / "mean.onnx"))
    result = otprop.label(photos, "kind", image_model=tmp_path / "mean.onnx")
    assert result.job.columns[0].why == "20 pictures, by mean.onnx in 3 dimensions"
    assert result.table["kind_label"].tolist() == truth()


@pytest.fixture
def picture_model(photos, tmp_path):
    otprop.label(photos, "kind", settings={"evidence": ["linear"]}).save(tmp_path / "kind.model")
    return tmp_path / "kind.model"


def with_state(path, **state):
    """The model file with other values in its column of pictures."""
    content = path.read_bytes()
    return io.BytesIO(edited(content, lambda text: objects(text)["table.image"]["state"].update(state)))


@pytest.mark.parametrize("n_numbers", [10**12, 1059, -1, "many", 1060.0, None])
def test_a_model_whose_vectors_of_pictures_have_another_length_is_refused(picture_model, n_numbers):
    with pytest.raises(ModelError, match="damaged or not a model"):
        load_model(with_state(picture_model, n_numbers=n_numbers))


def test_a_model_cannot_make_up_an_image_model(picture_model):
    model = {"object": "table.local_image_model", "number": 999_999, "state": {"digest": "0" * 64, "title": "a.pt"}}
    others = ({"digest": "0" * 64, "title": "a.pt", "encode": [1]}, {"digest": "0" * 64, "name": "../victim"}, None)
    for state in others:
        odd = None if state is None else {**model, "state": state}

        def change(text, odd=odd):
            node = objects(text)["table.image"]
            node["object"] = "table.image_model"
            node["state"]["model"] = odd

        with pytest.raises(ModelError, match=r"damaged or not a model|in the place of a method"):
            load_model(io.BytesIO(edited(picture_model.read_bytes(), change)))


def test_new_rows_whose_pictures_are_all_missing_are_labelled_and_named(picture_model, tmp_path):
    (tmp_path / "away").mkdir()
    pd.DataFrame({"photo": ["gone.png", "/dev/zero", None, "a\0b.png", "x" * 5000 + ".png"]}).to_json(
        tmp_path / "away" / "t.json", orient="records"
    )
    model = load_model(picture_model)
    found = predict_table(model, model.frame(open_table(tmp_path / "away" / "t.json")))
    assert len(found.codes) == 5
    assert len(np.unique(found.distributions, axis=0)) == 1


def test_a_new_table_without_the_column_of_pictures_is_refused(picture_model):
    with pytest.raises(ValueError, match="photo"):
        load_model(picture_model).check_columns(["other"])


class Session:
    """A stand-in for onnxruntime's session: the mean of each colour, of exactly as many pictures as it takes."""

    def __init__(self, shape, kind="tensor(float)", n_inputs=1):
        self.inputs = [SimpleNamespace(name="x", shape=shape, type=kind)] * n_inputs
        self.n_images = shape[0] if shape and isinstance(shape[0], int) else None

    def get_inputs(self):
        return self.inputs

    def run(self, outputs, given):
        (x,) = given.values()
        if self.n_images not in (None, len(x)) or x.dtype != {"tensor(float)": "f4"}.get(self.inputs[0].type, "f2"):
            raise RuntimeError("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT")
        return [x.astype(np.float32).mean(axis=(2, 3))]


@pytest.fixture
def onnx_session(tmp_path, monkeypatch):
    """A function that has every ONNX file opened as a session with these arguments."""
    (tmp_path / "m.onnx").write_bytes(b"model")

    def use(*arguments):
        runtime = SimpleNamespace(
            InferenceSession=lambda path, options, providers: Session(*arguments), SessionOptions=SimpleNamespace
        )
        monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
        return LocalImageModel(tmp_path / "m.onnx")

    return use


@pytest.mark.parametrize("shape", [["n", 3, 8, 8], [None, "c", "h", "w"], [1, 3, 8, 8], [4, 3, 8, 8]])
@pytest.mark.parametrize("kind", ["tensor(float)", "tensor(float16)"])
def test_onnx_files_take_pictures_in_batches_of_their_size(onnx_session, shape, kind):
    images = [Image.new("RGB", (8, 8), (20 * number, 0, 0)) for number in range(6)]
    found = onnx_session(shape, kind).encode(images)
    assert found.shape == (6, 3)
    assert (np.diff(found[:, 0]) > 0).all()


@pytest.mark.parametrize(
    "arguments",
    [
        (["n", 3, 100_000, 100_000],),  # 30 GB for each picture
        (["n", 3, 0, 8],),
        ([0, 3, 8, 8],),
        (["n", 1, 8, 8],),
        (["n", 3],),
        ([],),
        (["n", 3, 8, 8], "tensor(uint8)"),
        (["n", 3, 8, 8], "tensor(float)", 2),
        (["n", 3, 8, 8], "tensor(float)", 0),
    ],
)
def test_onnx_files_of_another_shape_are_refused_before_anything_is_made(onnx_session, arguments):
    with pytest.raises(CellError, match=r"needs an image model of one input of floats .*m\.onnx has "):
        onnx_session(*arguments).encode([Image.new("RGB", (8, 8))] * 2)


def test_an_image_model_that_fails_is_named(onnx_session, monkeypatch):
    model = onnx_session(["n", 3, 8, 8])
    monkeypatch.setattr(Session, "run", lambda self, outputs, given: 1 / 0)
    with pytest.raises(CellError, match=r"cannot be read by the image model .*m\.onnx \(division by zero\)"):
        model.encode([Image.new("RGB", (8, 8))])


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_file_must_return_a_tensor_of_any_floats(tmp_path):
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Mean(torch.nn.Module):
        def forward(self, x):
            return x.mean(dim=(2, 3)).to(torch.bfloat16)

    class Both(torch.nn.Module):
        def forward(self, x):
            return x.mean(dim=(2, 3)), x

    images = [Image.new("RGB", (8, 8))] * 2
    for network, name in ((Mean(), "mean.pt"), (Both(), "both.pt")):
        torch.jit.save(torch.jit.trace(network, torch.zeros(2, 3, 224, 224)), str(tmp_path / name))
    assert LocalImageModel(tmp_path / "mean.pt").encode(images).shape == (2, 3)
    with pytest.raises(CellError, match=r"got a tuple from its image model .*both\.pt; expected a tensor"):
        LocalImageModel(tmp_path / "both.pt").encode(images)
