"""The page: its numbers against slow sums over the records, its safety, and the directories it must bear."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from html.parser import HTMLParser
from statistics import fmean, median

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from beam_pipelines import report as package
from beam_pipelines.report import ReportError, charts, measures, read, scales, write_report
from beam_pipelines.report.__main__ import main
from tests.unit.beam import report_files
from tests.unit.beam.report_files import outcome

NONE = np.zeros(0)


class Page(HTMLParser):
    """Tags, attributes, texts and tables of a page, as a browser's parser would see them."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.texts, self.tables = [], [], [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(["", dict(attrs).get("data-v")])

    def handle_data(self, data):
        self.texts.append(data)
        if self.tables and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1][0] += data

    def table(self, head):
        return next(table for table in self.tables if table[0][0][0] == head)


def page_of(directory, **more):
    return Page(write_report(directory, **more).read_text(encoding="utf-8"))


@pytest.mark.parametrize("regression", [False, True])
def test_the_table_of_keys_holds_what_slow_sums_over_the_records_give(tmp_path, regression):
    found = report_files.cases(500, 3, regression=regression, keys=4)
    directory = report_files.write(tmp_path / "run", found)
    by_key = defaultdict(list)
    for case, answered in report_files.moments(found):
        if answered:
            by_key[case.key].append(case)

    rows = {row[0][0]: row for row in page_of(directory).table("key")[1:]}

    assert rows.keys() == by_key.keys()
    for key, answered in by_key.items():
        losses = [report_files.loss(case) for case in answered]
        half = (len(losses) + 1) // 2
        order = [float(cell[1]) if cell[1] is not None else None for cell in rows[key]]
        assert order[1] == len(losses)
        assert order[2] == pytest.approx(fmean(losses), rel=1e-6)
        assert order[4] == pytest.approx(order[2] - order[3], rel=1e-5, abs=1e-6)
        assert order[5] == pytest.approx(fmean(losses[:half]), rel=1e-6)
        assert order[6] == pytest.approx(fmean(losses[half:]), rel=1e-6)
        assert order[7] == pytest.approx(median(case.delay for case in answered))


def test_costs_are_told_beside_the_share_of_wrong_answers_by_which_all_are_judged(tmp_path):
    rows = [outcome("k", f"{i}", "a", "b" if i < 20 else "a", 2.5 if i < 20 else 0.0, version=i) for i in range(100)]
    rows += [outcome("j", f"{i}", "a", "a", 0.0, version=i) for i in range(100)]
    page = page_of(report_files.write(tmp_path / "run", outcomes=rows))
    errors = {row[0][0]: float(row[2][1]) for row in page.table("key")[1:]}
    assert errors == {"k": 0.2, "j": 0.0}
    assert any("cost: 0.25 on average" in text for text in page.texts)


def test_the_headline_is_the_mean_loss_in_words(tmp_path):
    found = report_files.cases(400, 5)
    source = write_report(report_files.write(tmp_path / "run", found)).read_text()
    wrong = fmean(report_files.loss(case) for case in found)
    assert f"<h1>Wrong on <em>{100 * wrong:.1f} %</em> of 400 predictions</h1>" in source


def test_the_curves_are_slow_means_over_a_window_and_over_all():
    rng = np.random.default_rng(0)
    loss = rng.random(257)
    loss[[3, 50, 51]] = np.nan
    order = rng.permutation(257)
    rows = np.array([0, 4, 9, 30, 100, 256])

    got = measures.curve(loss, order, 10, rows, least=5)

    for i, row in enumerate(rows.tolist()):
        sofar = [v for v in loss[order][:row + 1] if v == v]
        window = [v for v in loss[order][max(0, row - 9):row + 1] if v == v]
        if row + 1 < 5:
            assert np.isnan(got.sliding[i]) and np.isnan(got.cumulative[i])
        else:
            assert got.sliding[i] == pytest.approx(fmean(window))
            assert got.cumulative[i] == pytest.approx(fmean(sofar))


def test_the_area_under_the_curve_is_scikit_learns_ties_and_all():
    rng = np.random.default_rng(1)
    score, truth = rng.integers(0, 20, 300).astype(float), rng.random(300) < 0.3
    assert measures.rank_quality(score, truth) == pytest.approx(roc_auc_score(truth, score))
    assert np.isnan(measures.rank_quality(score, np.ones(300, bool)))


def test_the_interval_is_students_over_the_means_of_batches():
    values = np.random.default_rng(2).normal(size=4_000)
    means = [part.mean() for part in np.array_split(values, measures.BATCHES)]
    low, high = stats.t.interval(0.95, measures.BATCHES - 1, loc=np.mean(means), scale=stats.sem(means))
    assert measures.margin(values) == pytest.approx((high - low) / 2.0, rel=0.01)
    assert measures.margin(values[:10]) == np.inf


def test_balanced_error_counts_every_label_alike():
    y, loss = np.array([0, 0, 0, 1, -1]), np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    assert measures.balanced(loss, y) == pytest.approx((1 / 3 + 1.0) / 2)


@pytest.mark.parametrize(
    "rows, kind",
    [
        ([], read.Kind.EMPTY),
        ([outcome("k", "1", True, False, 1)], read.Kind.BINARY),
        ([outcome("k", "1", 1.5, 1.0, 0.5)], read.Kind.REGRESSION),
        ([outcome("k", "1", 3, 4, 1), outcome("k", "2", 7, 7, 0)], read.Kind.MULTICLASS),
        ([outcome("k", "1", "spam", None, 1)], read.Kind.MULTICLASS),
        ([outcome("k", "1", ["a", 1], ["a", 1], 0)], read.Kind.MULTICLASS),
        ([outcome("k", "1", "spam", "work", 2.5)], read.Kind.COST),
        ([outcome("k", "1", ["N", "V"], ["N", "N"], 0.5)], read.Kind.OTHER),
        ([outcome("k", "1", {"a": True}, {"a": False}, 1)], read.Kind.OTHER),
        ([outcome("k", "1", True, 0.7, None)], read.Kind.DETECTOR),
    ],
)
def test_the_kind_is_found_in_the_outcomes_and_each_gets_its_page(tmp_path, rows, kind):
    found = read._Rows(read.Names())
    for row in rows:
        found.add(row)
    assert found.freeze().kind is kind
    directory = report_files.write(tmp_path / "run", outcomes=rows)
    assert page_of(directory).tags.count("h1") == 1


HOSTILE = ["<script>alert(1)</script>", "</script><script>alert(2)</script>", '"><img src=x onerror=alert(3)>',
           "' onmouseover='alert(4)", "\u202eright to left", "{{body}}", "&lt;b&gt;", "k\x00k", "x" * 5_000]


def hostile_run(directory):
    outcomes, said = [], []
    for n, key in enumerate(HOSTILE):
        for i in range(60):
            label, guess = HOSTILE[i % 3], HOSTILE[(i + n) % 3]
            row = outcome(key, f"{i}", label, guess, int(label != guess), segment=key, time=1e9 + i, version=i)
            outcomes.append(row)
            said.append({"key": key, "id": f"{i}", "time": 1e9 + i, "prediction": guess, "score": 1.0, "version": i})
    report_files.write(
        directory, outcomes=outcomes, predictions=said,
        rejected=[{"key": k, "id": k, "payload": k, "stage": k, "reason": k} for k in HOSTILE],
        orphans=[{"key": k, "id": k, "time": 1.0, "kind": k, "y": k, "prediction": k} for k in HOSTILE],
        drift=[{"key": k, "time": 1e9 + 5, "detector": k, "action": k, "evidence": {k: k}, "version": 1}
               for k in HOSTILE],
    )
    report_files.store(directory, [(key, 0, n + 1, 1.0, b"m" * 99, b"c") for n, key in enumerate(HOSTILE)])
    return directory


def test_names_from_outside_are_inert(tmp_path):
    hostile = page_of(hostile_run(tmp_path / "run"), title=HOSTILE[0], about=HOSTILE[1], facts={HOSTILE[2]: HOSTILE[1]})
    kinds = [value for tag, name, value in hostile.attributes if tag == "script" and name == "type"]
    assert hostile.tags.count("script") == len(kinds) + 1  # the data of charts, and the one script of the template
    assert set(kinds) == {"application/json"}
    assert "img" not in hostile.tags
    assert not [name for _, name, _ in hostile.attributes if name.startswith("on")]
    assert HOSTILE[0] in hostile.texts and HOSTILE[2] in hostile.texts  # as text they are all there
    assert "{{body}}" in hostile.texts
    source = (tmp_path / "run/report.html").read_text()
    for data in re.findall(r'<script type="application/json">(.*?)</script>', source):
        json.loads(data)


def test_the_page_fetches_nothing_and_lets_one_script_run(tmp_path):
    source = write_report(hostile_run(tmp_path / "run")).read_text()
    page = Page(source)
    links = [value for _, name, value in page.attributes if name in ("src", "href", "data", "action")]
    assert links and all(value.startswith("#") or value == "data:," for value in links)
    assert "@import" not in source and "url(" not in source
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and "default-src" in (value or ""))
    assert "default-src 'none'" in policy and re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


def test_equal_files_give_an_equal_page(tmp_path):
    directory = hostile_run(tmp_path / "run")
    assert write_report(directory).read_bytes() == write_report(directory).read_bytes()


def test_thousands_of_keys_stay_one_small_page_that_says_what_it_leaves_out(tmp_path):
    rows = [outcome(f"device-{k}", f"{i}", i % 2 == 0, k % 3 == 0, int((i % 2 == 0) != (k % 3 == 0)), version=i)
            for k in range(2_500) for i in range(60 if k < 1_800 else 2)]
    path = write_report(report_files.write(tmp_path / "run", outcomes=rows))
    assert path.stat().st_size < 2_000_000
    page = Page(path.read_text())
    shown = len(page.table("key")) - 1
    assert 800 <= shown <= 1_000
    assert any(f"{shown:,} of 2,500 keys" in text for text in page.texts)


def test_empty_files_make_a_page_that_says_so(tmp_path):
    source = write_report(report_files.write(tmp_path / "run")).read_text()
    assert "Nothing was predicted" in source and "Nothing was rejected" in source and "is absent or" in source


def test_orphans_rejected_and_sizes_are_counted(tmp_path):
    reason = "feature 'a{}' must be a finite number, got nan"
    directory = report_files.write(
        tmp_path / "run", report_files.cases(60, 1),
        rejected=[{"key": None, "id": None, "payload": "{}", "stage": "validate", "reason": reason.format(i)}
                  for i in range(7)],
        orphans=[{"key": "k0", "id": f"{i}", "time": 1.0, "kind": kind, "y": None, "prediction": None}
                 for i, kind in enumerate(["late", "late", "unlabelled"])],
    )
    report_files.store(directory, [("k0", 1, 5, 1.0, b"m" * 500, b""), ("k0", 2, 1, 2.0, b"m" * 300, b"c" * 900)])
    page = page_of(directory)
    rejected = page.table("stage")
    assert [cell[0] for cell in rejected[1][:3]] == ["validate", "7", "feature \u2026 must be a finite number, got nan"]
    orphans = {row[0][0].split("a ")[0]: row[1][0] for row in page.table("kind")[1:]}
    assert orphans == {"late": "2", "unlabelled": "1"}
    assert "300 B" in {row[-1][0] for row in page.table("key")[1:]}  # the newest generation


@pytest.mark.parametrize("name", report_files.NAMES)
def test_a_partial_directory_is_refused_by_the_name_of_what_is_missing(tmp_path, name):
    directory = report_files.write(tmp_path / "run")
    (directory / f"{name}.jsonl").unlink()
    with pytest.raises(ReportError, match=f"has no {name}.jsonl; a finished run leaves"):
        write_report(directory)
    assert not (directory / "report.html").exists()


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"key": "a", "id"', "outcomes.jsonl line 2 is no JSON object"),
        ("[1]", "outcomes.jsonl line 2 is no JSON object"),
        ('{"key": "a"}', "outcomes.jsonl line 2 has no field 'y'"),
        (json.dumps(outcome("k", "1", True, True, 0, time="noon")), "outcomes.jsonl line 2: could not convert"),
    ],
)
def test_a_line_that_is_not_as_a_run_writes_it_is_named(tmp_path, line, message):
    directory = report_files.write(tmp_path / "run", outcomes=[outcome("k", "1", True, True, 0)])
    with (directory / "outcomes.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(ReportError, match=re.escape(message)):
        write_report(directory)


def test_a_store_that_is_no_database_is_named(tmp_path):
    directory = report_files.write(tmp_path / "run")
    (directory / "snapshots.db").write_bytes(b"not a database, and long enough to be looked at" * 10)
    with pytest.raises(ReportError, match="snapshots.db cannot be read"):
        write_report(directory)


def test_the_command_writes_the_page_or_says_in_one_line_why_not(tmp_path, capsys):
    directory = report_files.write(tmp_path / "run", report_files.cases(40, 2))
    assert main([str(directory), "--title", "Late flights"]) == 0
    assert "Late flights" in (directory / "report.html").read_text()
    assert capsys.readouterr().out.strip() == str(directory / "report.html")
    assert main([str(tmp_path / "absent")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("report: ") and said.count("\n") == 1


def test_the_job_and_model_a_run_wrote_down_are_told(tmp_path):
    directory = report_files.write(tmp_path / "run", report_files.cases(40, 2))
    written = {"job": "flights", "model": "PAClassifier()", "columns": None}
    (directory / "fingerprint.json").write_text(json.dumps(written))
    page = page_of(directory, facts={"input": "flights.csv"})
    assert {"flights", "PAClassifier()", "input", "flights.csv"} <= set(page.texts)
    assert "columns" not in page.texts


def test_drift_alarms_are_listed_and_marked(tmp_path):
    alarm = {"key": "k0", "time": 1e9 + 100, "detector": "ADWIN", "action": "reset", "version": 9}
    alarm["evidence"] = {"mean": 0.5}
    directory = report_files.write(tmp_path / "run", report_files.cases(300, 1), drift=[alarm])
    page = page_of(directory)
    assert [cell[0] for cell in page.table("time (UTC)")[1]][1:5] == ["k0", "ADWIN", "reset", '{"mean": 0.5}']
    assert ("path", "class", "mark") in page.attributes


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (1.3e9, 1.3e9 + 90.0), (1.3e9, 1.3e9 + 4e4), (1.3e9, 1.3e9 + 2e6),
                                       (1.3e9, 1.33e9), (0.9e9, 1.9e9), (1e20, 2e20), (-5.0, 5.0)])
def test_time_ticks_lie_within_and_are_few(low, high):
    ticks = scales.time_ticks(low, high)
    assert 2 <= len(ticks) <= 14
    assert all(low <= tick.at <= high for tick in ticks)


def test_a_public_name_is_what_the_package_says():
    assert set(package.__all__) == {"ReportError", "counterpart", "write_report"}
    assert charts.text("a" * 100) == "a" * 79 + "\u2026"
