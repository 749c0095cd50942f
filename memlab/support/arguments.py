"""Checks of the arguments of public functions by their types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, isfunction, signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_type_hints

import numpy as np
from pydantic import ConfigDict, Field, ValidationError, validate_call

from memlab.support.errors import MemlabError
from memlab.support.text.display import safe_line

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C")

Place = Annotated[str, Field(min_length=1)] | Path
"""A path of a file or a folder; an empty text is none."""

_EXPECTED = {"bool_type": "True or False", "dataclass_exact_type": "a {class_name}", "float_type": "a number",
             "greater_than": "a number above {gt:g}", "greater_than_equal": "{ge:g} or more",
             "int_type": "a whole number", "is_instance_of": "a {class}", "iterable_type": "a list",
             "string_too_short": "text that is not empty", "string_type": "text"}
"""Kind of a fault of pydantic -> what it expects."""


def check_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function raise MemlabError for an argument that is not of its type, before it does anything.

    A text in ``Annotated`` says what to give in place of such an argument.

    >>> @check_arguments
    ... def greet(name: str, times: Annotated[int, Field(ge=0)] = 1) -> str:
    ...     return f"Hello, {name}!" * times
    >>> greet("Ann", -1)
    Traceback (most recent call last):
    ...
    memlab.support.errors.MemlabError: greet, times: -1 does not fit. Fix: give 0 or more
    """
    @cache
    def check() -> Callable[..., None]:
        @wraps(function)
        def accept(*args: Any, **options: Any) -> None:
            """Do nothing: the types alone are checked."""

        return validate_call(config=ConfigDict(strict=True, arbitrary_types_allowed=True))(accept)

    @wraps(function)
    def call(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            check()(*map(_plain, args), **{name: _plain(value) for name, value in options.items()})
        except ValidationError as error:
            if not any("argument" in fault["type"] for fault in error.errors()):  # else Python's own error says it
                raise _refusal(function, error) from None
        return function(*args, **options)

    return call


def check_methods(cls: type[_C]) -> type[_C]:
    """Make the constructor and the public methods of a class check their arguments (``check_arguments``)."""
    for name, method in [*vars(cls).items()]:
        if name == "__init__" or not name.startswith("_"):
            if isfunction(method):
                setattr(cls, name, check_arguments(method))
            elif isinstance(method, classmethod):
                setattr(cls, name, classmethod(check_arguments(method.__func__)))
    return cls


def _plain(value: Any) -> Any:
    """Return a value as pydantic knows it; a file's name may hold bytes that are no text."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return value.item() if isinstance(value, np.generic) else value


def _refusal(function: Callable[..., Any], error: ValidationError) -> MemlabError:
    """Return the error for the first argument that does not fit."""
    faults = error.errors(include_url=False)
    place = faults[0]["loc"][0]
    faults = [fault for fault in faults if fault["loc"][0] == place]
    if isinstance(place, int):
        names = [name for name, one in signature(function).parameters.items()
                 if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)]
        place = names[min(place, len(names) - 1)]
    hint = get_type_hints(function, include_extras=True).get(str(place))
    advice = [text for part in (hint, *get_args(hint)) for text in getattr(part, "__metadata__", ())
              if isinstance(text, str)]
    expected = [_EXPECTED.get(fault["type"], fault["msg"].removeprefix("Input should be "))
                .format(**fault.get("ctx", {})) for fault in faults]
    expected += ["None"] if type(None) in get_args(hint) else []
    fix = advice[0] if advice else f"give {', or '.join(dict.fromkeys(expected))}"
    where = function.__qualname__.removesuffix(".__init__")
    return MemlabError(f"{safe_line(repr(faults[0]['input']), 60)} does not fit", where=f"{where}, {place}", fix=fix)
