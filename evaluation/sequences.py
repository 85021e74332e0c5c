"""Chunking and tagging by `PASequence`, next to python-crfsuite's `pa` on the same features.

`python -m evaluation.sequences --data ../shared/data` runs both and writes their pages; each is also an experiment of
`evaluation.paper`.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation import chunks
from evaluation.results import Experiment, Result, Row, new_figure, progress, table, write
from pa_river import PA1, PASequence

Rows = list[list[str]]  # a sentence: the columns of each token
Example = tuple[list[list[str]], list[str]]  # the features of each token, its tag


class Task(NamedTuple):
    """A data set: its files under the data directory, how a sentence becomes an example, and what is scored."""

    name: str
    title: str
    train: str
    test: str
    example: Callable[[Rows], Example]
    what: str  # the figure that counts: "F1" of chunks, or token "accuracy"

    def figure(self, score: chunks.Score) -> float:
        return 100.0 * (score.f1 if self.what == "F1" else score.accuracy)


class Run(NamedTuple):
    """One learner's figures: the score after each number of epochs, and CPU seconds an epoch."""

    name: str
    scores: dict[int, chunks.Score]
    seconds: float


class Plan(NamedTuple):
    """How much is run: passes over the training set, the seed of their order, sentences of each file (None: all)."""

    epochs: int = 10
    seed: int = 0
    sentences: int | None = None


def chunking(sentence: Rows) -> Example:
    """Words, part-of-speech tags, their pairs and triples in a window of two, shape and affixes."""
    words = [word.lower() for word, _, _ in sentence]
    parts = [part for _, part, _ in sentence]
    tokens = []
    for i, (word, _, _) in enumerate(sentence):
        w, p = _window(words, i), _window(parts, i)
        tokens.append([
            *(f"w{offset}={w[offset]}" for offset in range(-2, 3)),
            *(f"p{offset}={p[offset]}" for offset in range(-2, 3)),
            *(f"w{a}w{a + 1}={w[a]}|{w[a + 1]}" for a in (-1, 0)),
            *(f"p{a}p{a + 1}={p[a]}|{p[a + 1]}" for a in range(-2, 2)),
            *(f"p{a}p{a + 1}p{a + 2}={p[a]}|{p[a + 1]}|{p[a + 2]}" for a in range(-2, 1)),
            *_spelling(word),
        ])
    return tokens, [tag for _, _, tag in sentence]


def tagging(sentence: Rows) -> Example:
    """Words in a window of two and their pairs, shape and affixes; universal tags."""
    words = [word.lower() for word, _, _ in sentence]
    tokens = []
    for i, (word, _, _) in enumerate(sentence):
        w = _window(words, i)
        tokens.append([
            *(f"w{offset}={w[offset]}" for offset in range(-2, 3)),
            *(f"w{a}w{a + 1}={w[a]}|{w[a + 1]}" for a in (-1, 0)),
            *(f"shape{offset}={_shape(sentence[i + offset][0])}" for offset in (-1, 1) if 0 <= i + offset < len(words)),
            *_spelling(word),
        ])
    return tokens, [tag for _, tag, _ in sentence]


CHUNKING = Task("chunking", "CoNLL-2000 chunking", "conll2000/conll2000_train.txt.gz",
                "conll2000/conll2000_test.txt.gz", chunking, "F1")
TAGGING = Task("tagging", "English tagging: UD EWT, universal tags", "ud_ewt/ewt_pos_train.txt.gz",
               "ud_ewt/ewt_pos_test.txt.gz", tagging, "accuracy")
#: F1 points that ours may lie below CRFsuite on equal features.
REACH = 0.3
CRFSUITE = "python-crfsuite `pa`"
OURS: dict[str, dict[str, Any]] = {
    "PASequence, averaged": {"average": True},
    "PASequence, averaged, max-loss": {"average": True, "update": "max_loss"},
    "PASequence, last weights": {},
}


def ours(name: str, train: list[Example], test: list[Example], plan: Plan) -> Run:
    """Train our learner with PA-I, C = 1, in an order shuffled anew for each epoch; score it after each."""
    model, order, scores, seconds = PASequence(PA1(1.0), **OURS[name]), list(train), {}, 0.0
    shuffle = random.Random(plan.seed).shuffle
    for epoch in range(1, plan.epochs + 1):
        shuffle(order)
        begin = time.process_time()
        for tokens, tags in progress(order, f"{name}, epoch {epoch} of {plan.epochs}"):
            model.learn_one(tokens, tags)
        seconds += time.process_time() - begin
        scores[epoch] = chunks.score([tags for _, tags in test], model.predict_many([tokens for tokens, _ in test]))
    return Run(name, scores, seconds / plan.epochs)


def crfsuite(train: list[Example], test: list[Example], epochs: int) -> Run | None:
    """Train CRFsuite's `pa` as ours: PA-I, C = 1, root of the number of wrong tags, averaged; None if not installed.

    It shuffles by itself and tells no score in between, so each number of epochs is a training of its own.
    """
    try:
        import pycrfsuite
    except ImportError:
        return None
    trainer = pycrfsuite.Trainer(algorithm="pa", verbose=False)
    for tokens, tags in train:
        trainer.append(tokens, tags)
    scores, seconds = {}, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for count in progress([n for n in (1, 2, 3, 5, 10, 20, 50) if n < epochs] + [epochs], CRFSUITE):
            trainer.set_params({"max_iterations": count, "type": 1, "c": 1.0, "error_sensitive": True,
                                "averaging": True, "epsilon": 0.0})
            path = str(Path(folder) / f"{count}.crfsuite")
            trainer.train(path)
            seconds = sum(one["time"] for one in trainer.logparser.iterations) / len(trainer.logparser.iterations)
            tagger = pycrfsuite.Tagger()
            tagger.open(path)
            scores[count] = chunks.score([tags for _, tags in test], [tagger.tag(tokens) for tokens, _ in test])
            tagger.close()
    return Run(CRFSUITE, scores, seconds)


def read(path: Path) -> Iterator[Rows]:
    """Yield the sentences of a file: a token a line, columns by spaces, an empty line after each sentence."""
    sentence: Rows = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                sentence.append(line.split())
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def run(task: Task, data: Path, plan: Plan = Plan()) -> Result:
    """Train and score every learner on a task; the first of ours is compared with CRFsuite."""
    train, test = ([task.example(rows) for rows in list(read(data / name))[:plan.sentences]]
                   for name in (task.train, task.test))
    runs = [ours(name, train, test, plan) for name in OURS]
    peer = crfsuite(train, test, plan.epochs)
    features = sum(len(token) for tokens, _ in train for token in tokens) / sum(len(tags) for _, tags in train)
    text = f"""
{len(train):,} sentences to learn, {len(test):,} to score, {features:.1f} features a token. All learners see the same
text features, none cut for being rare. {task.example.__doc__}

All run PA-I with C = 1 in {plan.epochs} epochs, shuffled anew for each (seed {plan.seed}), the root of the number of
wrong tags as margin (max-loss: the number itself), and the mean of the weights unless said. Nothing was tuned; the test
set is only scored. Seconds are CPU time on one core of a shared machine: an order of magnitude, no benchmark.

{_table(task, [*runs, *([peer] if peer else [])])}
"""
    return Result(task.name, task.title, text, [_verdict(task, runs[0], peer)], {task.name: _curves(task, runs, peer)})


def _table(task: Task, runs: list[Run]) -> str:
    chunked = task.what == "F1"
    head = ["learner", "epochs", "token accuracy %", *(["precision %", "recall %", "F1 %"] if chunked else []),
            "s / epoch"]
    rows = [[one.name, epochs, *(f"{100 * share:.2f}" for share in (score if chunked else score[:1])),
             f"{one.seconds:.1f}"]
            for one in runs for epochs, score in one.scores.items() if epochs in (1, max(one.scores))]
    return table(head, rows)


def _verdict(task: Task, own: Run, peer: Run | None) -> Row:
    reached, what = task.figure(own.scores[max(own.scores)]), f"{task.what} % on the test set, ours averaged"
    if peer is None:
        return Row(what, "", f"{reached:.2f}", None, "no comparison: python-crfsuite is not installed")
    theirs = task.figure(peer.scores[max(peer.scores)])
    return Row(what, f"{theirs:.2f} (not published: {CRFSUITE}, this run)", f"{reached:.2f}", reached >= theirs - REACH,
               f"{reached - theirs:+.2f} points, at least -{REACH} wanted")


def _curves(task: Task, runs: list[Run], peer: Run | None) -> Any:
    figure, (axis,) = new_figure(width=6.5, height=4.0)
    for one in runs:
        axis.plot(list(one.scores), [task.figure(score) for score in one.scores.values()], marker=".", label=one.name)
    if peer is not None:
        axis.plot(list(peer.scores), [task.figure(score) for score in peer.scores.values()], "k--o", label=peer.name)
    axis.set(xlabel="epochs", ylabel=f"{task.what} % on the test set", title=task.title)
    axis.grid(alpha=0.3)
    axis.legend()
    return figure


EXPERIMENTS = [
    Experiment("chunking", "section 9 on CoNLL-2000: F1 next to python-crfsuite", lambda data: run(CHUNKING, data)),
    Experiment("tagging", "section 9 on English: accuracy next to python-crfsuite", lambda data: run(TAGGING, data)),
]


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.sequences", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of conll2000/ and ud_ewt/")
    parser.add_argument("--output", type=Path, default=Path("docs/paper"), help="where the pages go")
    parser.add_argument("--task", nargs="+", choices=["chunking", "tagging"], default=["chunking", "tagging"])
    parser.add_argument("--epochs", type=int, default=Plan().epochs, help="passes over the training set, at least 1")
    parser.add_argument("--seed", type=int, default=Plan().seed, help="of the order of our epochs")
    parser.add_argument("--sentences", type=int, default=None, help="use only so many of each file: a quick look")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tasks that are named; 2 for a wrong number or a missing file."""
    args = build_parser().parse_args(argv)
    if args.epochs < 1 or (args.sentences is not None and args.sentences < 1):
        print("evaluation.sequences: --epochs and --sentences must be at least 1", file=sys.stderr)
        return 2
    for task in (CHUNKING, TAGGING):
        if task.name in args.task:
            try:
                result = run(task, args.data, Plan(args.epochs, args.seed, args.sentences))
            except FileNotFoundError as error:
                print(f"evaluation.sequences: {error.filename} is not there; --data names the folder of the data sets",
                      file=sys.stderr)
                return 2
            page = write(result, args.output)
            print(f"{task.name}: {result.rows[0].ours}, {result.rows[0].note}; {page}")
    return 0


def _window(items: list[str], i: int) -> dict[int, str]:
    """The items around place i, by offset; outside the sentence a mark that no word is."""
    return {offset: items[i + offset] if 0 <= i + offset < len(items) else f"<{'start' if offset < 0 else 'end'}>"
            for offset in range(-2, 3)}


def _spelling(word: str) -> list[str]:
    longest = range(1, min(4, len(word)) + 1)
    return [f"shape={_shape(word)}", *(f"prefix={word[:n].lower()}" for n in longest),
            *(f"suffix={word[-n:].lower()}" for n in longest)]


def _shape(word: str) -> str:
    """Upper and lower letters and digits as X, x and 9, runs of one kind shortened: "McGrath-42" is "XxXx-9"."""
    kinds = re.sub(r"[^\W\d_]", lambda letter: "X" if letter[0].isupper() else "x", word)
    return re.sub(r"(.)\1+", r"\1", re.sub(r"\d", "9", kinds))


if __name__ == "__main__":
    sys.exit(main())
