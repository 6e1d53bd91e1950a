"""PyTorch and safetensors, imported when they are first used: `import otprop.deep` needs neither."""

from __future__ import annotations

import importlib
from typing import Any

from otprop._errors import install_command


def import_extra(module: str) -> Any:
    """Import a module of the extra `deep`, or raise an ImportError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"otprop.deep needs {package}: {install_command('deep')}") from None


class _Lazy:
    """A placeholder for a module, which is imported when one of its attributes is first used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra(self._module), name)


torch: Any = _Lazy("torch")
nn: Any = _Lazy("torch.nn")
functional: Any = _Lazy("torch.nn.functional")
safetensors: Any = _Lazy("safetensors.torch")
