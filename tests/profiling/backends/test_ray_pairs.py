"""Which hosts have channels between them: all that were made are closed, whoever has left."""

from profiling.backends._ray.pairs import MOST_CLOSED, Pairs


class Told:
    """An actor that notes whom it was told to forget."""

    def __init__(self, name, told):
        self._name, self._told = name, told

    @property
    def forget(self):
        return self

    def remote(self, other):
        self._told.append((self._name, other))
        return f"{self._name} of {other}"


def joined(*ways):
    told, pairs = [], Pairs()
    actors = {name: Told(name, told) for way in ways for name in way}
    for a, b in ways:
        pairs.joined[a, b], pairs.rooms[a, b] = (actors[a], actors[b]), 1000
    return pairs, told


def test_both_ends_of_each_are_closed_once():
    pairs, told = joined("ab", "ba", "bc")
    pairs.close()
    assert sorted(told) == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    assert sorted(pairs.closing) == [(host, f"{host} of {other}") for host, other in sorted(told)]
    assert not pairs.joined and not pairs.rooms
    pairs.close()
    assert len(told) == 4


def test_hosts_that_are_left_close_theirs_when_another_has_left():
    pairs, told = joined("ab", "ac", "cb")
    pairs.closing += [("c", "of before"), ("a", "of before")]
    pairs.rooms["b", "a"] = 1000
    pairs.leave({"c"})
    # The one without channels may have none for the sake of who has left.
    assert list(pairs.joined) == list(pairs.rooms) == [("a", "b")]
    assert pairs.closing == [("a", "of before")]
    pairs.close()
    assert sorted(told) == [("a", "b"), ("b", "a")]


def test_they_stay_after_so_many_times_for_each_leaves_a_thread():
    pairs, told = joined("ab")
    pairs.num_closed = MOST_CLOSED
    pairs.close()
    assert not told and len(pairs.joined) == 1
