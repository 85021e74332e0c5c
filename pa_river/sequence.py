"""Sequences: the tags given should beat the best other tags of the whole sentence by the root of their cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from river import base

from pa_river import _compiled, _validate, batch, chain, decode, labels, prototypes, state, steps
from pa_river.chain import ChainStore
from pa_river.decode import Lattice
from pa_river.features import short
from pa_river.learner import PALearner
from pa_river.sentences import Sentences
from pa_river.terms import Features, Term, Violation
from pa_river.tokens import Sentence, require_pairs, sentence

#: cost(tags, predicted tags) -> finite number >= 0
Cost = Callable[[list[Hashable], list[Hashable]], float]


class Scores:
    """What a sentence scores, each part worked out when it is first asked for, before any weight moves."""

    def __init__(self, phi: Sentence, tags: int, store: ChainStore, examples: int):
        self._phi, self._tags, self._store, self._examples = phi, tags, store, examples

    @cached_property
    def current(self) -> Lattice:
        """By the weights as they are: what learning looks at."""
        return self._store.lattice(self._phi, self._tags)

    @cached_property
    def path(self) -> list[int]:
        """The best path of `current`."""
        return decode.best_path(self.current)

    @cached_property
    def serving(self) -> Lattice:
        """By the weights that predict: `current`, or the mean."""
        if self._store.past is None or not self._examples:
            return self.current
        return self._store.mean_lattice(self._phi, self._tags, self._examples)

    @cached_property
    def answer(self) -> list[int]:
        """The best path of `serving`."""
        return self.path if self.serving is self.current else decode.best_path(self.serving)

    def __len__(self) -> int:
        return len(self._phi)


@state.storable
class PASequence(PALearner[Scores], base.Base):
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

    _store: ChainStore

    def __init__(
        self,
        rule: steps.StepRule | None = None,
        *,
        cost: str | Cost = "hamming",
        update: str = "prediction",
        average: bool = False,
    ):
        if not (callable(cost) or cost == "hamming"):
            raise ValueError(f"PASequence(cost=...) must be 'hamming' or a callable, got {short(cost)}")
        self.rule = rule
        self.cost = cost
        self.update = _validate.require_choice("PASequence", "update", update, ("prediction", "max_loss"))
        self.average = _validate.require_bool("PASequence", "average", average)
        if callable(cost) and update == "max_loss":
            raise ValueError("PASequence(update='max_loss') needs cost='hamming': no other cost is a sum over tokens")
        self._tags: dict[Hashable, int] = {}  # tag -> slot, in order of arrival
        self._store = ChainStore(average)

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}

    @property
    def tags(self) -> list[Hashable]:
        """The tags seen, in order of arrival."""
        return list(self._tags)

    @property
    def weights(self) -> dict[tuple[Any, ...], float]:
        """The weights that predict, other than 0.

        A fresh dict of ("start", tag), ("move", previous, tag) and ("emit", tag, feature) -> weight.
        """
        tags = list(self._tags)
        named: dict[tuple[Any, ...], float] = {}
        for (kind, *at), value in self._store.weights(self._version).items():
            if kind == "move":
                named["move", tags[at[0]], tags[at[1]]] = value
            else:
                named[(kind, tags[at[0]], *at[1:])] = value
        return named

    # a sentence stands where the other learners take a record, hence the ignored overrides
    def learn_one(  # type: ignore[override]
        self, tokens: Sequence[Any], tags: Sequence[Hashable], w: float = 1.0,
    ) -> None:
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
        require_pairs(tokens, tags)
        if (compiled := self._taggers()) is not None:
            compiled.learn(self, tokens, tags, w, False)
        else:
            super().learn_one(tokens, tags, w)  # type: ignore[arg-type]

    def step(  # type: ignore[override]
        self, tokens: Sequence[Any], tags: Sequence[Hashable], w: float = 1.0,
    ) -> list[Any]:
        """Return what `predict_one(tokens)` returns, then learn: one look-up of the features for both."""
        require_pairs(tokens, tags)
        if (compiled := self._taggers()) is not None:
            return compiled.learn(self, tokens, tags, w, True)  # type: ignore[no-any-return]
        return super().step(tokens, tags, w)  # type: ignore[arg-type, no-any-return]

    def predict_one(self, tokens: Sequence[Any], **kwargs: Any) -> list[Any]:  # type: ignore[override]
        """Return the best tags of a sentence, a list as long as `tokens`. Never changes the model."""
        if (compiled := self._taggers()) is not None:
            return compiled.predict(self, tokens)  # type: ignore[no-any-return]
        return self._predicted(self._scores(sentence(tokens)))

    def decision_one(self, tokens: Sequence[Any]) -> float:
        """Return the score of the tags that `predict_one` gives; 0.0 if untrained. Never changes the model."""
        scores = self._scores(sentence(tokens))
        return decode.score(scores.serving, scores.answer)

    def learn_many(self, X: Sequence[Any], y: Sequence[Any], w: Sequence[float] | None = None) -> None:
        """Learn a list of sentences in order, all or nothing: equal to a loop of `learn_one`.

        For many epochs over the same sentences read them once: `X = pa_river.Sentences(X)`. `ValueError` names the row,
        a sentence's place in X; nothing is learned then.
        """
        if (compiled := self._taggers()) is not None:
            compiled.learn_many(self, X if isinstance(X, Sentences) else Sentences(X), y, w)
        else:
            super().learn_many(X, y, w)

    def step_many(self, X: Sequence[Any], y: Sequence[Any], w: Sequence[float] | None = None) -> list[list[Any]]:
        """Return the tags of each sentence before it is learned, and learn them: a loop of `step`, all or nothing."""
        return list(super().step_many(X, y, w))

    def predict_many(self, X: Sequence[Any]) -> list[list[Any]]:
        """Return `predict_one` of every sentence of a list, or of `Sentences`."""
        if (compiled := self._taggers()) is not None:
            return compiled.predict_many(self, X if isinstance(X, Sentences) else Sentences(X))  # type: ignore
        return [self._predicted(self._scores(phi)) for phi in self._inputs(X)]

    def _taggers(self) -> Any:
        """The compiled loops; None where the reference is to run."""
        return None if self._store.interpreted else _compiled.taggers

    _normalise_y = staticmethod(labels.tags)

    def _input(self, x: Any) -> list[Features]:
        return sentence(x)

    def _inputs(self, X: Any) -> Iterator[list[Features]]:
        return iter(X) if isinstance(X, Sentences) else batch.numbered(X, sentence)

    def _scores(self, phi: Sentence) -> Scores:
        return Scores(phi, len(self._tags), self._store, self._version)

    def _predicted(self, scores: Scores) -> list[Any]:
        tags = list(self._tags)
        return [tags[slot] for slot in scores.answer] if tags else [None] * len(scores)

    def _violation(self, phi: Sentence, y: list[Hashable], scores: Scores) -> Violation | None:
        require_pairs(phi, y)
        known = self._registered(y)
        if len(known) > len(self._tags):  # new tags are among the rivals
            scores = Scores(phi, len(known), self._store, 0)
        gold = [known[tag] for tag in y]
        if self.update == "max_loss":
            rival = decode.best_path(decode.with_cost(scores.current, gold))
        else:
            rival = scores.path
        if rival == gold:
            return None
        direction = chain.difference(phi, gold, rival)
        loss = self._margin(gold, rival, list(known)) - self._store.score(direction)
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

    def _update(self, phi: Sentence, y: list[Hashable], w: float, scores: Scores) -> None:
        violation = self._violation(phi, y, scores)
        if violation is None:
            return
        length = (self.rule or steps.DEFAULT).length(violation.loss, violation.norm, w)
        if length > 0.0:
            self._store.add(violation.terms, length, violation.norm, self._version)

    def _learn(self, phi: Sentence, y: list[Hashable], w: float, scores: Scores) -> None:
        super()._learn(phi, y, w, scores)
        self._tags = self._registered(y)

    def _registered(self, y: list[Hashable]) -> dict[Hashable, int]:
        """The tags known with those of y, in order of arrival; the first spelling stays the key."""
        known = dict(self._tags)
        for tag in y:
            known.setdefault(tag, len(known))
        return known

    def _mark(self, phis: list[Sentence]) -> Callable[[], None]:
        version, tags = self._version, self._tags  # a new dict at each change
        tokens = [token for phi in phis for token in phi]
        restore = self._store.mark(tokens)

        def undo() -> None:
            self._version, self._tags = version, tags
            restore()

        return undo

    def _get_state(self) -> dict[str, Any]:
        for tag in self._tags:
            if not prototypes.storable_label(tag):
                raise state.StateError(f"the tag {short(tag)} cannot be stored: only str, bytes, int, finite float, "
                                       f"bool and tuples of these can")
        return {**super()._get_state(), "tags": list(self._tags), "sums": self._store.get_sums()}

    def _set_state(self, values: dict[str, Any]) -> None:
        super()._set_state(values)
        tags = values["tags"]
        if not (isinstance(tags, list) and all(map(prototypes.storable_label, tags))):
            raise state.StateError("the tags are missing, or one has a type that no tag has")
        self._tags = self._registered(tags)
        if len(self._tags) != len(tags):
            raise state.StateError("a tag is stored twice")
        if self.average:
            self._store.set_sums(values["sums"])
        if self._store.slots > len(self._tags):
            raise state.StateError(f"weights for more than the {len(self._tags)} tags")


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("the loss or the step would not be finite; nothing was learned")
    return value
