"""Simulators, and loaders of public data.

A loader looks in ``path=``, then in the folder that ``$RANKBOOK_DATA`` names, then in the user's
cache, and then downloads. What it reads is checked against a known checksum wherever it came from.
"""

from rankbook.datasets.noisy_threshold import (
    NoisyThresholdModel,
    make_linear_model,
    make_rule_model,
    noise_for_bayes_risk,
)
from rankbook.datasets.uci import UCI_NAMES, UCIData, load_uci

__all__ = [
    "UCI_NAMES",
    "NoisyThresholdModel",
    "UCIData",
    "load_uci",
    "make_linear_model",
    "make_rule_model",
    "noise_for_bayes_risk",
]
