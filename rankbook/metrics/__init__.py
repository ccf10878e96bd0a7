"""What a ranking is worth on data.

`pairs` compares items two by two (or one of each class); `lists` reads a list from its top;
`scorers` hands both to scikit-learn.
"""

from rankbook.metrics import lists, pairs, scorers
from rankbook.metrics.lists import *  # noqa: F403
from rankbook.metrics.pairs import *  # noqa: F403
from rankbook.metrics.scorers import *  # noqa: F403

__all__ = [*pairs.__all__, *lists.__all__, *scorers.__all__]
