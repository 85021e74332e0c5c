"""Sequences: the tags given should beat the best other tags of the whole sentence by the root of their cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from river import base

from pa_river import _validate, chain, decode, labels, state, steps
from pa_river.chain import ChainStore, Sentence
from pa_river.decode import Lattice
from pa_river.features import features
from pa_river.terms import Features, Term, Violation

#: cost(tags, predicted tags) -> finite number >= 0
Cost = Callable[[list[Hashable], list[Hashable]], float]


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
    for i, token in enumerate(tokens):
        try:
            checked.append(_token(token))
        except ValueError as error:
            raise ValueError(f"token {i}: {error}") from error
    return checked


@state.storable
class PASequence(base.Base):
    """Passive-Aggressive tagger of sequences: first-order Markov features, decoded exactly.

    The score of a sentence with tags is the sum of one weight for each (tag, feature) of a token times the feature's
    value, one for each (previous tag, tag) and one for the first tag. Tags are learned as they come, at any time.

    Parameters
    ----------
    rule
        Step rule; `PA1(C=1.0)` if None.
    cost
        What predicting r instead of y costs: "hamming", the number of wrong tags, or a callable of the two lists of
        tags that returns a finite number >= 0.
    update
        Which rival the tags given must beat. "prediction": the predicted tags, by the root of their cost. "max_loss":
        the tags of the largest loss, by the number of wrong tags, which Viterbi can maximise; the root of a cost or any
        other cost it cannot, so `cost` must be "hamming".
    average
        Whether predictions and `weights` use the mean of the weights after each example; learning never does.

    Notes
    -----
    tokens: a list with, for each token, its features as a mapping, or the names of those that are 1 as a text or a list
    of texts. tags: a list of as many labels. Ties go to the tags seen first, decided from the last token back; an
    untrained model predicts None for each token. With one known tag nothing is there to learn. Raises `ValueError`
    naming token and feature before anything changes. O(m k^2 + k features) time for m tokens and k tags; k floats a
    feature that ever moved, 2 k with `average`. Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7,
    2006, sections 8 and 9.

    Examples
    --------
    >>> from pa_river import PA
    >>> model = PASequence(PA())
    >>> model.learn_one(["the", "dog"], ["DET", "NOUN"])  # ties give DET DET: 1 wrong tag, 4 joint features differ
    >>> model.weights["emit", "NOUN", "dog"], model.weights["move", "DET", "DET"]
    (0.25, -0.25)
    >>> model.predict_one(["a", "dog"])
    ['DET', 'NOUN']

    """

    rule: steps.StepRule | None

    def __init__(
        self,
        rule: steps.StepRule | None = None,
        *,
        cost: str | Cost = "hamming",
        update: str = "prediction",
        average: bool = False,
    ):
        _validate.require_instance("PASequence", "rule", rule, steps.StepRule, "PA(), PA1(C) or PA2(C)")
        if not (callable(cost) or cost == "hamming"):
            raise ValueError(f"PASequence(cost=...) must be 'hamming' or a callable, got {cost!r}")
        self.rule = rule
        self.cost = cost
        self.update = _validate.require_choice("PASequence", "update", update, ("prediction", "max_loss"))
        self.average = _validate.require_bool("PASequence", "average", average)
        if callable(cost) and update == "max_loss":
            raise ValueError("PASequence(update='max_loss') needs cost='hamming': no other cost is a sum over tokens")
        self._tags: dict[Hashable, int] = {}  # tag -> slot, in order of arrival
        self._store = ChainStore()
        self._sums = ChainStore() if average else None  # sum over examples of (examples before it) * (its move)
        self._version = 0

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}

    @property
    def version(self) -> int:
        """How many examples were learned: weight above 0, passive ones included."""
        return self._version

    @property
    def tags(self) -> list[Hashable]:
        """The tags seen, in order of arrival."""
        return list(self._tags)

    @property
    def weights(self) -> dict[tuple[Any, ...], float]:
        """The weights that predict, other than 0.

        A fresh dict of ("start", tag), ("move", previous, tag) and ("emit", tag, feature) -> weight.
        """
        found = self._store.weights()
        if self._sums is not None and self._version:
            for key, value in self._sums.weights().items():
                found[key] = found.get(key, 0.0) - value / self._version
        tags = list(self._tags)
        named: dict[tuple[Any, ...], float] = {}
        for (kind, *at), value in found.items():
            if kind == "move":
                named["move", tags[at[0]], tags[at[1]]] = value
            else:
                named[(kind, tags[at[0]], *at[1:])] = value
        return {key: value for key, value in named.items() if value}

    def learn_one(self, tokens: Sequence[Any], tags: Sequence[Hashable], w: float = 1.0) -> None:
        """Learn one sentence.

        Parameters
        ----------
        tokens
            The features of each token: a mapping, or the names of those that are 1.
        tags
            As many labels. A new one is known from here on.
        w
            Importance, finite and >= 0: it scales `C` inside the rule. 0 changes nothing at all.

        Raises
        ------
        ValueError
            If a token, a tag, their number, w or the cost is refused, or a score or weight would not be finite. The
            model is as before.

        """
        w, phi, y = _validate.example_weight(w), *_example(tokens, tags)
        if w:
            self._learn(phi, y, w)

    def step(self, tokens: Sequence[Any], tags: Sequence[Hashable], w: float = 1.0) -> list[Any]:
        """Return what `predict_one(tokens)` returns, then learn."""
        w, phi, y = _validate.example_weight(w), *_example(tokens, tags)
        lattice = self._lattice(phi)
        path = decode.best_path(lattice)
        if w:
            # the same lattice and path serve to learn, unless they are of the mean or lack a new tag
            same = self._sums is None and all(tag in self._tags for tag in y)
            prediction = self._named(path, len(phi))
            self._learn(phi, y, w, (lattice, path) if same else None)
            return prediction
        return self._named(path, len(phi))

    def predict_one(self, tokens: Sequence[Any]) -> list[Any]:
        """Return the best tags of a sentence, a list as long as `tokens`. Never changes the model."""
        phi = sentence(tokens)
        return self._named(decode.best_path(self._lattice(phi)), len(phi))

    def decision_one(self, tokens: Sequence[Any]) -> float:
        """Return the score of the tags that `predict_one` gives; 0.0 if untrained. Never changes the model."""
        lattice = self._lattice(sentence(tokens))
        return decode.score(lattice, decode.best_path(lattice))

    def learn_many(self, X: Sequence[Any], y: Sequence[Any], w: Sequence[float] | None = None) -> None:
        """Learn a list of sentences in order, all or nothing: equal to a loop of `learn_one`.

        `ValueError` names the row, a sentence's place in X; nothing is learned then.
        """
        weights = [1.0] * len(X) if w is None else list(w)
        if not len(X) == len(y) == len(weights):
            raise ValueError(f"X has {len(X)} rows, y has {len(y)}, w has {len(weights)}")
        examples = []
        for row, (tokens, tags, weight) in enumerate(zip(X, y, weights)):
            try:
                examples.append((_validate.example_weight(weight), *_example(tokens, tags)))
            except ValueError as error:
                raise ValueError(f"row {row}: {error}") from error
        undo = self._mark([token for _, phi, _ in examples for token in phi])
        for row, (weight, phi, gold) in enumerate(examples):
            try:
                if weight:
                    self._learn(phi, gold, weight)
            except Exception as error:  # whatever a callable cost raises: the batch is undone, the error goes on
                undo()
                if isinstance(error, ValueError):
                    raise ValueError(f"row {row}: {error}") from error
                raise

    def predict_many(self, X: Sequence[Any]) -> list[list[Any]]:
        """Return `predict_one` of every sentence of a list."""
        return [self.predict_one(tokens) for tokens in X]

    _normalise_y = staticmethod(labels.tags)

    def _lattice(self, phi: Sentence) -> Lattice:
        """The scores that predict: of the weights, or of their mean."""
        current = self._store.lattice(phi, len(self._tags))
        if self._sums is None or not self._version:
            return current
        past = self._sums.lattice(phi, len(self._tags))
        return Lattice(*(now - sums / self._version for now, sums in zip(current, past)))

    def _named(self, path: list[int], length: int) -> list[Any]:
        tags = list(self._tags)
        return [tags[slot] for slot in path] if tags else [None] * length

    def _violation(self, phi: Sentence, gold: list[int], tags: list[Hashable], found: Any = None) -> Violation | None:
        """The constraint that the sentence breaks, among `tags`; `found`: lattice and best path, if known already."""
        lattice, rival = found or (self._store.lattice(phi, len(tags)), None)
        if self.update == "max_loss":
            rival = decode.best_path(decode.with_cost(lattice, gold))
        elif rival is None:
            rival = decode.best_path(lattice)
        if rival == gold:
            return None
        direction = chain.difference(phi, gold, rival)
        loss = self._margin(gold, rival, tags) - self._store.score(direction)
        if loss <= 0.0:
            return None
        return Violation(_finite(loss), self._store.norm(direction), (Term(1.0, direction),))

    def _margin(self, gold: list[int], rival: list[int], tags: list[Hashable]) -> float:
        if self.update == "max_loss":
            return float(decode.wrong(rival, gold))
        if not callable(self.cost):
            return math.sqrt(decode.wrong(rival, gold))
        cost = self.cost([tags[slot] for slot in gold], [tags[slot] for slot in rival])
        return math.sqrt(_validate.require_non_negative("PASequence", "cost", cost))

    def _learn(self, phi: Sentence, y: list[Hashable], w: float, found: Any = None) -> None:
        known = dict(self._tags)
        gold = [known.setdefault(tag, len(known)) for tag in y]
        violation = self._violation(phi, gold, list(known), found)
        if violation is not None:
            length = (self.rule or steps.DEFAULT).length(violation.loss, violation.norm, w)
            if length > 0.0:
                commit = self._store.prepare(violation.terms, length, violation.norm)
                if self._sums is not None and self._version:
                    self._sums.add(violation.terms, _finite(length * self._version), violation.norm)
                commit()
        self._tags = known
        self._version += 1

    def _mark(self, tokens: list[Features]) -> Callable[[], None]:
        version, tags = self._version, self._tags  # never changed in place
        restore = [store.mark(tokens) for store in (self._store, self._sums) if store is not None]

        def undo() -> None:
            self._version, self._tags = version, tags
            for each in restore:
                each()

        return undo

    def _get_state(self) -> dict[str, Any]:
        k = len(self._tags)
        return {
            "version": self._version,
            "tags": list(self._tags),
            "store": self._store.get_state(k),
            "sums": None if self._sums is None else self._sums.get_state(k),
        }

    def _set_state(self, values: dict[str, Any]) -> None:
        self._version = _validate.require_count("PASequence", "version", values["version"], least=0)
        tags = labels.tags(values["tags"])
        self._tags = {tag: slot for slot, tag in enumerate(tags)}
        if len(self._tags) != len(tags):
            raise state.StateError("a tag is stored twice")
        self._store.set_state(values["store"], len(tags))
        if self._sums is not None:
            self._sums.set_state(values["sums"], len(tags))


def _token(token: Any) -> Features:
    if isinstance(token, str):
        return {str(token): 1.0}
    if not isinstance(token, (list, tuple)):
        return features(token)
    try:
        "".join(token)  # whether each is a text, at the speed of C
    except TypeError:
        raise ValueError(f"a token given as a list must hold texts, got {token!r:.80}") from None
    phi = dict.fromkeys(token, 1.0)
    if len(phi) != len(token):
        raise ValueError(f"feature {next(name for i, name in enumerate(token) if name in token[:i])!r} appears twice")
    return phi


def _example(tokens: Any, tags: Any) -> tuple[list[Features], list[Hashable]]:
    phi, y = sentence(tokens), labels.tags(tags)
    if len(phi) != len(y):
        raise ValueError(f"{len(phi)} tokens with {len(y)} tags")
    return phi, y


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("the loss or the step would not be finite; nothing was learned")
    return value
