"""The directive `command-help`: what `otprop NAME --help` prints, taken from the parser itself."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from otprop.cli._command import build_parser


class CommandHelp(SphinxDirective):
    """The help of one command as a literal block."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The block."""
        name = self.arguments[0]
        text = build_parser(name)[1][name].format_help()
        block = nodes.literal_block(text, text, classes=["command-help"])
        block["language"] = "none"
        return [block]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
