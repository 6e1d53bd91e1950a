"""Peers to compare with, all with the face of the package's own estimators."""

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
