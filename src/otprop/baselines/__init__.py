"""Other label propagation methods and classifiers, with the interface of the estimators of this package."""

from otprop.baselines.cnmf import CNMF
from otprop.baselines.lnp import LNP
from otprop.baselines.lp import LabelPropagation
from otprop.baselines.ls import LabelSpreading
from otprop.baselines.nearest import KernelVote, NearestNeighbor
from otprop.baselines.plcc import PLCC
from otprop.baselines.supervised import SelfTraining, Supervised

__all__ = [
    "CNMF",
    "LNP",
    "PLCC",
    "KernelVote",
    "LabelPropagation",
    "LabelSpreading",
    "NearestNeighbor",
    "SelfTraining",
    "Supervised",
]
