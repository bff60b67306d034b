"""Causal self-attention, step by step: every number real, and open down to its multiply-adds."""

from .compute import Result, attend  # first: it imports spaces before torch
from .module import CausalAttention, SelfAttention
from .request import Request
from .trace import Trace

__all__ = ["CausalAttention", "Request", "Result", "SelfAttention", "Trace", "attend"]
