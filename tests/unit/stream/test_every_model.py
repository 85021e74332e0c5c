"""The operator takes every model of the registry: its cell says and learns what a plain loop does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river.stream import CellSpec, Event, Outcome, Prediction, Rejected
from tests import cases


@pytest.mark.parametrize("case", cases.ALL, ids=str)
@given(data=st.data())
def test_a_cell_says_and_learns_what_a_loop_does(case, data):
    stream = data.draw(case.stream)
    spec, loop = CellSpec(case.build()), case.build()
    blob, refused = None, 0
    for number, (x, y) in enumerate(stream):
        held = spec.open("k", blob)  # another bundle: all that is left of the model is its bytes
        outputs = held.on_event(Event("k", str(number), float(number), x=x))
        if case.supervised:
            outputs += held.on_event(Event("k", str(number), number + 0.5, y=y))
        rejected = [output for output in outputs if isinstance(output, Rejected)]
        # a model whose factors are built anew may say either where its score is 0 but for rounding
        tied = "bit-equal" in case.exceptions and abs(loop.decision_one(x)) < 1e-6
        try:
            expected = case.answer(loop, x)
            case.learn(loop, x, y)
        except ValueError as error:
            assert rejected and str(error) in rejected[0].reason
            refused += 1
        else:
            assert not rejected
            (prediction,) = [output for output in outputs if isinstance(output, Prediction)]
            if case.supervised:
                assert tied or repr(prediction.prediction) == repr(expected)
            else:
                assert prediction.score == expected
            outcomes = [output for output in outputs if isinstance(output, Outcome)]
            assert len(outcomes) == case.supervised
            assert all(outcome.loss is None or outcome.loss >= 0.0 for outcome in outcomes)
        blob = held.dumps()
    if stream:
        model = spec.open("k", blob).model()
        assert model.version == loop.version == len(stream) - refused
        if "bit-equal" not in case.exceptions:
            assert pa_river.dumps(model) == pa_river.dumps(loop)
