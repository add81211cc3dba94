"""Compiled programs: one for a name and shapes, whoever asks and from however many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.xla import programs
from jaxbandit.xla.platforms import CPU, GPU, active
from jaxbandit.xla.programs import PROGRAMS, Programs


def double(x):
    return x * 2


def get(kept, name="double", function=double, shape=3, platform=CPU, **more):
    device = jax.local_devices()[0]
    return kept.get(name, function, (np.zeros(shape, np.float32),), device, platform, **more)


def test_the_same_object_until_name_shape_or_platform_differ():
    kept = Programs()
    first, seconds = get(kept)
    assert seconds > 0
    again, seconds = get(kept)
    assert again is first
    assert seconds == 0
    np.testing.assert_array_equal(first(np.arange(3, dtype=np.float32)), [0, 2, 4])
    for other in ({"name": "other"}, {"shape": 4}, {"platform": GPU}):
        assert get(kept, **other)[0] is not first
    assert len(kept.compiled) == 4
    assert kept.count == 0  # none was worth a word


def test_words_are_counted_and_told():
    kept, heard = Programs(), []
    kept.listeners.append(lambda words, begins: heard.append((words, begins)))
    for _ in range(2):
        get(kept, words="twice")
    get(kept, name="small")
    assert heard == [("twice", True), ("twice", False)]
    assert kept.count == 1


def test_a_program_that_does_not_compile_ends_its_message_and_can_be_tried_again():
    kept, heard = Programs(), []
    kept.listeners.append(lambda words, begins: heard.append(begins))

    def wrong(x):
        raise ValueError("not today")

    for _ in range(2):
        with pytest.raises(ValueError, match="not today"):
            get(kept, function=wrong, words="wrong")
    assert heard == [True, False] * 2
    assert kept.count == 0


def test_threads_that_want_the_same_wait_for_one_compilation():
    kept, traced, start = Programs(), [], threading.Barrier(4)

    def counted(x):
        traced.append(active())
        return jnp.sum(x)

    def ask(_):
        start.wait()
        return get(kept, function=counted, platform=GPU)[0]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert all(each is found[0] for each in found)
    assert traced == [GPU]


def test_few_are_kept_and_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(programs, "KEPT", 2)
    kept = Programs()
    one, _ = get(kept, "one")
    two, _ = get(kept, "two")
    get(kept, "one")
    get(kept, "three")
    assert get(kept, "one")[0] is one
    assert get(kept, "two")[0] is not two
    assert len(kept.compiled) == len(kept._under_way) == 2


def test_a_sweep_compiles_a_program_per_kind_of_learner_and_other_seeds_and_episodes_none():
    """Both kinds of constants share one; T, seeds, recordings and chunks are data.

    ExpRef has a second, which asks it for the policy that it would play next.
    """
    learners = {
        "UCB-VI": jb.make_learner("ucbvi"),
        "UCB-VI, practical": jb.make_learner("ucbvi", preset="practical"),
        "ExpRef": jb.make_learner("expref"),
        "ExpRef, practical": jb.make_learner("expref", preset="practical"),
    }
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)

    def compiled(**changes):
        before = PROGRAMS.count
        jb.sweep(learners=learners, instances={"I1": mdp}, progress=False, **changes)
        return PROGRAMS.count - before

    assert compiled(num_episodes=300, num_seeds=2) <= 3
    assert compiled(num_episodes=2500, num_seeds=19, chunk_size=70) == 0


def test_functions_that_do_something_else_now_are_compiled_anew():
    kept = Programs()
    kept.follow(double, "one")
    first, _ = get(kept)
    kept.follow(double, "one")
    assert get(kept)[0] is first
    kept.follow(double, "two")
    assert get(kept)[0] is not first


def test_what_jax_was_told_is_part_of_a_program():
    kept = Programs()
    first, _ = get(kept)
    with jax.default_matmul_precision("highest"):
        assert get(kept)[0] is not first
    assert get(kept)[0] is first
