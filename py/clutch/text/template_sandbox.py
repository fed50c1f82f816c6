"""Jinja for templates that came with a model file, and so from a stranger.

Jinja's immutable sandbox keeps a template away from Python, but not from filling the memory or never ending.
So:

- what a template may call is a list of what chat templates need, not of what is known to be bad:
CVE-2024-56326 (a
  stored ``str.format``) and CVE-2025-27516 (the ``attr`` filter) were gaps in a list of the second kind;
- operations that can make much out of little ask first (`Operations`);
- every loop turn, call and piece of output is counted (`Meter`), so nesting and recursion multiply nothing.

What a template can still waste within these counts is time; the page restarts a worker that does not answer.

Source: the Jinja manual, "Sandbox".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from types import BuiltinMethodType
from typing import Any

from jinja2 import Template, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from clutch.text.template_meter import Meter
from clutch.text.template_operations import Operations

_GLOBALS = ("range", "dict", "namespace")
# fmt: off
_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last",
    "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr",
    "sort", "title", "trim", "unique", "upper",
)
_STR_METHODS = frozenset({
    "capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdigit", "islower", "isspace",
    "isupper", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "rfind", "rpartition",
    "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "title", "upper",
})
# fmt: on
_MAPPING_METHODS = frozenset({"get", "items", "keys", "values"})


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The environment of one template, one render at a time; reset `meter` before each."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols"],
        )
        self.meter = Meter()
        self._operations = operations = Operations(self.meter)
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        filters = {name: self.filters[name] for name in _FILTERS}
        filters |= {"join": operations.join, "replace": operations.replace, "tojson": operations.to_json}
        filters |= {"safe": operations.text, "string": operations.text}
        self.filters = {name: self._metered(run) for name, run in filters.items()}
        self.filters |= {"metered_turns": self._metered_turns, "metered_text": self._metered_text}

    def compile_bounded(self, source: str) -> Template:
        """Return the template with every loop and every piece of output on the meter."""
        tree = _Metering().visit(self.parse(source))
        return self.from_string(tree.set_environment(self))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Allow the methods that chat templates use, and what loops and namespaces hold."""
        if not super().is_safe_attribute(obj, attr, value):
            return False
        if isinstance(obj, str):
            return attr in _STR_METHODS
        if isinstance(obj, Mapping):
            return attr in _MAPPING_METHODS
        return isinstance(obj, LoopContext | Namespace)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Refuse at once; Jinja would first let the template print nothing."""
        raise SecurityError(f"a template may not use {attribute!r} of a {type(obj).__name__}")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Give out our own ``replace`` and ``join``: Jinja offers every attribute here first."""
        text = getattr(value, "__self__", None)
        if not isinstance(value, BuiltinMethodType) or not isinstance(text, str):
            return None
        if value.__name__ == "replace":
            return lambda old, new, count=None: self._operations.replace(text, old, new, count)
        if value.__name__ == "join":
            return lambda items: self._operations.join(items, text)
        return None

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Count a call; macros recurse through here."""
        __self.meter.step()
        __self.meter.read(getattr(__obj, "__self__", None))
        result = super().call(__context, __obj, *args, **kwargs)
        __self.meter.made(result)
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Ask for the size of the result, then compute it."""
        self._operations.check_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def _metered(self, run: Callable[..., Any]) -> Callable[..., Any]:
        n_passed = 1 if hasattr(run, "jinja_pass_arg") else 0

        @wraps(run)
        def metered(*args: Any, **kwargs: Any) -> Any:
            self.meter.step()
            self.meter.read(args[n_passed])
            result = run(*args, **kwargs)
            self.meter.made(result)
            return result

        return metered

    # pass_context keeps the compiler from folding these two into a constant, which would count nothing.

    @pass_context
    def _metered_turns(self, _: Context, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.meter.step()
            yield item

    @pass_context
    def _metered_text(self, _: Context, value: object) -> str:
        text = self._operations.text(value)
        self.meter.reserve(len(text))
        return text


class _Metering(NodeTransformer):
    """Sends what loops and what writes through the meter."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        if node.recursive:
            raise SecurityError("recursive loops are not available")
        self.generic_visit(node)
        node.iter = _filter("metered_turns", node.iter)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [_filter("metered_text", child) for child in node.nodes]
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.Const(node.data, lineno=node.lineno)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter("join", nodes.List(node.nodes, lineno=node.lineno))


def _filter(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
