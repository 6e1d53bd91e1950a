"""Estimators over a network: reading rows, making the network, predicting; and the network as a classifier."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from otprop._labels import encode_given_labels, row_weights
from otprop._optional import nn, torch
from otprop._validation import InputError, ParameterError, check_count, check_n_jobs, check_number, forget_fit
from otprop.deep.networks import (
    CHANNELS_FIRST,
    SMALLEST_IMAGE,
    check_network,
    class_log_proba,
    conv_net,
    looks_channels_last,
    mlp,
    network_features,
)
from otprop.deep.training import TrainingConfig, train, try_augmentation

NetworkFactory = Callable[[tuple[int, ...], int], Any]  # shape of a row, number of classes -> torch.nn.Module
PASSES = 5  # average number of times each row is drawn in a training, within the bounds of the steps
MIN_STEPS, MAX_STEPS = 300, 1000
LARGEST_SEED = 2**31 - 1


class NetworkEstimator(ClassifierMixin, BaseEstimator):
    """Base of the classifiers over a network; a subclass sets ``classes_`` and ``module_`` in `fit`."""

    network: str | NetworkFactory
    augment: Callable[[Any], Any] | None
    image_shape: tuple[int, ...] | None
    n_steps: int | str
    batch_size: int
    learning_rate: float
    weight_decay: float
    random_state: Any
    n_jobs: int | None
    classes_: np.ndarray
    module_: Any
    row_shape_: tuple[int, ...]

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter that cannot be used; `fit` calls it."""
        _check_factory(self.network)
        if self.augment is not None and not callable(self.augment):
            raise ParameterError("augment", f"must be a function of a batch, or None; got {self.augment!r}.")
        if self.image_shape is not None:
            _check_shape(self.image_shape)
        check_count("n_steps", self.n_steps, words=("auto",))
        check_count("batch_size", self.batch_size, least=2)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("weight_decay", self.weight_decay, least=0)
        check_n_jobs("n_jobs", self.n_jobs)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of rows by the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...), rows in the shape of those of `fit`

        Returns
        -------
        ndarray of shape (n_rows, n_classes), columns in the order of ``classes_``
        """
        check_is_fitted(self)
        rows = self._read_rows(X, reset=False)
        with self._threads():
            found = np.exp(class_log_proba(self.module_, rows))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row by the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...), rows in the shape of those of `fit`

        Returns
        -------
        ndarray of shape (n_rows,), with labels from ``classes_``
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def features(self, X: Any) -> np.ndarray:
        """The input of the network's last linear layer, or ``module.features(rows)`` if it has that method.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...), rows in the shape of those of `fit`

        Returns
        -------
        ndarray of float32 of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        rows = self._read_rows(X, reset=False)
        with self._threads():
            return network_features(self.module_, rows)

    def _read_rows(self, X: Any, reset: bool, least: int = 1) -> Any:
        """X as a single-precision tensor, with each row in the shape that the network takes."""
        if hasattr(X, "detach"):  # a tensor: only its values matter, not its graph or device
            X = X.detach().cpu().float()
        _refuse_different_sizes(X)
        shape = () if reset else tuple(getattr(X, "shape", None) or np.asarray(X).shape)
        if not reset:
            self._refuse_other_shapes(shape)
        checks = {"dtype": np.float32, "allow_nd": True, "ensure_min_samples": least, "ensure_all_finite": False}
        with np.errstate(over="ignore"):  # values too large for single precision are refused as infinite
            if reset or shape[1:] == (self.n_features_in_,) or len(self.row_shape_) == 1:
                X = validate_data(self, X, reset=reset, **checks)
            else:  # images have no columns that could be compared
                X = check_array(X, estimator=self, input_name="X", **checks)
        _refuse_not_finite(X)
        if self.image_shape is not None:
            X = _reshaped(X, tuple(self.image_shape))
        self.row_shape_ = X.shape[1:]
        if isinstance(self.network, str) and looks_channels_last(self.row_shape_):
            raise ParameterError(
                "X",
                f"must have channels first for network='auto'. {CHANNELS_FIRST.format(self.row_shape_)} A network of "
                "your own takes rows of any shape.",
            )
        return torch.from_numpy(np.require(X, requirements=["C", "W"]))

    def _refuse_other_shapes(self, shape: tuple[int, ...]) -> None:
        """Refuse rows of another shape, naming both shapes; scikit-learn compares only the columns of tables."""
        row, trained = shape[1:], self.row_shape_
        flat = self.image_shape is not None and row == (math.prod(trained),)
        if not row or row == trained or flat or len(row) == len(trained) == 1:
            return
        raise InputError(f"X has rows of shape {row}, but the network was trained on {trained}.")

    def _make_network(self, rows: Any, n_classes: int, seed: int) -> Any:
        """A new network, checked; call it inside `_seeded`."""
        shape = tuple(rows.shape[1:])
        factory = _default_network(shape) if isinstance(self.network, str) else self.network
        torch.manual_seed(seed)
        module = factory(shape, n_classes)
        check_network(module, rows, n_classes)
        module = module.to(torch.float32)
        if any(tensor.ndim == 5 for tensor in module.state_dict().values()):  # volumes have no channels_last
            return module
        return module.to(memory_format=torch.channels_last)  # twice as fast for images

    def _training_config(self, n_rows: int) -> TrainingConfig:
        steps = self.n_steps
        if isinstance(steps, str):
            steps = int(np.clip(PASSES * n_rows // self.batch_size, MIN_STEPS, MAX_STEPS))
        return TrainingConfig(steps, self.batch_size, self.learning_rate, self.weight_decay, self.augment)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """Run PyTorch with `n_jobs` threads; the previous setting is restored."""
        before = torch.get_num_threads()
        wanted = before if self.n_jobs is None else self.n_jobs
        torch.set_num_threads(wanted if wanted > 0 else effective_n_jobs(wanted))
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @contextmanager
    def _seeded(self) -> Iterator[None]:
        """Run PyTorch with its own random numbers; the user's random state is restored."""
        with self._threads(), torch.random.fork_rng(devices=[]):
            yield

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "module_")


def seed_of(seed: int, *part: int) -> int:
    """A seed for a part of a run, independent of the other parts."""
    return int(np.random.SeedSequence([seed, *part]).generate_state(1)[0])


def _default_network(shape: tuple[int, ...]) -> NetworkFactory:
    is_image = len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST_IMAGE
    return conv_net if is_image else mlp


def _refuse_different_sizes(X: Any) -> None:
    """Refuse a list whose rows differ in shape, naming the first two."""
    if not (isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype == object)):
        return
    shapes = [np.shape(row) if not hasattr(row, "shape") else tuple(row.shape) for row in X]
    other = next((number for number, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is not None:
        raise InputError(
            f"X holds rows of different sizes: row 0 has shape {shapes[0]} and row {other} {shapes[other]}. Bring all "
            "images to one size first."
        )


def _check_factory(network: Any) -> None:
    """Refuse a value that is not "auto" and cannot be called with the shape of a row and the number of classes."""
    if isinstance(network, str) and network == "auto":
        return
    wanted = "a function of the shape of a row and the number of classes"
    if not callable(network):
        raise ParameterError("network", f"must be 'auto' or {wanted} that returns a torch.nn.Module; got {network!r}.")
    if isinstance(network, nn.Module):
        raise ParameterError(
            "network",
            f"must be {wanted}; got a Module ({type(network).__name__}). Each training starts with a new network: "
            "write a function that makes it.",
        )
    try:
        signature = inspect.signature(network)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    try:
        signature.bind((), 0)
    except TypeError as error:
        raise ParameterError("network", f"must be {wanted}; got a function of {signature}.") from error


def _check_shape(shape: Any) -> None:
    if not isinstance(shape, (tuple, list)) or not shape:
        raise ParameterError("image_shape", f"must be a tuple such as (28, 28), or None; got {shape!r}.")
    for side in shape:
        check_count("image_shape", side)


def _reshaped(X: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Flat rows as images of this shape; images must have it."""
    if X.ndim == 2 and X.shape[1] == math.prod(shape):
        return X.reshape(len(X), *shape)
    if X.ndim == 2:
        raise ParameterError(
            "image_shape", f"={shape!r} has {math.prod(shape)} values, but X has {X.shape[1]} columns."
        )
    if X.shape[1:] != shape:
        raise ParameterError(
            "image_shape",
            f"={shape!r} is for flat rows, but X has rows of shape {X.shape[1:]}; omit it, or correct it.",
        )
    return X


def _refuse_not_finite(X: np.ndarray) -> None:
    """Refuse missing or infinite values, naming the first such row and their number."""
    bad = np.flatnonzero(~np.isfinite(X).reshape(len(X), -1).all(axis=1))
    if len(bad) == 0:
        return
    what = "NaN" if np.isnan(X[bad[0]]).any() else "infinity or a number that single precision cannot hold"
    raise ParameterError(
        "X",
        f"contains {what} in row {bad[0]}; {len(bad)} of {len(X)} rows hold values that are not finite. Replace them, "
        "or remove these rows.",
    )


class NetworkClassifier(NetworkEstimator):
    """A network trained on weighted labelled rows; every row needs a label, and -1 is a class like any other.

    It takes what ``OTP.pseudo_labels()`` returns, and can be a source of evidence:
    ``OTP(evidence=[("net", NetworkClassifier())])``.

    Parameters
    ----------
    network : "auto" or callable, default="auto"
        Called with the shape of a row and the number of classes; returns a ``torch.nn.Module`` with one output
        per class. "auto": `conv_net` if rows are images of at least 8 x 8 pixels, else `mlp`.
    augment : callable or None, default=None
        Changes a batch (a tensor) at random and keeps its shape, such as `RandomAffine`.
    image_shape : tuple of int or None, default=None
        The shape that each row of a two-dimensional X takes for the network, such as (28, 28). Images must have it.
    n_steps : "auto" or int, default="auto"
        Steps of training. "auto": each row is drawn five times on average, in 300 to 1000 steps.
    batch_size : int, default=128
    learning_rate : float, default=0.003
        The maximum: the rate rises in the first fifth of the steps and falls to 0.
    weight_decay : float, default=0.01
    random_state : int, RandomState or None, default=0
    n_jobs : int or None, default=None
        Threads of PyTorch. None: PyTorch's setting; -1: one per processor.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    module_ : torch.nn.Module, the trained network, with averaged weights
    row_shape_ : tuple of int, the shape of a row in the network's input
    loss_ : float, mean loss of the last steps
    n_features_in_ : int
    feature_names_in_ : ndarray, if X has column names

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from otprop.deep import NetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> NetworkClassifier().fit(X, y).predict(X[[0, 140]])
    array([0, 2])
    """

    def __init__(
        self,
        network: str | NetworkFactory = "auto",
        *,
        augment: Callable[[Any], Any] | None = None,
        image_shape: tuple[int, ...] | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.003,
        weight_decay: float = 0.01,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.network = network
        self.augment = augment
        self.image_shape = image_shape
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
        y : array-like of shape (n_rows,), a label for every row
        sample_weight : array-like of shape (n_rows,) or None
            How often a row is drawn, relative to the others.

        Returns
        -------
        self
        """
        forget_fit(self)
        self.check_parameters()
        rows, labels = self._read_rows(X, reset=True), encode_given_labels(y)
        if len(labels.codes) != len(rows):
            raise InputError(f"X has {len(rows)} rows and y {len(labels.codes)} labels: give y one entry per row.")
        if len(labels.unlabeled):
            raise InputError(
                f"y has {len(labels.unlabeled)} unlabelled rows ({labels.marker!r}); NetworkClassifier takes labelled "
                "rows only: remove them, or use PseudoLabelTrainer."
            )
        weights = row_weights(sample_weight, labels)
        with self._seeded():
            seed = self._seed()
            module = self._make_network(rows, len(labels.classes), seed)
            config = self._training_config(len(rows))
            try_augmentation(rows, config)
            training = train(module, rows, labels.codes, weights, config, seed=seed_of(seed, 0))
        self.classes_, self.module_, self.loss_ = labels.classes, training.module, training.loss
        return self
