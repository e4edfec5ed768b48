"""The loader that OmegaConf itself uses, wherever the installed release keeps it."""

from __future__ import annotations

from typing import Any

try:
    from omegaconf._yaml import get_yaml_loader  # 2.4
except ImportError:
    from omegaconf._utils import get_yaml_loader  # 2.3

OMEGACONF_LOADER: Any = get_yaml_loader()
