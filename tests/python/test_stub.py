"""The stub of the extension has the names that the extension has, with the same arguments."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import keel
from keel import _keel

STUB = ast.parse((Path(keel.__file__).parent / "_keel.pyi").read_text())


def _arguments(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args if argument.arg != "self"]


def _stubbed(body: list[ast.stmt]) -> dict[str, list[str]]:
    """Names, with the arguments of functions; attributes have none."""
    names: dict[str, list[str]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = _arguments(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = []
    return names


def _found(scope: Any) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, value in vars(scope).items():
        if name.startswith("_") or isinstance(value, type):
            continue
        signatures = getattr(value, "__nb_signature__", None)
        if signatures is None:
            names[name] = []
            continue
        ((text, *_),) = signatures
        (function,) = ast.parse(f"{text}: ...").body
        assert isinstance(function, ast.FunctionDef)
        names[name] = _arguments(function)
    return names


def test_functions_and_values() -> None:
    assert _found(_keel) == _stubbed(STUB.body)


def test_classes_and_their_members() -> None:
    stubbed = {node.name: node.body for node in STUB.body if isinstance(node, ast.ClassDef)}
    found = {name: value for name, value in vars(_keel).items() if isinstance(value, type)}
    assert found.keys() == stubbed.keys()
    for name, value in found.items():
        assert _found(value) == _stubbed(stubbed[name]), name
