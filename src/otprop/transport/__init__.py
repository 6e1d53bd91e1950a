"""Given costs and the mass each side has: what moves where."""

from otprop.transport.result import TransportResult
from otprop.transport.sinkhorn import sinkhorn

__all__ = ["TransportResult", "sinkhorn"]
