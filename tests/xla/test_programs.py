"""Compiled programs: one for a name and shapes, whoever asks and from however many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.xla import programs
from jaxbandit.xla.platforms import CPU, GPU, active
from jaxbandit.xla.programs import Programs

DEVICE = (jax.local_devices()[0], CPU)


def double(x):
    return x * 2


def get(kept, name="double", function=double, shape=3, platform=CPU, **more):
    return kept.get(name, function, (np.zeros(shape, np.float32),), DEVICE[0], platform, **more)


def test_the_same_object_until_name_shape_or_platform_differ():
    kept = Programs()
    first, seconds, digest = get(kept)
    assert seconds > 0
    assert kept.digest("double", double, (np.zeros(3, np.float32),), *DEVICE) == digest
    again, seconds, _ = get(kept)
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
        get(kept, title="twice")
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
            get(kept, function=wrong, title="wrong")
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
    one = get(kept, "one").call
    two = get(kept, "two").call
    get(kept, "one")
    get(kept, "three")
    assert get(kept, "one")[0] is one
    assert get(kept, "two")[0] is not two
    assert len(kept.compiled) == 2


def test_lowering_ahead_is_not_done_again():
    kept, traced = Programs(), []

    def counted(x):
        traced.append(None)
        return jnp.sum(x)

    args = (np.zeros(3, np.float32),)
    digest = kept.digest("double", counted, args, *DEVICE)
    found = get(kept, function=counted)
    assert found.digest == digest
    assert found.seconds > 0
    assert len(traced) == 1


def test_programs_with_large_constants_are_not_all_kept(monkeypatch):
    monkeypatch.setattr(programs, "KEPT_BYTES", 100_000)
    kept = Programs()
    for number in range(5):
        table = np.random.default_rng(number).random(3000, np.float32)
        get(kept, number, lambda x, table=table: x[0] + jnp.sum(jnp.asarray(table)))
    assert len(kept.compiled) == 4  # 24 kB of digits each


def test_what_jax_was_told_is_part_of_a_program():
    kept = Programs()
    first = get(kept).call
    with jax.default_matmul_precision("highest"):
        assert get(kept)[0] is not first
    assert get(kept)[0] is first
