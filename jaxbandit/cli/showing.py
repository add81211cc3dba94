"""``jaxbandit show``: an instance in words, its optimal policy as a table, and one episode."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from jaxbandit.cli.commands import Show
from jaxbandit.experiment.contract import Options
from jaxbandit.explaining.examples import small_instance
from jaxbandit.waiting import waiting


def show_instance(command: Show) -> None:
    """Prints the instance of the command."""
    with waiting("starting jax", elsewhere=False):
        import jax
        import numpy as np

        import jaxbandit as jb

    Options(seed=command.seed).check()
    if command.figure is not None:
        _check_figure(command.figure, command.overwrite)
    with waiting("planning", elsewhere=False):
        parameters = read_parameters(command.parameters)
        mdp, used = small_instance(command.instance, parameters, command.seed)
        value, policy = jb.optimal(jb.mdp.plain(mdp))
    words = jb.labels_of(mdp)
    print(f"{command.instance}({', '.join(f'{name}={shown}' for name, shown in used.items())})")
    print(f"  {mdp!r}: {mdp.horizon} stages, levels 1 to {mdp.width}, {mdp.num_actions} actions")
    worth = words.with_unit(words.total(float(value)))
    note = f" ({worth}; a reward of 1 is {words.money(1.0)})" if words.in_units else ""
    print(
        f"  optimal value {float(value):.4g}{note}, from {words.level} {words.state(int(mdp.start))}"
    )
    print(f"\n{policy_table(mdp, np.asarray(policy))}")
    played: Any = policy
    whose = "the optimal policy"
    if command.policy == "uniform":
        played = np.full((*policy.shape, mdp.num_actions), 1 / mdp.num_actions, np.float32)
        whose = "random actions"
    print(f"\none episode of {whose} (--seed {command.seed})")
    episode = jb.trace(mdp, played, jax.random.key(command.seed))
    print(episode)
    if command.figure is not None:
        with waiting("drawing", elsewhere=False):
            files = jb.plot_episode(mdp, episode).save(command.figure)
        print("\n".join(map(str, files)))


def _check_figure(file: Path, overwrite: bool) -> None:
    """An error before anything runs if the file cannot be a figure, or exists."""
    from jaxbandit.plotting.files import files_of

    for each in files_of(file, None):
        if each.exists() and not overwrite:
            raise FileExistsError(f"figure: {each} exists; give another --figure, or --overwrite")


def read_parameters(words: tuple[str, ...]) -> dict[str, Any]:
    """name=value words as data.

    Example:
        >>> read_parameters(("horizon=8", "theta=[0, 1]"))
        {'horizon': 8, 'theta': [0, 1]}
    """
    found = {}
    for word in words:
        name, sign, text = word.partition("=")
        try:
            found[name.replace("-", "_")] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            sign = ""
        if not sign:
            raise ValueError(f"parameters: {word!r}; accepted: name=value, such as horizon=8")
    return found


def _shared_words(names: list[str]) -> str:
    """The words that all names begin with, except the last of each."""
    split = [name.split(" ")[:-1] for name in names]
    shared = []
    for words in zip(*split, strict=False):
        if len(set(words)) > 1:
            break
        shared.append(f"{words[0]} ")
    return "".join(shared)


def policy_table(mdp: Any, policy: Any) -> str:
    """The optimal action of every state that can be reached; stages to the right.

    Example:
        >>> import jaxbandit as jb, numpy as np
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> print(policy_table(mdp, np.asarray(jb.optimal(mdp)[1])))
        optimal policy: accept from ..., by capacity left and stage (. = never reached)
                1    2
          1   0.5  0.5
    """
    import numpy as np

    import jaxbandit as jb

    words = jb.labels_of(mdp)
    visits = np.asarray(jb.visitation(mdp, policy))
    cells = {
        (i, level): words.action(i, int(policy[i, level]))
        for i in range(mdp.horizon)
        for level in range(1, mdp.width + 1)
        if visits[i, level] > 0
    }
    names = {words.action(i, a) for i in range(mdp.horizon) for a in range(mdp.num_actions)}
    # thresholds: "accept from 0.5" and "accept none" share all but the value
    common = _shared_words(sorted(names - {"accept none"}))
    cells = {state: text.removeprefix(common).split(" ")[-1] for state, text in cells.items()}
    width = max(2, *(len(text) for text in cells.values()))
    lead = f"optimal policy: {common}..." if common else "optimal policy"
    lines = [f"{lead}, by {words.level} and stage (. = never reached)"]
    lines.append(" " * 6 + "  ".join(f"{i + 1:>{width}}" for i in range(mdp.horizon)))
    for level in range(mdp.width, 0, -1):
        row = [cells.get((i, level), ".") for i in range(mdp.horizon)]
        lines.append(f"  {words.state(level):<4}" + "  ".join(f"{text:>{width}}" for text in row))
    return "\n".join(lines)
