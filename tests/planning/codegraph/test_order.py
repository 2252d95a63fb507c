"""The order of packing: what is included comes first wherever that can be, and what cannot be is said."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.planning.codegraph.order import order_files

graphs = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40),
    )
)


def reaches(edges: list[tuple[int, int]], start: int, goal: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        at = waiting.pop()
        for source, target in edges:
            if source == at and target not in seen:
                seen.add(target)
                waiting.append(target)
    return goal in seen


@given(graphs)
def test_each_file_follows_what_it_includes_unless_both_are_in_a_cycle(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, edges = graph
    order = order_files(count, edges)
    assert sorted(order.files) == list(range(count))
    rank = {file: place for place, file in enumerate(order.files)}
    late = {(source, target) for source, target in edges if source != target and rank[target] > rank[source]}
    assert set(order.broken) == late
    for source, target in late:
        assert reaches(edges, target, source)
    cycles = {file for cycle in order.cycles for file in cycle}
    assert cycles == {
        a for a in range(count) if any(a != b and reaches(edges, a, b) and reaches(edges, b, a) for b in range(count))
    }


@given(graphs, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_edges(
    graph: tuple[int, list[tuple[int, int]]], shuffle: random.Random
) -> None:
    count, edges = graph
    shuffled = [*edges, *edges]
    shuffle.shuffle(shuffled)
    assert order_files(count, edges) == order_files(count, shuffled)


def test_without_includes_files_come_by_path() -> None:
    assert order_files(4, []).files == (0, 1, 2, 3)


def test_a_ring_breaks_one_edge_and_a_hub_with_many_users_comes_first() -> None:
    ring = [(number, (number + 1) % 5) for number in range(5)]
    assert len(order_files(5, ring).broken) == 1
    star = [(user, 4) for user in range(4)] + [(4, 0), (0, 1), (1, 2), (2, 3)]
    order = order_files(5, star)
    assert order.files[0] == 4
    assert order.broken == ((4, 0),)


def test_deep_chains_and_long_rings_need_no_recursion() -> None:
    count = 50_000
    chain = order_files(count, [(number, number + 1) for number in range(count - 1)])
    assert chain.files == tuple(reversed(range(count)))
    assert len(order_files(count, [(number, (number + 1) % count) for number in range(count)]).broken) == 1
