"""A network as a scikit-learn classifier, for weighted labels and as a source of evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from otprop._labels import encode_given_labels, row_weights
from otprop._validation import forget_fit
from otprop.deep._base import NetworkEstimator, NetworkFactory, seed_of
from otprop.deep.training import train, try_augmentation


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
            raise ValueError(f"X has {len(rows)} rows and y {len(labels.codes)} labels: give y one entry per row.")
        if len(labels.unlabeled):
            raise ValueError(
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
