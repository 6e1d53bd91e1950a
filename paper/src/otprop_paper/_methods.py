"""The methods by name: one registry for `otprop label` and for the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from otprop import OTP, PaperOTP
from otprop_paper.baselines import (
    CNMF,
    LNP,
    PLCC,
    KernelVote,
    LabelPropagation,
    LabelSpreading,
    NearestNeighbor,
    SelfTraining,
    Supervised,
)


@dataclass(frozen=True)
class Method:
    """A method that labels a table.

    Attributes
    ----------
    name : str, as in the commands
    title : str, as in tables and figures
    make : callable, returns an estimator that is not fitted
    """

    name: str
    title: str
    make: Callable[[], Any]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("otp", "OTP", OTP),
        Method("otp-paper", "OTP.paper", PaperOTP),
        Method("lp", "LP", lambda: LabelPropagation("knn")),
        Method("ls", "LS", lambda: LabelSpreading("knn")),
        Method("lnp", "LNP", LNP),
        Method("cnmf", "CNMF", CNMF),
        Method("plcc", "PLCC", PLCC),
        Method("1nn", "1-NN", NearestNeighbor),
        Method("vote", "kernel vote", KernelVote),
        Method("logistic", "logistic", lambda: Supervised("logistic")),
        Method("trees", "extra trees", lambda: Supervised("extra_trees")),
        Method("self-logistic", "self-trained logistic", lambda: SelfTraining("logistic")),
        Method("self-trees", "self-trained trees", lambda: SelfTraining("extra_trees")),
    )
}
