"""Networks trained on given and propagated labels; using them requires PyTorch (the extra ``deep``)."""

from otprop.deep.augment import RandomAffine
from otprop.deep.checkpoint import CheckpointError
from otprop.deep.classifier import NetworkClassifier
from otprop.deep.networks import conv_net, mlp
from otprop.deep.rounds import NetworkRound
from otprop.deep.trainer import PseudoLabelTrainer

__all__ = [
    "CheckpointError",
    "NetworkClassifier",
    "NetworkRound",
    "PseudoLabelTrainer",
    "RandomAffine",
    "conv_net",
    "mlp",
]
