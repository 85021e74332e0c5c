"""The expression parser: what it builds, and that it never evaluates."""

import ast
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, linear_model, preprocessing

from beam_pipelines import options
from pa_river import PA, PA1, PAClassifier, PARegressor


def test_a_call_builds_a_learner_with_its_rule_and_keyword_arguments():
    model = options.parse_model("PARegressor(PA1(C=0.1), learn_intercept=False, eps=0.5)")
    assert type(model) is PARegressor
    assert (type(model.rule), model.rule.C, model.eps, model.learn_intercept) == (PA1, 0.1, 0.5, False)


def test_a_bar_makes_a_pipeline_and_a_plus_a_union_as_river_does():
    model = options.parse_model("(Select('a', 'b') | StandardScaler()) + MinMaxScaler() | PAClassifier(PA())")
    assert isinstance(model, compose.Pipeline)
    union, last = model.steps.values()
    assert isinstance(union, compose.TransformerUnion)
    assert type(last) is PAClassifier and type(last.rule) is PA


def test_names_resolve_in_pa_river_before_river_and_a_module_in_front_picks_rivers():
    assert type(options.parse_model("PAClassifier()")) is PAClassifier
    assert type(options.parse_model("linear_model.PAClassifier()")) is linear_model.PAClassifier
    assert type(options.parse_model("LogisticRegression(optimizer=SGD(0.05))")) is linear_model.LogisticRegression


@pytest.mark.parametrize(
    ("text", "value"),
    [("-1.5", -1.5), ("+2", 2), ("'a'", "a"), ("(1, 'b')", (1, "b")), ("[True, None]", [True, None]), ("inf", math.inf),
     ("{'a': -1}", {"a": -1})],
)  # fmt: skip
def test_literals_are_what_python_says_they_are(text, value):
    assert options._parse(text) == value


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not an expression"),
        ("PAClassifier(", "not an expression"),
        ("PAClassifier", "not allowed"),
        ("1", "is not a model"),
        ("PA1(1.0)", "is not a model"),
        ("PAClasifier()", "did you mean PAClassifier"),
        ("PAClassifier(PA1(C=-1))", "PA1(C=...) must be a finite number > 0, got -1"),
        ("PAClassifier(rulez=PA1())", "unexpected keyword argument 'rulez'"),
        ("PAClassifier(*[1])", "not allowed"),
        ("PAClassifier(**{'a': 1})", "write each argument"),
        ("(lambda: 1)()", "is not a name"),
        ("open('/etc/passwd')", "neither a name of pa_river nor"),
        ("os.system('true')", "neither a name of pa_river nor"),
        ("().__class__.__bases__[0]", "not allowed"),
        ("__import__('os').system('true')", "is not a name"),
        ("[x for x in (1,)]", "not allowed"),
        ("PAClassifier() if 1 else 2", "not allowed"),
        ("f'{1}'", "not allowed"),
        ("2 ** 9 ** 9", "not allowed"),
        ("1 + 1", "join estimators"),
        ("-'a'", "only a number has a sign"),
        ("datasets.Phishing()", "neither a name of pa_river nor"),
        ("StandardScaler() | 3", "join estimators"),
        ("-" * 9_000 + "1", "nested too deeply"),
        ("(" * 9_000, "not an expression"),
        ("x" * 20_000, "longer than"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(text, word):
    with pytest.raises(ValueError) as caught:
        options.parse_model(text)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="PAC1()[]{}|+-.,='\"*_ \nlambdaimportos", max_size=60))
def test_any_text_gives_a_model_or_a_value_error(text):
    try:
        options.parse_model(text)
    except ValueError:
        pass


def test_a_detector_is_a_detector():
    assert type(options.parse_detector("ADWIN(delta=0.01)")).__name__ == "ADWIN"
    with pytest.raises(ValueError, match="is not a drift detector"):
        options.parse_detector("StandardScaler()")


def test_every_public_estimator_of_river_is_found_by_its_name():
    assert type(options.parse_model("StandardScaler()")) is preprocessing.StandardScaler
    for name in ("HoeffdingTreeClassifier", "GaussianNB", "Normalizer", "KNNClassifier", "OneHotEncoder"):
        assert type(options.parse_model(f"{name}()")).__name__ == name


def test_an_expression_survives_being_written_back():
    text = "StandardScaler()|PAClassifier(PA1(C=0.1),learn_intercept=False)"
    assert repr(options.parse_model(ast.unparse(ast.parse(text)))) == repr(options.parse_model(text))
