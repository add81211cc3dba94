"""What each command does: list, run, show, new, plot, report, merge, doctor."""

from __future__ import annotations

import ast
import dataclasses
import fnmatch
import keyword
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxbandit.checks import accept
from jaxbandit.cli.commands import FIGURES, Doctor, List, Merge, New, Plot, Report, Run, Show
from jaxbandit.experiment import Options, catalogue, load_experiment
from jaxbandit.files import write_atomically
from jaxbandit.status import spinner

COLUMN = 22
"""Width of the column of names."""
TEMPLATES = ("learner", "instance", "experiment")
GROUPS = {
    "experiments": "experiment",
    "learners": "learner",
    "instances": "instance",
    "feedback": "feedback",
    "presets": "preset",
}


def show_list(command: List) -> None:
    """Prints names, parameters and defaults, or the description of one name."""
    from jaxbandit.description import describe

    if command.what not in ("all", *GROUPS):
        with spinner(f"looking up {command.what}", elsewhere=False):  # jax takes its time to start
            found = str(describe(command.what))
        print(found)
        return
    for group, kind in GROUPS.items():
        if command.what in ("all", group):
            _print_group(group, kind)
    if command.what == "all":
        print("everything about one of them: jaxbandit list NAME")


def _print_group(group: str, kind: str) -> None:
    from jaxbandit import description

    if kind == "experiment":
        print("experiments (jaxbandit run NAME)")
        for name, summary in catalogue().items():
            _print_entry(name, summary)
    elif kind == "instance":
        print("instances (jaxbandit.make_instance(NAME, ...))")
        _print_constructors(kind, description.names(kind))
    elif kind == "learner":
        by_feedback: dict[str, list[str]] = {seen: [] for seen in description.names("feedback")}
        for name in description.names(kind):
            by_feedback.setdefault(description.feedback_of(name), []).append(name)
        for seen, names in by_feedback.items():
            if names:
                what = f"that see {seen} feedback" if seen else "that are given a policy"
                print(f"learners {what} (jaxbandit.make_learner(NAME, ...))")
                _print_constructors(kind, names)
    else:
        print(f"{group} ({'what a learner sees' if kind == 'feedback' else 'of learners'})")
        for name in description.names(kind):
            entry = description.describe(name, kind).entries[0]
            _print_entry(name, entry.summary)
            for row in entry.parameters if kind == "preset" else ():
                if row.meaning != "-":
                    _print_entry("", f"  {row.name}: {row.meaning}")


def _print_constructors(kind: str, names: Sequence[str]) -> None:
    from jaxbandit import description

    for name in names:
        _print_entry(name, description.summary(kind, name))
        taken = description.signature(kind, name)
        if taken:
            _print_entry("", f"  ({', '.join(taken)})")


def _print_entry(name: str, text: str) -> None:
    """A name and what it is, in as many lines as the terminal makes of it."""
    width = max(60, shutil.get_terminal_size((100, 50)).columns)
    lead = f"  {name:{COLUMN}} "
    if len(name) > COLUMN:
        print(f"  {name}")
        lead = " " * (COLUMN + 3)
    print(textwrap.fill(f"{lead}{text}", width, subsequent_indent=" " * (COLUMN + 5)))


def explain_experiment(given: Sequence[str]) -> None:
    """Before the help of ``run``, what the experiment that is named there is."""
    from jaxbandit.description import describe

    for word in given[1:]:
        if word in catalogue():
            print(f"{describe(word, 'experiment')}\n")


def run(command: Run) -> None:
    """Runs an experiment by name or by file."""
    from jaxbandit.xla.compilations import start_jax

    names = [each.name for each in dataclasses.fields(Options)]
    options = Options(**{name: getattr(command, name) for name in names}).check()
    if command.experiment not in catalogue() and not command.experiment.endswith(".py"):
        load_experiment(command.experiment)  # a typo is answered before jax starts
    with spinner(f"starting jax for {command.experiment}", elsewhere=False):
        start_jax(command.compilation_cache)
        check_devices(command.devices)
        experiment = load_experiment(command.experiment)
        from jaxbandit.cli.driver import run as run_experiment
    run_experiment(experiment, options)


def merge(command: Merge) -> None:
    """Puts shards together and says what comes next."""
    from jaxbandit.cli.shards import merge_folder

    for label, file in merge_folder(command.folder, overwrite=command.overwrite).items():
        print(f"{label}: {file}")
    print("draw its figures and tables with the command of one shard, --resume in place of --shard")


def check_devices(asked: int | None) -> None:
    """ValueError if the machine has fewer devices (on CPUs: cores)."""
    if asked is None:
        return
    import jax

    from jaxbandit.xla.platforms import num_cores

    found = jax.local_devices()
    on_cpu = found[0].platform == "cpu"
    most = num_cores() if on_cpu else len(found)
    if asked > most:
        what = "cores" if on_cpu else f"{found[0].platform} devices"
        raise ValueError(f"devices: {asked}; accepted: 1 to {most}, the {what} of this machine")


def show(command: Show) -> None:
    """Prints the instance of the command."""
    with spinner("starting jax", elsewhere=False):
        import jax
        import numpy as np

        import jaxbandit as jb
        from jaxbandit.description import small_instance

    Options(seed=command.seed).check()
    if command.figure is not None:
        _check_figure(command.figure, command.overwrite)
    with spinner("planning", elsewhere=False):
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
        with spinner("drawing", elsewhere=False):
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


def new(command: New) -> None:
    """Writes a template."""
    path = write_template(command.what, command.name, command.out, overwrite=command.overwrite)
    then = {
        "learner": f"check and try it: python {path}\nin the paper's figure: "
        f"jaxbandit run prophet --learners {path}",
        "instance": f"look at it: python {path}",
        "experiment": f"run it: jaxbandit run {path}",
    }[command.what]
    print(f"{path}\n{then}")


def write_template(
    what: str, name: str, out: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Path:
    """Writes a commented file that runs as it stands, and returns its path.

    Args:
        what: "learner", "instance" or "experiment": a file of `jaxbandit.cli.templates`.
        name: its name, such as "my-learner".
        out: the file; by default my_learner.py.
        overwrite: replace it if it exists.

    Example:
        >>> import tempfile
        >>> write_template("learner", "my-learner", tempfile.mkdtemp() + "/mine.py").name
        'mine.py'
        >>> write_template("learner", "2 fast")
        Traceback (most recent call last):
        ...
        ValueError: name: '2 fast'; accepted: letters, digits, - and _, beginning with a letter
    """
    accept("what", what, TEMPLATES)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or keyword.iskeyword(name):
        raise ValueError(
            f"name: {name!r}; accepted: letters, digits, - and _, beginning with a letter"
        )
    function = name.replace("-", "_").lower()
    path = Path(out) if out is not None else Path(f"{function}.py")
    if path.suffix != ".py":
        raise ValueError(f"out: {path}; accepted: a file name that ends in .py")
    if path.exists() and not overwrite:
        raise FileExistsError(f"out: {path} exists; give another --out, or --overwrite")
    text = (Path(__file__).parent / "templates" / f"{what}.py").read_text(encoding="utf-8")
    words = {f"my_{what}.py": str(path), f"my-{what}": name, f"my_{what}": function}
    text = re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


def plot(command: Plot) -> None:
    """Draws a file of results, or each file of a folder."""
    from jaxbandit.cli.report import read_results
    from jaxbandit.plotting.files import files_of

    accept("what", command.what, FIGURES)
    with spinner(f"reading {command.results}", elsewhere=False):
        datasets = read_results(command.results)
    folder = command.results if command.results.is_dir() else command.results.parent
    targets = {label: _target(command, folder, label, len(datasets) > 1) for label in datasets}
    there = [
        file
        for target in targets.values()
        for file in files_of(target, command.formats)
        if file.exists() and not command.overwrite
    ]
    if there:
        listed = ", ".join(map(str, there))
        raise FileExistsError(f"out: {listed} exists; give another --out, or --overwrite")
    for label, dataset in datasets.items():
        with spinner(f"drawing {label}", elsewhere=False):
            drawn = _draw(command, dataset)
            files = drawn.save(targets[label], command.formats)
        print("\n".join(map(str, files)))
        if command.no_subtitle and drawn.caption:
            print(f"caption: {drawn.caption}")


def _target(command: Plot, folder: Path, label: str, several: bool) -> Path:
    if command.out is None:
        return folder / f"{label}_{command.what.replace('-', '_')}"
    if several:
        return command.out.with_name(f"{command.out.stem}_{label}{command.out.suffix}")
    return command.out


def _draw(command: Plot, dataset: Any) -> Any:
    """The figure, with those of the options that its function takes."""
    import inspect

    from jaxbandit import plotting
    from jaxbandit.stats import families

    function = getattr(plotting, f"plot_{command.what.replace('-', '_')}")
    taken = inspect.signature(function).parameters
    learners = _matching("learners", command.learners, dataset["learner"].values)
    places = dict.fromkeys([*families(dataset), *map(str, dataset["instance"].values)])
    instances = _matching("instances", command.instances, places)
    several = "panels" in taken or command.what == "regret"
    given = {
        "learners": learners,
        "learner": (learners or [str(dataset["learner"].values[0])])[0],
        "panels": instances,
        "instance": instances if several or instances is None else instances[0],
        "subtitle": False if command.no_subtitle else None,
        "inset": command.inset or None,
        **{
            each: getattr(command, each)
            for each in ("kind", "scale", "size", "columns", "title", "name", "parameter")
        },
    }
    extra = [each for each in given if given[each] is not None and each not in taken]
    refused = [each for each in extra if each not in ("learners", "learner", "panels", "instance")]
    if refused:
        raise ValueError(
            f"{refused[0]}: not for --what {command.what}; accepted: {', '.join(e for e in given if e in taken)}"
        )
    return function(
        dataset, **{each: v for each, v in given.items() if v is not None and each in taken}
    )


def _matching(option: str, wanted: Sequence[str] | None, known: Iterable[Any]) -> list[str] | None:
    """The names that are given or match a pattern, in the order of the options."""
    if wanted is None:
        return None
    names = [str(name) for name in known]
    found: dict[str, None] = {}
    for each in wanted:
        matches = [each] if each in names else fnmatch.filter(names, each)
        if not matches:
            accept(option, each, names)
        found |= dict.fromkeys(matches)
    return list(found)


def report(command: Report) -> None:
    """Writes the HTML page of some results, or the gallery."""
    if command.gallery is not None:
        from jaxbandit.cli.report import make_gallery

        with spinner("drawing every instance, learner and experiment"):
            page = make_gallery(command.gallery, command.results, overwrite=command.overwrite)
        print(page)
        return
    if command.results is None:
        raise ValueError("results: not given; accepted: a folder or a .nc file, or --gallery FILE")
    from jaxbandit.cli.report import make_report

    with spinner(f"reading and drawing {command.results}", elsewhere=False):
        page = make_report(command.results, command.out, overwrite=command.overwrite)
    print(page)


def doctor(command: Doctor) -> int:
    """Prints the report on this machine; 1 if something is wrong."""
    import json

    from jaxbandit.xla.compilations import start_jax

    file = None if command.json in (None, "-") else Path(str(command.json))
    if file is not None and file.exists() and not command.overwrite:
        raise FileExistsError(f"json: {file} exists; accepted: a new file, or --overwrite")
    start_jax()
    from jaxbandit.inspect.doctor import examine, format_report

    found = examine(self_test=not command.quick)
    text = json.dumps(found, indent=1)
    if file is not None:
        write_atomically(file, f"{text}\n".encode())
    print(text if command.json == "-" else format_report(found))
    return int(not found["ok"])


ACTIONS: dict[type, Callable[[Any], int | None]] = {
    List: show_list,
    Run: run,
    Show: show,
    New: new,
    Plot: plot,
    Report: report,
    Merge: merge,
    Doctor: doctor,
}
