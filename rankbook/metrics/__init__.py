"""What a ranking is worth on data.

`pairs` compares items two by two (or one of each class); `lists` reads a list from its top.
"""

from . import lists, pairs
from .lists import *  # noqa: F403
from .pairs import *  # noqa: F403

__all__ = [*pairs.__all__, *lists.__all__]
