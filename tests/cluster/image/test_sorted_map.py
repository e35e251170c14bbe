from random import Random

import pytest

from barnabas.cluster.image.sorted_map import CHUNK, SortedMap


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_dict_however_it_is_changed(seed):
    random, model, mapping = Random(seed), {}, SortedMap()
    kept = []
    for _ in range(300):
        changes = mapping.changes()
        for _ in range(random.choice((1, 2, 5, 300))):
            key = random.randrange(1000)
            if random.random() < 0.4 and key in model:
                del changes[key], model[key]
            else:
                changes[key] = model[key] = random.random()
            assert changes.get(key) == model.get(key)
            assert (key in changes) == (key in model)
        mapping = changes.finish()
        kept.append((mapping, dict(model)))
        assert list(mapping.items()) == sorted(model.items())
        assert len(mapping) == len(model)
        probe = random.randrange(-5, 1005)
        assert (mapping.get(probe), probe in mapping) == (model.get(probe), probe in model)
    for earlier, as_it_was in kept:
        assert dict(earlier) == as_it_was


def test_a_change_copies_one_chunk():
    before = SortedMap({n: n for n in range(10_000)})
    changes = before.changes()
    changes[5000] = -1
    after = changes.finish()
    assert sum(mine is not theirs for mine, theirs in zip(before._chunks, after._chunks, strict=True)) == 1
    assert max(map(len, after._chunks)) <= 2 * CHUNK


def test_no_change_is_the_same_mapping():
    mapping = SortedMap({"a": 1})
    assert mapping.changes().finish() is mapping


@pytest.mark.parametrize("mapping", [SortedMap(), SortedMap({"b": 1})])
@pytest.mark.parametrize("key", ["a", "c"])
def test_a_key_that_is_not_there(mapping, key):
    assert key not in mapping
    assert mapping.get(key, 7) == 7
    with pytest.raises(KeyError):
        mapping[key]
    changes = mapping.changes()
    with pytest.raises(KeyError):
        del changes[key]
    changes[key] = 1
    del changes[key]
    with pytest.raises(KeyError):
        changes[key]
