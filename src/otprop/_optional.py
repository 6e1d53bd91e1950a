"""Modules of the extras, imported when they are first used: `import otprop` and `import otprop.deep` need none."""

from __future__ import annotations

import importlib
from typing import Any

from otprop._errors import install_command

_USES = {
    "files": "reading and writing tables",
    "excel": "reading and writing Excel files",
    "anndata": "reading and writing .h5ad files",
    "deep": "otprop.deep",
}


def import_optional(module: str, extra: str = "files") -> Any:
    """Import a module of an extra, or raise an ImportError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"{_USES[extra]} needs {package}: {install_command(extra)}") from None


class OptionalModule:
    """Stands for a module that is imported when an attribute of it is first used."""

    def __init__(self, module: str, extra: str = "files") -> None:
        self._module, self._extra = module, extra

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # inspect asks every object for it
            raise AttributeError(name)
        return getattr(import_optional(self._module, self._extra), name)


pa: Any = OptionalModule("pyarrow")
pc: Any = OptionalModule("pyarrow.compute")
ipc: Any = OptionalModule("pyarrow.ipc")
feather: Any = OptionalModule("pyarrow.feather")
parquet: Any = OptionalModule("pyarrow.parquet")
pandas: Any = OptionalModule("pandas")
openpyxl: Any = OptionalModule("openpyxl", "excel")
torch: Any = OptionalModule("torch", "deep")
nn: Any = OptionalModule("torch.nn", "deep")
functional: Any = OptionalModule("torch.nn.functional", "deep")
safetensors: Any = OptionalModule("safetensors.torch", "deep")
