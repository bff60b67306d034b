"""Causal self-attention, step by step: every number real, and open down to its multiply-adds."""

from .module import CausalAttention, SelfAttention
from .trace import Trace

__all__ = ["CausalAttention", "SelfAttention", "Trace"]
