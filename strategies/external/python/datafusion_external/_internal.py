"""The classes of datafusion-python, out of this package's one native library.

The library holds two Python modules: `_native` (ours) and `_internal` (datafusion-python's own, which is linked in).
Python finds the first by its file name. This file loads the second from the same library and takes its place, so that
`datafusion_external._internal` is the native module however it is imported.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader

from . import _native

_loader = ExtensionFileLoader(__name__, _native.__file__)
_spec = importlib.util.spec_from_file_location(__name__, _native.__file__, loader=_loader)
if _spec is None:
    _message = f"cannot load {__name__} from {_native.__file__}"
    raise ImportError(_message)
_module = importlib.util.module_from_spec(_spec)
_loader.exec_module(_module)
sys.modules[__name__] = _module
