"""Rounds of transporting labels over a network's features and training the network on them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from otprop._labels import UNLABELED, Labels, class_balanced_weights, class_list, class_numbers, encode_labels
from otprop._otp import OTP
from otprop._paper_otp import PaperOTP
from otprop._progress import ProgressCallback
from otprop._validation import InputError, ParameterError, check_count, check_number, forget_fit
from otprop.deep.checkpoint import CheckpointFolder, NetworkRound
from otprop.deep.classifier import PASSES, NetworkEstimator, NetworkFactory, seed_of
from otprop.deep.fingerprint import fingerprint
from otprop.deep.networks import network_features
from otprop.deep.training import (
    HiddenLabels,
    Training,
    TrainingConfig,
    choose_hidden,
    pretrain,
    side_by_side,
    train,
    try_augmentation,
)
from otprop.propagation.shares import check_prior

logger = logging.getLogger("otprop")

ROWS_FOR_PRETRAINING = 5_000  # with fewer rows, the learnt features are worse than the pixels
MAX_PRETRAINING = 400  # steps
GIVEN_SHARE = 1 / 8  # share of the rows of a batch that have a given label


class PseudoLabelTrainer(NetworkEstimator):
    """Train a network on few labels: propagate them, train on the result, propagate again over its features.

    With an augmentation and many rows, a network first learns without labels to match augmented copies of a row. In
    each round `OTP` propagates the labels over the features of the previous network. In the first round it uses the
    rows themselves and the features learnt without labels. A new network is then trained on given and propagated
    labels, in proportion to their confidence, with equal weight for each class. In the end the labels are propagated
    over the features of the last network; the result is ``transduction_``. `predict` uses the network itself.

    Parameters
    ----------
    network : "auto" or callable, default="auto"
        Called with the shape of a row and the number of classes; returns a ``torch.nn.Module`` with one output
        per class. Its features are the input of its last linear layer, or ``module.features(rows)`` if it has that
        method. "auto": `conv_net` if rows are images of at least 8 x 8 pixels, else `mlp`.
    n_rounds : int, default=3
    augment : callable or None, default=None
        Changes a batch (a tensor) at random and keeps its shape, such as `RandomAffine`.
    transport : OTP, PaperOTP or None, default=None
        Propagates the labels; None: ``OTP()``. It is fitted on class numbers.
    image_shape : tuple of int or None, default=None
        The shape that each row of a two-dimensional X takes for the network, such as (28, 28). Images must have it.
    classes : array-like or None, default=None
        All classes; a class without a labelled row is then an error. None: the classes of y.
    hidden_share : "auto" or float in [0, 1), default="auto"
        Share of the given labels of every class that is held out from the rounds. Training stops when the loss on
        them rises by more than its noise. The last transport uses them again. "auto": a tenth if every class has at
        least 20 labels, else none.
    n_steps : "auto" or int, default="auto"
        Maximum number of steps of each training. "auto": each row is drawn five times on average, in 300 to 1000
        steps.
    n_pretraining_steps : "auto" or int, default="auto"
        Steps of the training without labels, of twice `batch_size` rows each; 0: none. "auto": none without `augment`
        or with fewer than 5 000 rows, else each row is drawn five times on average, in at most 400 steps.
    batch_size : int, default=128
    learning_rate : float, default=0.003
        The maximum: the rate rises in the first fifth of the steps and falls to 0.
    weight_decay : float, default=0.01
    checkpoint : str, path or None, default=None
        A folder for the finished rounds, one safetensors file per round. A killed run continues after its last finished
        round, with the same result. This needs an integer `random_state`. Rounds of other data, labels, parameters or
        code are refused with a `CheckpointError`.
    unlabeled : default="auto"
        The value that marks a row of y as unlabelled. "auto": -1, None, NaN or ``pandas.NA``, whichever y uses.
    random_state : int, RandomState or None, default=0
    n_jobs : int or None, default=None
        Threads of PyTorch and of the default transport. None: PyTorch's setting, and one thread; -1: one per processor.
    callback : callable or None, default=None
        Called with the record of each round, as in ``rounds_``. A true result makes it the last one.
    verbose : int, default=0
        Above 0, the rounds are logged at level INFO of the logger "otprop", else at DEBUG; see it with
        ``logging.basicConfig(level=logging.INFO)``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        A label for every row, by transport over the features of the last network.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
    certainty_ : ndarray of shape (n_rows,), Eq. 12
    confidence_ : ndarray of shape (n_rows,)
        The confidence of the last transport, if it has one. It is too high, since the network has seen the labels that
        calibrate it.
    module_ : torch.nn.Module, the network of the last round, with averaged weights
    transport_ : OTP or PaperOTP, the last transport, fitted on features and class numbers
    rounds_ : list of NetworkRound
    hidden_rows_ : ndarray of int, rows whose label was held out from the rounds
    row_shape_ : tuple of int, the shape of a row in the network's input
    n_features_in_ : int
    feature_names_in_ : ndarray, if X has column names

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from otprop.deep import PseudoLabelTrainer
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.full(150, -1)
    >>> y[::15] = truth[::15]
    >>> model = PseudoLabelTrainer(n_rounds=2, n_steps=100).fit(X, y)
    >>> print((model.transduction_ == truth).mean() > 0.8, len(model.rounds_), model.features(X).shape)
    True 2 (150, 64)
    """

    def __init__(
        self,
        network: str | NetworkFactory = "auto",
        *,
        n_rounds: int = 3,
        augment: Callable[[Any], Any] | None = None,
        transport: OTP | PaperOTP | None = None,
        image_shape: tuple[int, ...] | None = None,
        classes: Any = None,
        hidden_share: float | str = "auto",
        n_steps: int | str = "auto",
        n_pretraining_steps: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.003,
        weight_decay: float = 0.01,
        checkpoint: str | PathLike[str] | None = None,
        unlabeled: Any = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        callback: Callable[[NetworkRound], Any] | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.network = network
        self.n_rounds = n_rounds
        self.augment = augment
        self.transport = transport
        self.image_shape = image_shape
        self.classes = classes
        self.hidden_share = hidden_share
        self.n_steps = n_steps
        self.n_pretraining_steps = n_pretraining_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.checkpoint = checkpoint
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter that cannot be used; `fit` calls it."""
        super().check_parameters()
        check_count("n_rounds", self.n_rounds)
        check_count("n_pretraining_steps", self.n_pretraining_steps, least=0, words=("auto",))
        if self.augment is None and self.n_pretraining_steps not in ("auto", 0):
            raise ParameterError("n_pretraining_steps", "needs augment: copies of a row that differ.")
        check_number("hidden_share", self.hidden_share, least=0, below=1, words=("auto",))
        if self.transport is not None and not isinstance(self.transport, (OTP, PaperOTP)):
            raise ParameterError(
                "transport", f"must be an OTP, a PaperOTP or None; got a {type(self.transport).__name__}."
            )
        if self.callback is not None and not callable(self.callback):
            raise ParameterError("callback", f"must be a function of a round, or None; got {self.callback!r}.")
        if self.checkpoint is not None and (not isinstance(self.checkpoint, (str, PathLike)) or self.checkpoint == ""):
            raise ParameterError("checkpoint", f"must be the name of a folder, or None; got {self.checkpoint!r}.")
        if self.checkpoint is not None and not isinstance(self.random_state, (int, np.integer)):
            raise ParameterError(
                "random_state", f"must be an integer with checkpoint, to go on alike; got {self.random_state!r}."
            )

    def set_progress(self, callback: ProgressCallback | None) -> Self:
        """Set a callback for the progress of `fit`; it is not a parameter and not kept in copies.

        Parameters
        ----------
        callback : callable or None
            Called with the work done and the total work, in rounds, and the name of the current step.

        Returns
        -------
        self
        """
        self._on_progress = callback
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Label every row of X and train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width) or any other shape the network takes
        y : array-like of shape (n_rows,), labels of any one type, with a marker where a row is unlabelled

        Returns
        -------
        self
        """
        forget_fit(self)
        self.check_parameters()
        rows = self._read_rows(X, reset=True, least=2)
        labels = self._read_labels(y, len(rows))
        self.classes_, seed = labels.classes, self._seed()
        self.hidden_rows_ = choose_hidden(labels.codes, self.hidden_share, len(labels.classes), seed_of(seed, 0))
        try:
            with self._seeded():
                self._make_network(rows, len(labels.classes), seed=0)  # both are tried before any work is done
                try_augmentation(rows, self._training_config(len(rows)))
                self._run_rounds(rows, labels, seed, self._open_checkpoint(rows, labels))
                self._progress(len(self.rounds_), "transport over the features of the last network")
                last = self._transported(network_features(self.module_, rows), labels.codes, labels.classes)
        except BaseException:
            forget_fit(self)  # the network of an unfinished run is not a fitted model
            raise
        self._set_results(last, labels)
        return self

    def _run_rounds(self, rows: Any, labels: Labels, seed: int, folder: CheckpointFolder | None) -> None:
        """Run the rounds that the folder does not hold; set `rounds_` and `module_`."""
        self.rounds_: list[NetworkRound] = []
        start = self._pretrained(rows, len(labels.classes), seed, folder)
        features = rows.flatten(1).numpy()
        if start is not None:
            features = side_by_side(network_features(start, rows), features)
        stop, n_loaded = False, 0
        for number in range(1, self.n_rounds + 1):
            if stop:
                break
            module = self._make_network(rows, len(labels.classes), seed_of(seed, number))
            loaded = None
            if folder is not None and n_loaded == number - 1:
                loaded = folder.load_round(number, module, len(rows), len(labels.classes))
            if loaded is not None:
                record, n_loaded = loaded, number
                self.module_ = module.eval()
            else:
                if self.rounds_:
                    features = network_features(self.module_, rows)
                record = self._run_round(number, module, rows, features, labels, seed)
                if folder is not None:
                    folder.save(number, self.module_, record.codes, record.to_json())
            self.rounds_.append(record)
            self._log(record)
            stop = self.callback is not None and _is_true(self.callback(record))

    def _pretrained(self, rows: Any, n_classes: int, seed: int, folder: CheckpointFolder | None) -> Any:
        """A network trained without labels, from the folder if it is there; None if there are no steps."""
        config = self._pretraining_config(len(rows))
        if config.n_steps == 0:
            return None
        module = self._make_network(rows, n_classes, seed_of(seed, 0))
        if folder is not None and folder.load(0, module) is not None:
            return module

        def on_step(step: int, n_steps: int) -> None:
            if step % max(1, n_steps // 20) == 0:
                self._progress(0, f"training without labels: step {step} of {n_steps}")

        pretrain(module, rows, config, seed=seed_of(seed, 0, 1), on_step=on_step)
        if folder is not None:
            folder.save(0, module, np.empty(0), {})
        return module

    def _pretraining_config(self, n_rows: int) -> TrainingConfig:
        steps, size = self.n_pretraining_steps, 2 * self.batch_size
        if isinstance(steps, str):
            worth = self.augment is not None and n_rows >= ROWS_FOR_PRETRAINING
            steps = min(-(-PASSES * n_rows // size), MAX_PRETRAINING) if worth else 0
        return TrainingConfig(steps, size, self.learning_rate, self.weight_decay, self.augment)

    def _run_round(
        self, number: int, module: Any, rows: Any, features: np.ndarray, labels: Labels, seed: int
    ) -> NetworkRound:
        """Propagate labels over features and train the network on them; set `module_`."""
        start = time.perf_counter()
        self._progress(number - 1, f"round {number}: transport")
        codes = labels.codes.copy()
        codes[self.hidden_rows_] = UNLABELED
        model = self._transported(features, codes, labels.classes)
        training = self._train(number, module, rows, model, codes, labels, seed)
        self.module_ = training.module
        found, unlabeled = _class_numbers(model), np.flatnonzero(codes == UNLABELED)
        before = self.rounds_[-1].codes if self.rounds_ else found
        error = getattr(model, "expected_error_", float("nan"))
        if self.rounds_:  # the network that made these features has seen every label
            error = self.rounds_[0].expected_error
        return NetworkRound(
            number=number,
            codes=found,
            n_changed=int((before != found).sum()),
            certainty=_mean(model.certainty_[unlabeled]),
            confidence=_mean(model.confidence_[unlabeled]) if hasattr(model, "confidence_") else float("nan"),
            expected_error=float(error),
            n_steps=training.n_steps,
            best_step=training.best_step,
            loss=training.loss,
            hidden_loss=training.hidden_loss,
            hidden_accuracy=training.hidden_accuracy,
            seconds=time.perf_counter() - start,
        )

    def _train(
        self, number: int, module: Any, rows: Any, model: OTP | PaperOTP, codes: np.ndarray, labels: Labels, seed: int
    ) -> Training:
        hidden = self.hidden_rows_
        weights = _training_weights(model, codes)
        weights[hidden] = 0.0
        hidden_labels = HiddenLabels(rows[hidden], labels.codes[hidden]) if len(hidden) else None

        def on_step(step: int, n_steps: int) -> None:
            if step % max(1, n_steps // 20) == 0:
                self._progress(number - 1 + step / n_steps, f"round {number}: step {step} of {n_steps}")

        return train(
            module,
            rows,
            np.maximum(_class_numbers(model), 0),
            weights,
            self._training_config(len(rows)),
            seed=seed_of(seed, number, 1),
            hidden=hidden_labels,
            on_step=on_step,
        )

    def _transported(self, features: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> OTP | PaperOTP:
        model = OTP(n_jobs=self.n_jobs) if self.transport is None else clone(self.transport)
        model.set_params(unlabeled="auto")  # -1 in codes; a named marker would warn if it is absent
        model.set_params(class_prior=check_prior(model.class_prior, classes))  # labels to class numbers
        return model.fit(features, codes)

    def _read_labels(self, y: Any, n_rows: int) -> Labels:
        labels = encode_labels(y, self.unlabeled)
        if len(labels.codes) != n_rows:
            raise InputError(
                f"X has {n_rows} rows and y {len(labels.codes)} entries: give y one entry per row, with a marker such "
                "as -1 or None where a row is unlabelled."
            )
        if self.classes is not None:
            _check_classes(np.asarray(self.classes), labels.classes)
        if len(labels.classes) < 2:
            raise InputError(
                f"y has one class, {class_list(labels.classes)[0]!r}: no labelled row of another. Label at least one "
                "row of each class."
            )
        if self.transport is not None:
            check_prior(self.transport.class_prior, labels.classes)  # before any work is done
        return labels

    def _open_checkpoint(self, rows: Any, labels: Labels) -> CheckpointFolder | None:
        if self.checkpoint is None:
            return None
        free = ("n_rounds", "checkpoint", "callback", "verbose", "n_jobs", "unlabeled", "classes")
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in free}
        module = self._make_network(rows, len(labels.classes), seed=0)  # for its architecture alone
        folder = CheckpointFolder(self.checkpoint, fingerprint(rows.numpy(), labels.codes, settings, module))
        first = 0 if self._pretraining_config(len(rows)).n_steps else 1
        folder.make_ready(range(first, self.n_rounds + 1))
        return folder

    def _set_results(self, model: OTP | PaperOTP, labels: Labels) -> None:
        self.transport_, self.transduction_ = model, labels.decode(_class_numbers(model))
        self.label_distributions_, self.certainty_ = model.label_distributions_, model.certainty_
        if hasattr(model, "confidence_"):
            self.confidence_ = model.confidence_

    def _progress(self, done: float, step: str) -> None:
        on_progress: ProgressCallback | None = getattr(self, "_on_progress", None)
        if on_progress is not None:
            on_progress(done, float(self.n_rounds), step)

    def _log(self, record: NetworkRound) -> None:
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "network round %d: %d rows changed class, certainty %.4f, %d steps to loss %.4f in %.1f s",
            record.number,
            record.n_changed,
            record.certainty,
            record.n_steps,
            record.loss,
            record.seconds,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_on_progress"}


def _class_numbers(model: OTP | PaperOTP) -> np.ndarray:
    """The results of a model that was fitted on class numbers, -1 where it left a row unlabelled."""
    return np.asarray(model.transduction_, dtype=np.intp)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _is_true(answer: Any) -> bool:
    """The answer of a callback; an array has none."""
    try:
        return bool(answer)
    except Exception as error:
        raise ParameterError(
            "callback", f"must return true to stop, else false or None; got a {type(answer).__name__}."
        ) from error


def _check_classes(named: np.ndarray, found: np.ndarray) -> None:
    """Refuse classes of y that are not in `named`, and named classes that are not in y."""
    missing = np.flatnonzero(class_numbers(class_list(named), found) == UNLABELED)
    if len(missing):
        label = class_list(named)[missing[0]]
        raise InputError(f"no labelled row of the class {label!r} in y: label at least one of its rows.")
    extra = np.flatnonzero(class_numbers(class_list(found), named) == UNLABELED)
    if len(extra):
        raise ParameterError("classes", f"lacks {class_list(found)[extra[0]]!r}, which y has.")


def _training_weights(model: OTP, codes: np.ndarray) -> np.ndarray:
    """How often each row is drawn: by the weight of its label, with a fixed share of given labels."""
    rows, _, weight = model.pseudo_labels(np.arange(len(codes)))
    weights = np.zeros(len(codes))
    weights[rows] = weight
    given = np.flatnonzero(codes != UNLABELED)
    weights *= (1 - GIVEN_SHARE) / weights.sum()
    weights[given] += GIVEN_SHARE * class_balanced_weights(codes[given], np.ones(len(given))) / len(given)
    return weights
