"""rich, which only the commands need; `import otprop` works without it."""

try:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text
except ImportError:
    raise ImportError("this command needs rich: pip install 'otprop[files]'") from None

__all__ = ["Console", "RichTable", "Text"]
