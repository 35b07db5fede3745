"""Rules against their definition: each op goes where the last rule that matches its unit says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.constraints import rules
from placement.constraints.rules import Rule
from placement.core.graph import Op
from tests.pages.problems import diamond

PROBLEM = diamond()
CONV = Op("block/a_conv", "Conv", scope="net/block/inner")

PATTERNS = (
    "Conv",
    "Relu",
    "a_conv",
    "b_*",
    "?_relu",
    "type:Conv",
    "name:c*",
    "regex:^[ad]_",
    "nothing",
)
patterns = st.sampled_from(PATTERNS)
lists = st.lists(st.builds(Rule, patterns, st.sampled_from(["cpu:0", "cpu:1"])), max_size=6)


@pytest.mark.parametrize(
    "pattern",
    [
        *("Conv", "C*", "block/a_conv", "net/block/inner", "net/block", "net", "*/inner/*"),
        *("net/block/inner/block/a_conv", "type:Conv", "type:?onv", "scope:net/block", "scope:n*"),
        *("name:*conv", r"regex:a_c.nv$", r"regex:\x62lock"),
    ],
)
def test_what_matches(pattern):
    assert Rule(pattern, "cpu:0").matches(CONV)


@pytest.mark.parametrize(
    "pattern",
    [
        *("conv", "a_conv", "inner", "type:net", "scope:Conv", "scope:net/bl", "name:Conv"),
        *("regex:^a_conv", "regex:Conv"),
    ],
)
def test_what_does_not(pattern):
    assert not Rule(pattern, "cpu:0").matches(CONV)


def by_definition(graph, given_rules):
    return [[i for i, op in enumerate(graph.ops) if rule.matches(op)] for rule in given_rules]


def test_ops_are_found_by_all_kinds_of_patterns_at_once():
    listed = [Rule(pattern, "cpu:0") for pattern in PATTERNS]
    found = rules.found_by(PROBLEM.graph, listed)
    assert [list(ops) for ops in found] == by_definition(PROBLEM.graph, listed)


@given(lists)
def test_text_and_back(given_rules):
    assert list(rules.parse(rules.to_text(given_rules))) == given_rules


@given(lists)
def test_the_last_rule_that_matches_a_unit_decides_it(given_rules):
    decided = rules.decide(PROBLEM, given_rules, by_definition)
    ops, index = PROBLEM.graph.ops, PROBLEM.machine.index
    num_won = [0] * len(given_rules)
    for unit, members in enumerate(PROBLEM.ops_of_unit):
        hits = [
            n for n, rule in enumerate(given_rules) if any(rule.matches(ops[i]) for i in members)
        ]
        if hits:
            assert decided.device_of_unit[unit] == index[given_rules[hits[-1]].device]
            num_won[hits[-1]] += sum(given_rules[hits[-1]].matches(ops[i]) for i in members)
        else:
            assert unit not in decided.device_of_unit
    assert decided.num_won == tuple(num_won)
    assert decided.num_matched == tuple(sum(map(r.matches, ops)) for r in given_rules)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Conv", "form PATTERN=DEVICE"),
        ("=cpu:0", "form PATTERN=DEVICE"),
        ("Conv=", "form PATTERN=DEVICE"),
        ("regex:(=cpu:0", "not a regular expression"),
    ],
)
def test_what_is_no_rule_is_refused_in_one_sentence(text, said):
    with pytest.raises(ValueError, match=said):
        rules.parse(text)
    with pytest.raises(ValueError, match="separates rules"):
        Rule("a;b", "cpu:0")
    with pytest.raises(ValueError, match="no device 'gpu'"):
        rules.decide(PROBLEM, rules.parse("Conv=gpu"))


def test_equal_signs_belong_to_the_pattern():
    assert rules.parse("name:a=b=cpu:0; ") == (Rule("name:a=b", "cpu:0"),)
