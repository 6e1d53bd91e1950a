"""Other label propagation methods and classifiers, with the interface of the estimators of this package."""

from otprop_paper.baselines.cnmf import CNMF
from otprop_paper.baselines.lnp import LNP
from otprop_paper.baselines.lp import LabelPropagation
from otprop_paper.baselines.ls import LabelSpreading
from otprop_paper.baselines.nearest import KernelVote, NearestNeighbor
from otprop_paper.baselines.plcc import PLCC
from otprop_paper.baselines.supervised import SelfTraining, Supervised

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
