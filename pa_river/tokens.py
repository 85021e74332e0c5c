"""Tokens -> a sentence: the features of each token, from mappings or from the names of those that are 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from pa_river.features import features, short
from pa_river.terms import Features

#: A checked sentence: the features of each token.
Sentence: TypeAlias = "Sequence[Features]"


def sentence(tokens: Any) -> list[Features]:
    """Return the checked features of each token.

    A token is a mapping as everywhere, or names of features that are 1: one text, or a list or tuple of texts.

    Raises
    ------
    ValueError
        Naming the token and the feature, if a token is neither or one of its features is refused.

    Examples
    --------
    >>> sentence(["the", ["w=dog", "suffix=og"], {"length": 4, "shape": "xxxx"}])
    [{'the': 1.0}, {'w=dog': 1.0, 'suffix=og': 1.0}, {'length': 4.0, 'shape=xxxx': 1.0}]

    """
    if not isinstance(tokens, (list, tuple)):
        raise ValueError(f"the tokens of a sequence must be a list, got {type(tokens).__name__}")
    checked = []
    for i, own in enumerate(tokens):
        try:
            checked.append(token(own))
        except ValueError as error:
            raise ValueError(f"token {i}: {error}") from error
    return checked


def require_pairs(tokens: Any, tags: Any) -> None:
    """`ValueError` if there are more of one than of the other; what is no list at all is refused elsewhere."""
    if isinstance(tokens, (list, tuple)) and isinstance(tags, (list, tuple)) and len(tokens) != len(tags):
        raise ValueError(f"{len(tokens)} tokens with {len(tags)} tags")


def token(x: Any) -> Features:
    """Return the checked features of one token; `ValueError` as `sentence` words it."""
    if isinstance(x, str):
        return {str(x): 1.0}
    if not isinstance(x, (list, tuple)):
        return features(x)
    try:
        "".join(x)  # whether each is a text, at the speed of C
    except TypeError:
        raise ValueError(f"a token given as a list must hold texts, got {short(x)}") from None
    phi = dict.fromkeys(x, 1.0)
    if len(phi) != len(x):
        raise ValueError(f"feature {next(name for i, name in enumerate(x) if name in x[:i])!r} appears twice")
    return phi
