"""Tells every environment which ones this tox call selected, so that the last strategy runs the comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tox.plugin import impl

if TYPE_CHECKING:
    from tox.config.sets import ConfigSet
    from tox.session.state import State
    from tox.tox_env.api import ToxEnv

_states: list[State] = []


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:
    """Keeps the one object that knows the selection; it is not complete yet at this point."""
    del core_conf
    _states[:] = [state]


@impl
def tox_before_run_commands(tox_env: ToxEnv) -> None:
    """Puts the selection into the environment of the commands."""
    selected = ",".join(name for state in _states for name in state.envs.iter())
    tox_env.conf["set_env"].update({"DF_STRATEGIES_SELECTED": selected})
