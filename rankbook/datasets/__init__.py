"""Simulators, and loaders of public data.

A loader looks in ``path=``, then in the folder that ``$RANKBOOK_DATA`` names, then in the user's
cache, and then downloads. What it reads is checked against a known checksum wherever it came from.
"""

from rankbook.datasets.latent_utility import (
    LatentUtilityData,
    LatentUtilityModel,
    make_latent_utility,
)
from rankbook.datasets.letor import LetorData, load_letor
from rankbook.datasets.letor_model import make_letor
from rankbook.datasets.movielens import MovieLensData, load_movielens
from rankbook.datasets.noisy_threshold import (
    NoisyThresholdModel,
    make_linear_model,
    make_rule_model,
    noise_for_bayes_risk,
)
from rankbook.datasets.tripartite_normal import make_tripartite_normal
from rankbook.datasets.uci import UCI_NAMES, UCIData, load_uci

__all__ = [
    "UCI_NAMES",
    "LatentUtilityData",
    "LatentUtilityModel",
    "LetorData",
    "MovieLensData",
    "NoisyThresholdModel",
    "UCIData",
    "load_letor",
    "load_movielens",
    "load_uci",
    "make_latent_utility",
    "make_letor",
    "make_linear_model",
    "make_rule_model",
    "make_tripartite_normal",
    "noise_for_bayes_risk",
]
