"""Solvers of entropic optimal transport: between rows (`sinkhorn`), and from classes to rows (`class_level`)."""

from otprop.transport.result import TransportResult
from otprop.transport.sinkhorn import sinkhorn

__all__ = ["TransportResult", "sinkhorn"]
