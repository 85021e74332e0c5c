"""What the commands share: errors in one line, numbers, and the folder that a job writes to and goes on from."""

from __future__ import annotations

import argparse
import ast
import json
from pathlib import Path
from typing import Any, NoReturn

FINGERPRINT = "fingerprint.json"


class ArgumentError(Exception):
    """Arguments that cannot work, in one line."""


class Parser(argparse.ArgumentParser):
    """Raises `ArgumentError` where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(message)


def seconds(text: str) -> float:
    """A finite number of seconds >= 0."""
    number = float(text)
    if not 0.0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds >= 0, got {text!r}")
    return number


def count(text: str) -> int:
    """A whole number >= 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 0, got {text!r}")
    return number


def one_way(model: str) -> str:
    """Return the words of `--model` written in one way: spaces and quotes do not make another model."""
    return ast.unparse(ast.parse(model.strip(), mode="eval"))


def goes_on(output: Path, resume: bool, overwrite: bool) -> bool:
    """Whether a job goes on from what DIR holds; `ArgumentError` if DIR must not be touched."""
    if output.exists() and not output.is_dir():
        raise ArgumentError(f"--output {output} is not a folder")
    if not output.exists() or not any(output.iterdir()) or overwrite:
        return False
    if not resume:
        raise ArgumentError(f"{output} is not empty: give --resume to go on from it or --overwrite to replace it")
    return True


def read_fingerprint(output: Path, what: str) -> dict[str, Any]:
    """Return what DIR says of its job; `ArgumentError`, naming `what` it should be, if that cannot be read."""
    try:
        found = json.loads((output / FINGERPRINT).read_text())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise ArgumentError(f"--resume: {output} holds no {what} ({FINGERPRINT} cannot be read)")
    return found


def write_fingerprint(output: Path, found: dict[str, Any]) -> None:
    """Say in DIR whose models it holds; the file is whole or not there."""
    beside = output / f"{FINGERPRINT}.new"
    beside.write_text(json.dumps(found, indent=1) + "\n")
    beside.replace(output / FINGERPRINT)


def changed(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return, in order, the names under which a job now has another value than DIR says."""
    return sorted(name for name, value in now.items() if before.get(name) != value)
