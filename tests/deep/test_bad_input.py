"""Errors name the argument, what came and what to do."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from otprop.deep import NetworkClassifier, PseudoLabelTrainer, RandomAffine
from tests.deep.bars import NO_TORCH, bars, partly_labelled, quick


@pytest.fixture
def images():
    X, truth = bars(30)
    return X, partly_labelled(truth, 2)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason=NO_TORCH)


@pytest.fixture(scope="module")
def trained():
    """A model of images."""
    pytest.importorskip("torch", reason=NO_TORCH)
    X, truth = bars(30)
    return quick(n_rounds=1, n_steps=2).fit(X, partly_labelled(truth, 2))


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"otprop\.deep needs torch: pip install '\.\[deep\]'"):
        NetworkClassifier().fit([[0.0], [1.0]], [0, 1])


def test_a_module_whose_outputs_do_not_fit_the_classes(torch, images):
    with pytest.raises(ValueError, match=r"network gives outputs of shape \(2, 7\) for 2 rows and 3 classes"):
        quick(network=lambda shape, n: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 7))).fit(*images)


def test_a_module_that_does_not_take_the_rows(torch, images):
    with pytest.raises(ValueError, match=r"network does not take rows of shape \(8, 8\)"):
        quick(network=lambda shape, n: torch.nn.Linear(5, n)).fit(*images)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("resnet", "network must be 'auto' or a function"),
        (
            lambda shape: None,
            r"must be a function of the shape of a row and the number of classes; got a function of \(shape\)",
        ),
        (lambda shape, n: "net", r"network must return a torch\.nn\.Module; got a str"),
    ],
)
def test_what_is_no_network(torch, images, network, message):
    with pytest.raises(ValueError, match=message):
        quick(network=network).fit(*images)


def test_a_module_in_place_of_a_function_that_makes_one(torch, images):
    message = r"^network must be a function of the shape of a row and the number of classes; got a Module \(Linear\)"
    for model in (PseudoLabelTrainer(torch.nn.Linear(64, 10)), NetworkClassifier(torch.nn.Linear(64, 10))):
        with pytest.raises(ValueError, match=message):
            model.fit(*images)


def test_a_class_of_modules_is_a_function_that_makes_them(torch, images):
    class Net(torch.nn.Sequential):
        def __init__(self, shape, n_classes):
            super().__init__(torch.nn.Flatten(), torch.nn.Linear(64, n_classes))

    assert isinstance(quick(network=Net, n_rounds=1, n_steps=2).fit(*images).module_, Net)


def test_a_module_without_features(torch, images):
    def network(shape, n):
        return torch.nn.Sequential(torch.nn.Unflatten(1, (1, 8)), torch.nn.Conv2d(1, n, 8), torch.nn.Flatten())

    with pytest.raises(ValueError, match=r"without a linear layer.*method features"):
        quick(network=network).fit(*images)


def test_a_loss_that_is_not_finite(torch, images):
    with pytest.raises(FloatingPointError, match="the loss is nan in step 1 of 40: lower learning_rate"):
        quick(augment=lambda batch: batch * float("nan")).fit(*images)


def test_an_augmentation_that_changes_the_shape(torch, images):
    with pytest.raises(ValueError, match=r"augment must return a tensor of the shape \(32, 8, 8\)"):
        quick(augment=lambda batch: batch[:, :4]).fit(*images)


@pytest.mark.parametrize(
    ("augment", "message"),
    [
        (lambda batch: batch.numpy(), r"got a numpy\.ndarray\. Return torch\.from_numpy of it"),
        (lambda batch: None, "got a NoneType"),
        (lambda batch: batch.double(), r"type torch\.float32 it got; got \(32, 8, 8\) of torch\.float64"),
    ],
)
def test_an_augmentation_that_returns_another_type(torch, images, augment, message):
    with pytest.raises(ValueError, match=f"^augment must return a tensor .*{message}"):
        quick(augment=augment).fit(*images)


def test_a_network_whose_code_fails_or_gives_no_tensor(torch, images):
    class Pair(torch.nn.Linear):
        def forward(self, rows):
            return super().forward(rows.flatten(1)), rows

    class Listed(Pair):
        def forward(self, rows):
            return super().forward(rows)[0]

        def features(self, rows):
            return [rows]

    class Broken(Pair):
        def forward(self, rows):
            return {}["layer"]

    for network, message in (
        (lambda shape, n: Pair(64, n), "network must give a tensor for a batch of rows; got a tuple"),
        (lambda shape, n: Listed(64, n), "network must give a tensor for features of a batch of rows; got a list"),
        (lambda shape, n: Broken(64, n), r"network does not take rows of shape \(8, 8\): 'layer'"),
        (lambda shape, n: torch.nn.BatchNorm2d(1), r"network does not take rows of shape \(8, 8\): expected 4D input"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            quick(network=network).fit(*images)


def failing(batch):
    raise KeyError("angle")


@pytest.mark.parametrize(
    ("augment", "message"),
    [(RandomAffine(), r"RandomAffine takes images .* the rows have shape \(64,\)"), (failing, "fails .*: 'angle'")],
)
def test_an_augmentation_that_fails_is_found_before_any_work(torch, images, augment, message):
    X, y = images
    steps = []
    model = quick(augment=augment).set_progress(lambda *step: steps.append(step))
    with pytest.raises(ValueError, match=f"^augment {message}"):
        model.fit(X.reshape(30, -1), y)
    assert not steps
    with pytest.raises(ValueError, match=f"^augment {message}"):
        NetworkClassifier(augment=augment).fit(X[:6].reshape(6, -1), [0, 1] * 3)


def test_images_with_channels_last(torch):
    X, y = np.zeros((6, 9, 8, 3), dtype=np.float32), [0, 1, 0, 1, -1, -1]

    def network(shape, n_classes):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(216, n_classes))

    message = r"shape \(9, 8, 3\) look like images with channels last: give np\.moveaxis\(images, -1, 1\)"
    with pytest.raises(ValueError, match=f"^X must have channels first.*{message}"):
        quick().fit(X, y)
    with pytest.raises(ValueError, match=f"^augment RandomAffine takes channels first.*{message}"):
        quick(network=network, augment=RandomAffine()).fit(X, y)
    for other in ({}, {"network": network}):
        rows = X if other else np.moveaxis(X, -1, 1)
        assert quick(n_rounds=1, n_steps=2, **other).fit(rows, y).row_shape_ == rows.shape[1:]


def test_a_callback_that_returns_an_array(torch, images):
    with pytest.raises(ValueError, match=r"^callback must return true to stop, else false or None; got a ndarray"):
        quick(n_steps=2, callback=lambda record: record.codes).fit(*images)


def test_a_tensor_with_gradients_is_read_by_its_values(torch, images):
    X, y = images
    expected = quick(n_rounds=1, n_steps=2).fit(X, y).predict_proba(X)
    rows = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(quick(n_rounds=1, n_steps=2).fit(rows, y).predict_proba(rows), expected)


def test_images_of_different_sizes(torch, images):
    X, y = images
    mixed = [*X[:-1], np.zeros((9, 8))]
    with pytest.raises(ValueError, match=r"row 0 has shape \(8, 8\) and row 29 \(9, 8\)"):
        quick().fit(mixed, y)
    with pytest.raises(ValueError, match="different sizes"):
        quick().fit(np.array([*mixed, None], dtype=object)[:-1], y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "features"])
def test_a_model_that_was_not_fitted(images, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(quick(), method)(images[0])


@pytest.mark.parametrize("shape", [(2, 8, 9), (2, 6, 8), (3, 64), (3, 8), (2, 1, 8, 8), (2, 9, 9)])
def test_new_rows_of_another_shape(trained, shape):
    row = re.escape(str(shape[1:]))
    with pytest.raises(ValueError, match=rf"rows of shape {row}, but the network was trained on \(8, 8\)"):
        trained.predict(np.zeros(shape))
    with pytest.raises(ValueError, match=f"rows of shape {row}"):
        trained.features(np.zeros(shape).tolist())


def test_new_rows_may_be_flat_or_images_where_their_shape_is_given(torch, images):
    X, y = images
    flat = X.reshape(30, -1)
    expected = quick(n_rounds=1, n_steps=2).fit(X, y).predict_proba(X)
    for rows in (X, flat):
        model = quick(n_rounds=1, n_steps=2, image_shape=(8, 8)).fit(rows, y)
        for new in (X, flat, flat.tolist()):
            np.testing.assert_array_equal(model.predict_proba(new), expected)
        with pytest.raises(ValueError, match=r"rows of shape \(63,\), but the network was trained on \(8, 8\)"):
            model.predict(flat[:, 1:])


def test_new_rows_of_a_table_with_other_columns(torch):
    model = NetworkClassifier(n_steps=2).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="X has 3 features, but NetworkClassifier is expecting 2"):
        model.predict([[0.0, 1.0, 2.0]])
    with pytest.raises(ValueError, match=r"rows of shape \(2, 1\), but the network was trained on \(2,\)"):
        model.predict([[[0.0], [1.0]]])


def test_a_class_without_a_labelled_row(torch, images):
    X, y = images
    with pytest.raises(ValueError, match="no labelled row of the class 'circle'"):
        quick(classes=["across", "circle", "diagonal", "down"]).fit(X, y)
    with pytest.raises(ValueError, match="classes lacks 'down'"):
        quick(classes=["across", "diagonal"]).fit(X, y)
    one = np.where(y == "down", y, None)
    with pytest.raises(ValueError, match="y has one class, 'down'"):
        quick().fit(X, one)


@pytest.mark.parametrize(
    ("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity"), (1e300, "a number that single precision cannot hold")]
)
def test_values_that_are_not_finite(trained, images, value, what):
    X, y = images
    X = X.astype(np.float64)
    X[3, 2, 2] = X[7, 0, 0] = value
    message = f"^X contains .*{what}.* in row 3; 2 of 30 rows hold values that are not finite"
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y)
    with pytest.raises(ValueError, match=message):
        trained.predict(X)


@pytest.mark.parametrize("shape", [(28, 28), (1, 8, 8), (64,)])
def test_an_image_shape_that_images_do_not_have(torch, images, shape):
    message = re.escape(f"image_shape={shape} is for flat rows, but X has rows of shape (8, 8)")
    with pytest.raises(ValueError, match=message):
        quick(image_shape=shape).fit(*images)


def test_columns_that_do_not_make_an_image(torch, images):
    X, y = images
    with pytest.raises(ValueError, match=r"image_shape=\(7, 8\) has 56 values, but X has 64 columns"):
        quick(image_shape=(7, 8)).fit(X.reshape(30, -1), y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_rounds", 0),
        ("n_steps", "many"),
        ("n_pretraining_steps", 5),
        ("batch_size", 1),
        ("learning_rate", 0),
        ("weight_decay", -1),
        ("hidden_share", 1.0),
        ("transport", "OTP"),
        ("augment", "affine"),
        ("image_shape", 28),
        ("image_shape", (8, 0)),
        ("callback", 3),
        ("checkpoint", 5),
        ("checkpoint", ""),
        ("n_jobs", 0),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(images, parameter, value):
    with pytest.raises(ValueError, match=f"^{parameter} "):
        PseudoLabelTrainer(**{parameter: value}).fit(*images)


def test_labels_that_do_not_match_the_rows(torch, images):
    X, y = images
    with pytest.raises(ValueError, match="X has 30 rows and y 29"):
        quick().fit(X, y[:-1])
    with pytest.raises(ValueError, match="24 unlabelled rows"):
        NetworkClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        NetworkClassifier().fit(X[:2], [0, 1], sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight is zero for every labelled row"):
        NetworkClassifier().fit(X[:2], [0, 1], sample_weight=[0, 0])
