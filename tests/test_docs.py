"""Documentation: every public name has some, every example runs, and so does everything that the
README shows.

How the README's shell blocks are tested, command by command:
    jaxbandit run NAME ...   with --dry-run (a file of a user's own is the template in
                             `jaxbandit.experiment`, or what `jaxbandit new` writes)
    jaxbandit plot|report X  on a tiny result in place of X
    jaxbandit bench ...      only its --help, which must know the options
    pip install ".[extra]"   only that the extras exist
Python blocks are executed, each by itself, with at most 1000 episodes, and as a user would: without
the strict promotion of the other tests.
"""

import contextlib
import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import textwrap
import tomllib
from pathlib import Path

import jax
import pytest

import jaxbandit
import jaxbandit as jb
from jaxbandit import experiment as base
from jaxbandit import experiments
from jaxbandit.cli import main
from jaxbandit.cli.actions import write_template
from jaxbandit.experiment import catalogue

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_EPISODES = 1000
MODULES = sorted(
    module.name
    for package in (jaxbandit, experiments)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)
KNOWN_PROGRAMS = {"cd", "git", "python", "python3", "pip", "pytest", "ruff", "mypy", "jupyter"}


def blocks(*languages):
    return re.findall(
        rf"^```(?:{'|'.join(languages)})\n(.*?)^```", README, re.DOTALL | re.MULTILINE
    )


def commands():
    """Every command of the README's shell blocks, as words."""
    found = []
    for block in blocks("sh", "bash", "shell", "console"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|;|\|", line.removeprefix("$ ")):
                words = shlex.split(part, comments=True)
                if words:
                    found.append((Path(words[0]).name, *words[1:]))
    return list(dict.fromkeys(found))


@pytest.fixture
def registries():
    """What an example registers is forgotten afterwards."""
    known = [(registry, dict(registry.constructors)) for registry in (jb.LEARNERS, jb.INSTANCES)]
    yield
    for registry, constructors in known:
        registry.constructors.clear()
        registry.constructors.update(constructors)


@contextlib.contextmanager
def promotion_as_users_have_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.parametrize("name", jaxbandit.__all__)
def test_public_names_are_documented(name):
    value = getattr(jaxbandit, name)
    text = inspect.getdoc(value) or ""
    assert text.strip()
    assert not text.startswith(f"{name}("), "only the text that NamedTuple and dataclass make"
    if inspect.isfunction(value) or hasattr(value, "__wrapped__"):
        assert ">>>" in text or re.search(r"[Ee]xample.*`\w+`|see there for an example", text), (
            "no example"
        )


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch, registries):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != "numba":  # the one optional import, of the benchmark's peers
            raise
        pytest.skip("needs numba")
    assert (module.__doc__ or "").strip()
    monkeypatch.chdir(tmp_path)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with promotion_as_users_have_it():
        failures, _ = doctest.testmod(module, optionflags=options)
    assert failures == 0


@pytest.fixture(scope="module")
def tiny_results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    learners = {"UCB-VI": jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 1.0])}
    results = jb.sweep(
        learners, {"I1": mdp}, num_episodes=50, num_seeds=2, record=jb.record.linear(4)
    )
    jb.save(results, folder / "regret.nc")
    return folder


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_of_the_readme(words, tiny_results, tmp_path, monkeypatch, capsys, registries):
    monkeypatch.chdir(tmp_path)
    program, *rest = words
    if program == "pip" or rest[:3] == ["-m", "pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extras in re.findall(r"\[([\w,]+)\]", " ".join(rest)):
            assert set(extras.split(",")) <= set(project["optional-dependencies"])
    elif program == "jaxbandit":
        code = run_command(rest, tiny_results, tmp_path)
        assert code == 0, capsys.readouterr().err
        if rest[0] == "bench":
            shown = capsys.readouterr().out
            assert all(word.split("=")[0] in shown for word in rest if word.startswith("--"))
    else:
        assert program in KNOWN_PROGRAMS, "teach this test what to do with it"


def run_command(words, tiny_results, folder):
    verb, *rest = words
    if verb == "run":
        if "--help" in rest:
            return main(words)
        if "--learners" in rest:
            write_template("learner", "my-learner", rest[rest.index("--learners") + 1])
        if rest[0].endswith(".py"):
            template = base.__doc__.split("my_experiment.py``):\n")[1]
            (folder / rest[0]).write_text(f'"""Mine."""\n{textwrap.dedent(template)}')
        return main([verb, *rest, "--dry-run"])
    if "--gallery" in rest:
        return main([verb, str(tiny_results.parent), *rest, "--overwrite"])
    if verb in ("plot", "report"):
        return main([verb, str(tiny_results), *rest[1:], "--overwrite"])
    if verb == "bench":
        return main([verb, "--help"])
    return main(words)


def line_of(code):
    return f"line {README[: README.index(code)].count(chr(10)) + 1}"


@pytest.mark.parametrize("code", blocks("python", "py"), ids=line_of)
def test_python_of_the_readme(code, tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)

    def smaller(match):
        return f"{match[1]}{min(int(float(match[2])), MOST_EPISODES)}"

    small = re.sub(r"(num_episodes=)([\d_]+(?:e\d+)?)", smaller, code)
    with promotion_as_users_have_it():
        exec(compile(small, "README.md", "exec"), {"__name__": "readme"})


def test_experiments_and_files_named_in_the_readme_exist():
    rows = re.search(r"^\| experiment \|.*?\n\n", README, re.DOTALL | re.MULTILINE)
    named = re.findall(r"^\| `([\w-]+)` \|", rows[0], re.MULTILINE) if rows else []
    missing = [name for name in named if name not in catalogue()]
    files = re.findall(r"`((?:jaxbandit|experiments|notebooks|tests)/[\w./]+)`", README)
    files += re.findall(r"\]\(((?!http|#)[^)]+)\)", README)
    missing += [name for name in files if not (ROOT / name).exists()]
    assert not missing


def test_links_within_the_readme_lead_somewhere():
    heads = re.findall(r"^##+ (.*)", README, re.MULTILINE)
    places = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= places


def test_every_section_is_in_the_table_at_the_top():
    top, _, rest = README.partition("\n## ")
    heads = re.findall(r"^## (.*)", f"## {rest}", re.MULTILINE)
    linked = set(re.findall(r"\(#([^)]+)\)", top))
    places = [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]
    assert [place for place in places if place not in linked] == ["changelog"]


def test_the_walk_of_the_readme_is_that_of_the_code():
    steps = re.findall(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", README, re.MULTILINE)
    assert len(steps) > 20
    for file, function in steps:
        source = (ROOT / "jaxbandit" / file).read_text(encoding="utf-8")
        assert f"def {function}(" in source, (file, function)


def test_the_picture_of_the_readme_has_every_room():
    picture = README[README.index("    jaxbandit/\n") : README.index("    notebooks/  tests/")]
    rooms = {
        path.stem if path.suffix else f"{path.name}/"
        for path in (ROOT / "jaxbandit").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    words = set(re.findall(r"[\w]+/?", picture))
    assert sorted(rooms - words - {"__init__"}) == []
