"""rich, which only the commands need; `import otprop` works without it."""

from otprop._errors import install_command

try:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text
except ImportError:
    raise ImportError(f"this command needs rich: {install_command('files')}") from None

__all__ = ["Console", "RichTable", "Text"]
