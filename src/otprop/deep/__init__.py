"""Networks trained on given and propagated labels; using them requires PyTorch (the extra ``deep``)."""

from otprop.deep.checkpoint import CheckpointError, NetworkRound
from otprop.deep.classifier import NetworkClassifier
from otprop.deep.networks import RandomAffine, conv_net, mlp
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
