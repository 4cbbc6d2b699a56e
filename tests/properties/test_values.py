"""Laws of values: freezing, order, hashing, exact sums, and the containers against simple models."""

from __future__ import annotations

import functools
import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from river.lang import types as t
from river.lang import values as v
from river.testing import value_strategies as strategies

FEW = settings(max_examples=60, deadline=None)


def thawed(type_: t.Type, value):
    """The value with every container in it mutable."""
    match type_:
        case t.Optional(inner):
            return value if value is None else thawed(inner, value)
        case t.Record() | t.Tuple():
            return tuple(map(thawed, t.parts(type_), value))
        case t.Map(_, item) | t.OMap(_, item):
            return v.mutable_form(type_, [(k, thawed(item, x)) for k, x in value.items()])
        case t.Bag():
            return v.thaw(type_, value)
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            return v.mutable_form(type_, [thawed(item, x) for x in value])
        case _:
            return value


def freeze(type_: t.Type, value):
    found = v.freezer(type_)
    return value if found is None else found(value)


@pytest.mark.slow
@FEW
@given(strategies.typed_values(strategies.types()))
def test_strategies_and_zeros_are_well_typed(typed) -> None:
    type_, value = typed
    assert v.well_typed(type_, value)
    assert v.well_typed(type_, v.default(type_))


@FEW
@given(strategies.item_types())
def test_item_types_are_items(type_) -> None:
    assert t.is_item(type_)


@pytest.mark.slow
@FEW
@given(strategies.key_types())
def test_key_types_are_keys(type_) -> None:
    assert t.is_key(type_)


@pytest.mark.slow
@FEW
@given(strategies.typed_values(strategies.types()))
def test_freezing_undoes_thawing_and_copies_nothing_frozen(typed) -> None:
    type_, value = typed
    again = freeze(type_, thawed(type_, value))
    assert (again,) == (value,)  # in a tuple, because NaN is one object
    assert hash(again) == hash(value)
    assert v.well_typed(type_, again)
    assert freeze(type_, value) is value


@pytest.mark.slow
@FEW
@given(strategies.typed_values(strategies.types()))
def test_a_frozen_copy_does_not_see_later_writes(typed) -> None:
    type_, value = typed
    lists = t.List(type_)
    mutable = [thawed(type_, value)]
    copy = freeze(lists, mutable)
    mutable.clear()
    assert copy == (value,)


@pytest.mark.slow
@FEW
@given(strategies.typed_pairs(strategies.types()))
def test_the_total_order_agrees_with_same(typed) -> None:
    type_, a, b = typed
    order = v.total_key(type_) or (lambda value: value)
    below, above, equal = order(a) < order(b), order(a) > order(b), order(a) == order(b)
    assert below + above + equal == 1
    assert equal == v.same(type_)(a, b)
    # in sequences, as observations come: there NaN, of which there is one object, is itself
    assert equal == ([v.observed(type_, a)] == [v.observed(type_, b)])
    assert v.same(type_)(thawed(type_, a), b) == equal


@FEW
@given(
    strategies.types(3).flatmap(
        lambda x: st.tuples(st.just(x), st.lists(strategies.values_of(x, 3), max_size=5))
    )
)
def test_sorting_is_stable_under_the_total_order(typed) -> None:
    type_, items = typed
    order = v.total_key(type_) or (lambda value: value)
    by_comparison = functools.cmp_to_key(lambda a, b: (order(a) > order(b)) - (order(a) < order(b)))
    assert sorted(items, key=order) == sorted(items, key=by_comparison)


@pytest.mark.slow
@FEW
@given(strategies.typed_pairs(strategies.types(hashed=True)))
def test_hash64_agrees_with_same(typed) -> None:
    type_, a, b = typed
    assert 0 <= v.hash64(type_, a) < 1 << 64
    assert v.hash64(type_, a) == v.hash64(type_, thawed(type_, a))
    assert (v.hash64(type_, a) == v.hash64(type_, b)) == v.same(type_)(a, b)


@FEW
@given(st.dictionaries(st.integers(0, 9), st.integers(0, 3)), st.randoms(use_true_random=False))
def test_maps_and_bags_hash_without_their_order(entries, random) -> None:
    pairs = list(entries.items())
    random.shuffle(pairs)
    type_ = t.Map(t.I64, t.I64)
    assert v.hash64(type_, entries) == v.hash64(type_, dict(pairs))
    assert v.same(type_)(entries, v.FrozenMap(pairs))
    values = [x for _, x in pairs]
    bag = t.Bag(t.I64)
    assert v.hash64(bag, v.Bag(values)) == v.hash64(bag, v.FrozenBag(entries.values()))


def test_hash64_is_the_documented_function() -> None:
    """Written again from the words of the docstring."""

    def fold(x: int, y: int) -> int:
        low, high = (x * y) % 2**64, (x * y) >> 64
        return low ^ high

    def from_words(*words: int) -> int:
        h = 0x9E3779B97F4A7C15
        for word in words:
            h = fold(h ^ word, 0xD1342543DE82EF95)
        return fold(h ^ 0xA0761D6478BD642F, 0xD1342543DE82EF95)

    assert v.hash64(t.I64, -1) == from_words(2**64 - 1)
    assert v.hash64(t.I128, -1) == from_words(2**64 - 1, 2**64 - 1)
    assert v.hash64(t.STRING, "hällo, du") == from_words(10, 0x2C6F6C6CA4C368_00 >> 8 | 0x20 << 56, 0x7564)
    assert v.hash64(t.F64, 1.0) == v.hash64(t.F32, 1.0) == from_words(0x3FF0000000000000)
    assert v.hash64(t.F64, -0.0) == from_words(0)
    assert v.hash64(t.F64, v.NAN) == from_words(0x7FF8000000000000)
    assert v.hash64(t.Optional(t.BOOL), None) == from_words(0)
    assert v.hash64(t.Tuple((t.Optional(t.BOOL), t.UNIT, t.U64)), (True, (), 7)) == from_words(1, 1, 7)
    assert v.hash64(t.List(t.I32), (4, 5)) == from_words(2, 4, 5)
    entries = (from_words(1, 2) + from_words(3, 4)) % 2**64
    assert v.hash64(t.Map(t.I64, t.I64), {1: 2, 3: 4}) == from_words(2, entries)
    assert v.hash64(t.OMap(t.I64, t.I64), v.OMap(None, {3: 4, 1: 2}.items())) == from_words(2, 1, 2, 3, 4)


def test_the_low_bit_of_hash64_splits_evenly() -> None:
    odd = sum(v.hash64(t.I64, i) & 1 for i in range(10_000))
    assert 4_700 < odd < 5_300


def test_what_has_no_hash_is_refused() -> None:
    with pytest.raises(TypeError):
        v.hash64(t.FSUM, v.ZERO_SUM)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


def rounded(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(st.lists(FINITE, max_size=20), st.lists(FINITE, max_size=5), st.randoms(use_true_random=False))
def test_a_sum_is_exact_in_any_order_and_can_be_taken_back(numbers, others, random) -> None:
    steps = [(x, 1) for x in numbers + others] + [(x, -1) for x in others]
    random.shuffle(steps)
    total = functools.reduce(lambda s, step: v.add_to_sum(s, *step), steps, v.ZERO_SUM)
    expected = rounded(sum(map(Fraction, numbers), Fraction(0)))
    assert v.sum_value(total) == expected
    assert math.copysign(1.0, v.sum_value(total)) == math.copysign(1.0, expected)


@given(st.lists(st.floats(), max_size=8))
def test_infinities_and_nan_in_a_sum(numbers) -> None:
    total = functools.reduce(v.add_to_sum, numbers, v.ZERO_SUM)
    found = v.sum_value(total)
    special = [x for x in numbers if not math.isfinite(x)]
    if special:
        expected = sum(special)
        assert found == expected or (math.isnan(expected) and found is v.NAN)
    back = functools.reduce(lambda s, x: v.add_to_sum(s, x, -1), numbers, total)
    assert back == v.ZERO_SUM


STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([v.NAN, 0.0, 1.0, 2.5, -1.0, math.inf])), max_size=40
)


@given(STEPS)
def test_an_ordered_map_is_a_sorted_dictionary(steps) -> None:
    order = v.total_key(t.F64)
    assert order is not None
    found, model = v.OMap(order), {}
    for number, (insert, key) in enumerate(steps):
        if insert:
            found[key] = model[key] = number
        elif key in model:
            del found[key], model[key]
        assert (key in found) == (key in model)
        keys = sorted(model, key=order)
        assert list(found) == found.keys() == keys
        assert found.items() == [(k, model[k]) for k in keys]
        assert found.floor(key) is max((k for k in keys if order(k) <= order(key)), key=order, default=None)
        assert found.ceil(key) is min((k for k in keys if order(k) >= order(key)), key=order, default=None)
        assert found.between(-1.0, key) == [k for k in keys if order(-1.0) <= order(k) < order(key)]


@given(STEPS)
def test_a_bag_is_a_list_that_loses_the_oldest(steps) -> None:
    found, model = v.Bag(), []
    for insert, item in steps:
        if insert:
            found.add(item)
            model.append(item)
        elif item in model:
            found.remove(item)
            model.remove(item)
        else:
            with pytest.raises(KeyError):
                found.remove(item)
        assert list(found) == model
        assert len(found) == len(model)
        assert found.count(item) == Counter(model)[item]
        assert (item in found) == (item in model)
