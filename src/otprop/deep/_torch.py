"""PyTorch and safetensors, imported when they are first used: `import otprop.deep` needs neither."""

from __future__ import annotations

import importlib
from typing import Any


def import_extra(module: str) -> Any:
    """Import a module of the extra `deep`, or raise an ImportError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"otprop.deep needs {package}: pip install 'otprop[deep]'") from None


class _Lazy:
    """Stands for a module that is imported when an attribute of it is first used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra(self._module), name)


torch: Any = _Lazy("torch")
nn: Any = _Lazy("torch.nn")
functional: Any = _Lazy("torch.nn.functional")
safetensors: Any = _Lazy("safetensors.torch")
