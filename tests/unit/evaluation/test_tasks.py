"""What the pages on real data share: readers, one pass, the choice on a first part; and each page's own arithmetic."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import f1_score, roc_auc_score, roc_curve

from evaluation import anomalies, boundaries, drifting, letters, misprint, paper, regressions, tasks, texts, topics
from pa_river import PA, PA1, PA2, PAMulticlass


class Constant:
    """Predicts one label; remembers what it was taught, and when it was asked."""

    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def predict_one(self, x):
        self.calls.append(("predict", x))
        return self.answer

    def learn_one(self, x, y):
        self.calls.append(("learn", x))


@pytest.fixture
def packed(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
        return path

    return write


def test_a_csv_gives_numbers_as_numbers_text_as_text_and_the_target_as_written(packed):
    path = packed("set.csv.gz", "sex,size,y\nM,0.5,15\nF,2e3,7\n")
    assert tasks.read_csv(path, "y") == [({"sex": "M", "size": 0.5}, "15"), ({"sex": "F", "size": 2000.0}, "7")]


def test_svmlight_lines_may_lack_features_or_a_label(packed):
    path = packed("set.svm.gz", "2,12 1:4 7:0.5\n3\n 5:1\n")
    assert tasks.read_svmlight(path) == [({1: 4.0, 7: 0.5}, "2,12"), ({}, "3"), ({5: 1.0}, "")]


def test_idf_counts_a_document_with_itself_and_nothing_later():
    idf = tasks.Idf()
    first = idf.weigh({"a": 1.0, "b": 3.0})
    rare, common = math.log1p(1) * math.log(3 / 1), math.log1p(1) * math.log(3 / 2)
    second = idf.weigh({"a": 1.0, "c": 1.0})
    assert first == pytest.approx({"a": 1 / math.sqrt(5), "b": 2 / math.sqrt(5)})  # log 2 and log 4
    assert second == pytest.approx({"a": common / math.hypot(rare, common), "c": rare / math.hypot(rare, common)})
    assert idf.weigh({}) == {}


def test_a_pass_predicts_before_it_learns_and_counts_the_loss():
    model = Constant("a")
    passed = tasks.run(model, [(1, "a"), (2, "b"), (3, "b")])
    assert passed.losses.tolist() == [0.0, 1.0, 1.0] and passed.seconds >= 0.0
    assert model.calls == [("predict", 1), ("learn", 1), ("predict", 2), ("learn", 2), ("predict", 3), ("learn", 3)]


def test_the_choice_is_the_least_loss_on_the_first_part_and_a_tie_goes_to_the_first():
    makes = {"a": lambda: Constant("a"), "b": lambda: Constant("b"), "c": lambda: Constant("b")}
    chosen, make = tasks.choose(makes, [(0, "b"), (0, "b"), (0, "a")])
    assert chosen == "b" and make().answer == "b"


def test_the_choice_among_whole_passes_looks_at_the_first_part_alone():
    losses = {0.1: [1.0, 1.0, 0.0, 0.0], 1.0: [1.0, 0.0, 9.0, 9.0]}
    passes = {value: tasks.Once(np.array(each), 0.0) for value, each in losses.items()}
    assert tasks.best_on_first(passes, 2) == 1.0 and tasks.best_on_first(passes, 4) == 0.1


def test_running_means_and_the_points_of_a_curve():
    assert tasks.cumulative(np.array([1.0, 0.0, 0.5])).tolist() == [1.0, 0.5, 0.5]
    assert list(tasks.every(5)) == [0, 1, 2, 3, 4]
    points = list(tasks.every(1003, 100))
    assert len(points) <= 100 and points[-1] == 1002


@pytest.mark.parametrize("digits", [1, 6])  # 1: many ties
def test_the_area_and_the_curve_are_scikit_learns(digits):
    rng = np.random.default_rng(5)
    flags = rng.random(300) < 0.2
    scores = np.round(rng.normal(size=300) + flags, digits)
    assert anomalies.roc_auc(flags, scores) == pytest.approx(roc_auc_score(flags, scores), abs=1e-12)
    false, true = anomalies.curve(flags, scores)
    theirs = roc_curve(flags, scores, drop_intermediate=False)
    assert false == pytest.approx(theirs[0]) and true == pytest.approx(theirs[1])


def test_a_detector_scores_a_record_before_it_learns_it():
    scored = anomalies.score(anomalies.detectors()[anomalies.STATED](), [({"a": 5.0}, False), ({"a": 5.0}, True)])
    assert scored.scores[0] == 0.0  # standardised, the first record is the center; learned or not


def test_the_features_of_http_are_rivers():
    assert anomalies.records([({"duration": 0.0}, "1")]) == [({"duration": math.log(0.1)}, True)]


def test_the_mean_so_far_is_a_regressor_that_knows_no_feature():
    assert regressions.constant_error([4.0, 2.0, 6.0], first=1) == pytest.approx((2.0 + 3.0) / 2)


def test_regressors_are_compared_on_what_comes_after_the_first_part():
    rng = np.random.default_rng(2)
    stream = [({"a": float(a), "kind": "x" if a > 0 else "z"}, 3.0 * float(a) + 10.0) for a in rng.normal(size=300)]
    found = regressions.compare(stream, first=100)
    assert list(found) == list(regressions.COLOURS)
    best, curve, seconds = found["PA-I"]
    assert best in regressions.STEPS and set(curve) == set(regressions.STEPS) and seconds > 0.0
    assert curve[best] < 0.3 * regressions.constant_error([y for _, y in stream], 100)


def test_label_sets_are_cut_and_counted_as_scikit_learn_counts():
    documents = [({0: 1.0}, {"a": True}), ({0: 1.0}, {"a": True, "b": True}), ({1: 1.0}, {"c": True})]
    scores = {"a": 2.0, "b": 1.8, "c": -1.0}

    class Fixed:
        def decision_one(self, x):
            return scores

        def learn_one(self, x, y):
            pass

    found = topics.evaluate(Fixed(), documents, first=0)
    truth = [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    for cut, row in (("score > 0", [1, 1, 0]), ("best one", [1, 0, 0])):
        assert found.f1[cut] == pytest.approx(f1_score(truth, [row] * 3, average="micro"))
    assert found.one_error == pytest.approx(1 / 3)
    assert found.ranking == pytest.approx((0 + 0 + 1) / 3)


def test_one_classifier_a_topic_learns_what_the_document_is_not():
    taught = []

    class Binary:
        def learn_one(self, x, y):
            taught.append(y)

    model = topics.OnePerTopic(["a", "b"], Binary, lambda one, x: 0.5)
    model.learn_one({}, {"b": True})
    assert taught == [False, True] and model.decision_one({}) == {"a": 0.5, "b": 0.5}


def test_reuters_topics_are_named_and_in_order(packed, tmp_path):
    packed("reuters/reuters_r90_topics.txt.gz", "acq\nalum\n")
    packed("reuters/reuters_r90.svm.gz", "1 1:1\n0,1 2:3\n0 1:1\n")
    names, documents = topics.read(tmp_path, most=2)
    assert names == ["acq", "alum"]
    assert documents == [({1: 1.0}, {"alum": True}), ({2: 1.0}, {"acq": True, "alum": True})]


def test_the_costs_are_dear_for_a_vowel_read_as_a_consonant_only():
    assert [letters.cost(*pair) for pair in (("A", "A"), ("A", "E"), ("A", "B"), ("B", "A"))] == [0.0, 1.0, 10.0, 1.0]
    assert letters.fine("A", None) == 1.0


def test_weights_teach_a_vowel_harder():
    model = PAMulticlass(PA1(0.01), learn_intercept=False)
    weighted = letters.Weighted(model)
    for letter, length in (("A", 0.1), ("B", 0.01)):
        before = model.decision_one({letter: 1.0}).get(letter, 0.0)
        weighted.learn_one({letter: 1.0}, letter)
        assert model.decision_one({letter: 1.0})[letter] - before == pytest.approx(length)


def test_every_maker_of_a_page_gives_its_own_setting():
    assert [letters.learners()["PA-I"][C]().rule.C for C in letters.STEPS] == list(letters.STEPS)
    assert [make().rule.C for make in letters.misers()["PACostSensitive, max_loss"].values()] == list(letters.CAPS)
    assert [make().learn_intercept for make in texts.linear()["Perceptron"].values()] == [True, False]
    assert [make().learn_intercept for make in topics.methods(["a"])[topics.OURS].values()] == [True] * 3 + [False] * 3


def test_a_scaler_gives_each_row_by_what_was_seen_up_to_it():
    assert letters.standardised([({"a": 1.0}, "A"), ({"a": 3.0}, "B")]) == [({"a": 0.0}, "A"), ({"a": 1.0}, "B")]


def test_words_are_counted_in_lower_case_and_money_is_a_word():
    assert texts.words("Win £100 now, WIN!") == {"win": 2.0, "£": 1.0, "100": 1.0, "now": 1.0}


def test_the_texts_come_with_their_names(packed, tmp_path):
    packed("sms_spam/sms_spam.tsv.gz", "ham\tsee you\nspam\twin\ta prize\n")
    packed("20news/20news_vocab.txt.gz", "the\ngoal\n")
    packed("20news/20news_classes.txt.gz", "rec.autos\nrec.sport\n")
    packed("20news/20news_train.svm.gz", "2 1:3 2:1\n1\n")
    assert texts.messages(tmp_path)[1] == ({"win": 1.0, "a": 1.0, "prize": 1.0}, "spam")
    assert texts.news(tmp_path) == [({"the": 3.0, "goal": 1.0}, "rec.sport"), ({}, "rec.autos")]


def test_text_learners_beat_a_coin_on_two_topics():
    rng = np.random.default_rng(1)
    documents = [({f"{label}{rng.integers(5)}": 1.0, f"common{rng.integers(5)}": 2.0}, label)
                 for label in rng.choice(["a", "b"], 120).tolist()]
    for chosen, passed in texts.compare(documents, 40, "test").values():
        assert passed.losses[40:].mean() < 0.25


def test_the_last_label_is_repeated_and_blocks_are_averaged():
    passed = tasks.run(drifting.LastLabel(), [({}, True), ({}, True), ({}, False), ({}, False)])
    assert passed.losses.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert drifting.windowed([1.0, 0.0, 1.0, 1.0, 9.0], 2).tolist() == [0.5, 1.0]


def test_elec2_is_read_without_the_date_and_the_price(packed, tmp_path):
    packed("elec2/elec2.csv.gz", "date,day,nswprice,class\n0,2,0.05,UP\n0,3,0.05,DOWN\n")
    packed("sea/sea_50k.csv.gz", "attrib1,class\n9.4,0\n1.5,1\n")
    assert drifting.read(tmp_path) == {"elec2": [({"day": 2.0}, True), ({"day": 3.0}, False)],
                                       "sea": [({"attrib1": 9.4}, False), ({"attrib1": 1.5}, True)]}


def test_the_exercise_opens_with_the_worked_example_and_its_boundaries_turn_as_angles_do():
    first, second = boundaries.play(PA(), boundaries.SEQUENCE)[:2]
    assert (first.a, first.b, second.a, second.b) == pytest.approx((0.4, 0.2, 0.6, 0.4))
    near, far = (boundaries.Update(0.0, 1.0, 0.0, 0.0, angle) for angle in (-170.0, 170.0))
    assert boundaries.turned(near, far) == pytest.approx(20.0)


def test_a_rescaled_feature_comes_back_in_its_old_unit():
    """The same as a step by hand on x = (2, 10): tau = 1 / 104."""
    update = boundaries.play(PA(), boundaries.SEQUENCE[:1], factor=10.0)[0]
    assert (update.a, update.b) == pytest.approx((2 / 104, 10 * 10 / 104))
    assert boundaries.right(update, boundaries.SEQUENCE) == 4


def test_the_solver_of_the_misprint_agrees_with_one_in_a_single_variable():
    w, x, C = np.array([0.3, -0.2]), np.array([1.0, 2.0]), 0.3
    single = minimize(lambda tau: 0.5 * 5.0 * tau[0] ** 2 + C * max(0.0, 0.9 - 5.0 * tau[0]) ** 2, [0.1], tol=1e-12)
    assert misprint.moved(w, x, C, misprint.PROBLEMS["the paper's: loss <= xi"]) == pytest.approx(single.x[0], abs=1e-6)
    assert misprint.stepped(PA2(C), w, x) == pytest.approx(single.x[0], abs=1e-6)


@pytest.mark.parametrize("name, rows", [("misprint", 3), ("boundaries", 4)])
def test_a_page_without_data_is_written_and_reached(name, rows, tmp_path, capsys):
    assert paper.main([name, "--data", str(tmp_path), "--output", str(tmp_path)]) == 0
    assert f"{rows} of {rows} rows reached" in capsys.readouterr().out


def test_every_experiment_has_a_name_of_its_own():
    names = [one.name for one in paper.EXPERIMENTS]
    assert len(set(names)) == len(names) and all(one.help for one in paper.EXPERIMENTS)
