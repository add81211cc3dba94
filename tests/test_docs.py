"""Documentation: every public name has some, every example runs, and so does everything that the
READMEs show.

How shell blocks are tested, command by command:
    jaxbandit run NAME ...   with --dry-run (a file of a user's own is the template in
                             `jaxbandit.experiment`, or what `jaxbandit new` writes), and no time is measured
    jaxbandit doctor         with --quick
    jaxbandit plot|report X  on a tiny result in place of X
    jaxbandit bench ...      only its --help, which must know the options
    pip install ".[extra]"   only that the extras exist
Python blocks are executed, each by itself, with at most 1000 episodes, and as a user would: without
the strict promotion of the other tests.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import textwrap
import tomllib
from pathlib import Path

import pytest

import jaxbandit
import jaxbandit as jb
from jaxbandit import experiment as base
from jaxbandit import experiments
from jaxbandit.cli import main
from jaxbandit.cli.commands import write_template
from jaxbandit.experiment import catalogue
from jaxbandit.sweeps import loop

ROOT = Path(__file__).parent.parent
DOCS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "README.md", "jaxbandit/README.md", "experiments/README.md", "experiments/bench/README.md",
        "notebooks/README.md", "tests/README.md", ".github/CONTRIBUTING.md",
    )
}  # fmt: skip
README, PACKAGE = DOCS["README.md"], DOCS["jaxbandit/README.md"]
MOST_EPISODES = 1000
MODULES = sorted(
    module.name
    for package in (jaxbandit, experiments)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)
KNOWN_PROGRAMS = {"cd", "git", "python", "python3", "pip", "pytest", "ruff", "mypy", "jupyter"}


def blocks(*languages):
    """(file, block) of all documents."""
    fence = rf"^```(?:{'|'.join(languages)})\n(.*?)^```"
    return [
        (name, block)
        for name, text in DOCS.items()
        for block in re.findall(fence, text, re.DOTALL | re.MULTILINE)
    ]


def commands():
    """Every command of the shell blocks, as words."""
    found = []
    for _, block in blocks("sh", "bash", "shell", "console"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|;|\|", line.removeprefix("$ ")):
                words = shlex.split(part, comments=True)
                if words:
                    found.append((Path(words[0]).name, *words[1:]))
    return list(dict.fromkeys(found))


@pytest.fixture
def registries(monkeypatch):
    """What an example registers is forgotten afterwards."""
    for registry in (jb.LEARNERS, jb.INSTANCES):
        monkeypatch.setattr(registry, "constructors", dict(registry.constructors))


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


@pytest.mark.usefixtures("promotion_as_users_have_it")
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
    assert doctest.testmod(module, optionflags=options).failed == 0


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
def test_commands_of_the_documents(words, tiny_results, tmp_path, monkeypatch, capsys, registries):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loop, "measure", lambda settings, plan, seconds: plan)
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
    return main([*words, *{"bench": ["--help"], "doctor": ["--quick"]}.get(verb, [])])


def place_of(where):
    name, code = where
    return f"{name}:{DOCS[name][: DOCS[name].index(code)].count(chr(10)) + 1}"


@pytest.mark.usefixtures("promotion_as_users_have_it")
@pytest.mark.parametrize("where", blocks("python", "py"), ids=place_of)
def test_python_of_the_documents(where, tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)

    def smaller(match):
        return f"{match[1]}{min(int(float(match[2])), MOST_EPISODES)}"

    small = re.sub(r"(num_episodes=)([\d_]+(?:e\d+)?)", smaller, where[1])
    exec(compile(small, place_of(where), "exec"), {"__name__": "readme"})


def anchors(text):
    heads = re.findall(r"^##* (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", DOCS)
def test_links_and_named_files_exist(name):
    text, folder = DOCS[name], (ROOT / name).parent
    missing = [
        file
        for file in re.findall(r"`((?:jaxbandit|experiments|notebooks|tests)/[\w./]+)`", text)
        if not (ROOT / file).exists()
    ]
    for link in re.findall(r"\]\(((?!http)[^)]+)\)", text):
        file, _, anchor = link.partition("#")
        target = (folder / file).resolve() if file else ROOT / name
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            missing.append(link)
    assert not missing


def test_experiments_of_the_documents_are_those_of_the_code():
    rows = re.search(r"^\| experiment \|.*?\n\n", DOCS["experiments/README.md"], re.DOTALL | re.M)
    named = re.findall(r"^\| `([\w-]+)` \|", rows[0], re.MULTILINE)
    assert sorted(named) == sorted(catalogue())


def test_the_readme_is_a_front_door():
    lines = README.splitlines()
    assert len(lines) <= 250
    assert len(README.encode()) <= 15_000
    inside, wide = False, []
    for line in lines:
        inside ^= line.startswith("```")
        if not inside and not line.startswith("|") and len(line) > 140:
            wide.append(line)
    assert not wide


def test_the_catalogue_of_the_readme_is_complete():
    for registry in (jb.LEARNERS, jb.INSTANCES):
        missing = [name for name in registry.names() if f"`{name}`" not in README]
        assert not missing


def test_public_names_are_listed_by_topic():
    names = set(jaxbandit.__all__) - set(
        jaxbandit.plotting.FIGURES
    )  # figures are found by their files
    assert [name for name in sorted(names) if f"`{name}`" not in PACKAGE] == []


def test_the_walks_are_those_of_the_code():
    steps = re.findall(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", PACKAGE, re.MULTILINE)
    assert len(steps) > 15
    for file, function in steps:
        source = (ROOT / "jaxbandit" / file).read_text(encoding="utf-8")
        assert f"def {function}(" in source, (file, function)


def test_the_picture_of_the_package_is_complete():
    picture = PACKAGE[PACKAGE.index("    jaxbandit/\n") : PACKAGE.index("    notebooks/  tests/")]
    parts = {
        path.stem if path.suffix else f"{path.name}/"
        for path in (ROOT / "jaxbandit").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    words = set(re.findall(r"[\w]+/?", picture))
    assert sorted(parts - words - {"__init__"}) == []
