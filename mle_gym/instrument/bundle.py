"""Joins the hook files to the one text that is shipped."""

from __future__ import annotations

import ast
import base64
import marshal
import sys
from functools import lru_cache
from pathlib import Path

from mle_gym.instrument.hooks.tracebacks import HIDDEN
from mle_gym.syntax import parse

__all__ = ["hooks_source", "joined_source"]

FILES = ("tracebacks", "core", "events", "evidence", "estimators", "frameworks", "install")

_LOADER = """\
# Made by mle_gym.instrument.bundle: the hooks, compiled for one interpreter and as source for all others.
import sys
if (sys.hexversion, sys.implementation.cache_tag) == ({version}, {tag!r}):
    import binascii, marshal
    _code = marshal.loads(binascii.a2b_base64({code!r}))
else:
    _code = compile({source!r}, {name!r}, "exec", dont_inherit=True)
exec(_code)
"""


@lru_cache(maxsize=1)
def hooks_source() -> str:
    """Return the text of the hook module: standard library only, defines ``install(report, context)``.

    Compiling the hooks would take longer than installing them, and it would be done for each program. So the text
    carries their code for this version of Python, beside the source for any other.
    """
    source = joined_source()
    code = compile(source, HIDDEN, "exec", dont_inherit=True)
    return _LOADER.format(
        version=sys.hexversion,
        tag=sys.implementation.cache_tag,
        code=base64.b64encode(marshal.dumps(code)).decode("ascii"),
        source=source,
        name=HIDDEN,
    )


def joined_source() -> str:
    """Return the hook files as one module, without what only a reader needs.

    In one namespace the files need no imports of each other. Docstrings and annotations are left out because each
    string that a forked process loads costs it a page of memory that it shared before.
    """
    folder = Path(__file__).with_name("hooks")
    body: list[ast.stmt] = []
    for name in FILES:
        tree = parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        body += _ForMachines().visit(tree).body
    return ast.unparse(ast.Module(body, type_ignores=[])) + "\n"


class _ForMachines(ast.NodeTransformer):
    """Leaves out docstrings, annotations and the imports that joining the files makes needless."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        return None if (node.module or "").startswith(("mle_gym.", "__future__")) else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        return ast.Assign([node.target], node.value, lineno=node.lineno) if node.value else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.returns = None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node
