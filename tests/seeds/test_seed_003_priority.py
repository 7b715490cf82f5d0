"""Seed 003 (003_970915692781b858.txt): MQMD Priority.

One test a sentence that states a rule, numbered in the order of the document; what each demands is
in priority_rules.py. The sentence that gives the reason of the z/OS rule (tests for complete
groups) states no rule.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from priority_rules import PriorityRules

from qmgr_fixture import QmgrFixture


@pytest.fixture
def rules(qmgr: QmgrFixture, ask_zos: Callable[[], QmgrFixture]) -> PriorityRules:
    return PriorityRules(qmgr, ask_zos)


def test_01_mqput_and_mqput1_take_zero_and_above(rules: PriorityRules) -> None:
    """Seed 003, 1: zero or more on MQPUT and MQPUT1."""
    rules.zero_and_above()


def test_02_zero_is_the_lowest(rules: PriorityRules) -> None:
    """Seed 003, 2: zero is lowest."""
    rules.zero_is_lowest()


def test_03_the_special_value_is_taken(rules: PriorityRules) -> None:
    """Seed 003, 3: the special value."""
    rules.default_is_a_value_too()


def test_04_a_cluster_queue_takes_the_value_of_the_instance(rules: PriorityRules) -> None:
    """Seed 003, 4: default, cluster queue: from the instance."""
    rules.cluster_takes_the_instances_value()


def test_05_instances_that_differ_are_used_unpredictably(rules: PriorityRules) -> None:
    """Seed 003, 5: cluster: instances differ, one is picked."""
    rules.cluster_differing_is_unpredictable()


def test_06_instances_that_agree_cause_no_message(rules: PriorityRules) -> None:
    """Seed 003, 6: cluster: set the same value on all instances."""
    rules.cluster_should_agree()


def test_07_instances_that_differ_are_logged_as_amq9407(rules: PriorityRules) -> None:
    """Seed 003, 7: cluster: AMQ9407."""
    rules.cluster_conflict_is_logged()


def test_08_a_cluster_queues_value_is_copied_when_placed(rules: PriorityRules) -> None:
    """Seed 003, 8: cluster: copied when placed on the destination queue."""
    rules.cluster_copies_when_placed()


def test_09_a_later_change_at_the_destination_is_without_effect(rules: PriorityRules) -> None:
    """Seed 003, 9: cluster: later changes."""
    rules.cluster_later_change_is_without_effect()


def test_10_other_queues_take_the_local_definition_even_if_remote(rules: PriorityRules) -> None:
    """Seed 003, 10: default, no cluster queue: from the local definition."""
    rules.local_definition_counts_for_remote_queues()


def test_11_the_first_definition_in_the_path_decides(rules: PriorityRules) -> None:
    """Seed 003, 11: several definitions: the first in the path."""
    rules.first_definition_decides()


def test_12_first_definition_an_alias_queue(rules: PriorityRules) -> None:
    """Seed 003, 12: first definition: an alias queue."""
    rules.kind_decides("alias")


def test_13_first_definition_a_local_queue(rules: PriorityRules) -> None:
    """Seed 003, 13: first definition: a local queue."""
    rules.kind_decides("local")


def test_14_first_definition_a_local_definition_of_a_remote_queue(rules: PriorityRules) -> None:
    """Seed 003, 14: first definition: a local definition of a remote queue."""
    rules.kind_decides("remote")


def test_15_first_definition_a_queue_manager_alias(rules: PriorityRules) -> None:
    """Seed 003, 15: first definition: a queue-manager alias."""
    rules.kind_decides("manager alias")


def test_16_first_definition_a_transmission_queue(rules: PriorityRules) -> None:
    """Seed 003, 16: first definition: a transmission queue, named or by DefXmitQName."""
    rules.kind_decides("transmission")


def test_17_the_value_is_copied_when_the_message_is_put(rules: PriorityRules) -> None:
    """Seed 003, 17: copied when put."""
    rules.copied_when_put()


def test_18_a_later_change_is_without_effect(rules: PriorityRules) -> None:
    """Seed 003, 18: later changes."""
    rules.later_change_is_without_effect()


def test_19_mqget_returns_zero_or_more(rules: PriorityRules) -> None:
    """Seed 003, 19: MQGET returns zero or more."""
    rules.get_returns_zero_or_more()


def test_20_mqget_never_returns_the_special_value(rules: PriorityRules) -> None:
    """Seed 003, 20: MQGET never returns the special value."""
    rules.get_never_returns_the_default()


def test_21_a_cluster_queue_takes_the_value_of_the_instance_again(rules: PriorityRules) -> None:
    """Seed 003, 21: cluster queue: from the instance, said again at the end of the list."""
    rules.cluster_takes_the_instances_value()


def test_22_above_the_maximum_is_accepted(rules: PriorityRules) -> None:
    """Seed 003, 22: above the maximum: accepted."""
    rules.above_the_maximum_is_accepted()


def test_23_the_maximum_is_an_attribute_of_the_queue_manager(rules: PriorityRules) -> None:
    """Seed 003, 23: the maximum: MaxPriority."""
    rules.maximum_is_inquired()


def test_24_above_the_maximum_is_placed_at_it(rules: PriorityRules) -> None:
    """Seed 003, 24: above the maximum: placed at it."""
    rules.placed_at_the_maximum()


def test_25_above_the_maximum_is_warned_of(rules: PriorityRules) -> None:
    """Seed 003, 25: above the maximum: MQCC_WARNING and 2049."""
    rules.warned_of()


def test_26_above_the_maximum_the_field_is_kept(rules: PriorityRules) -> None:
    """Seed 003, 26: above the maximum: the field is kept."""
    rules.field_is_kept()


def test_27_on_zos_the_first_of_a_group_may_be_treated_differently(
    rules: PriorityRules,
) -> None:
    """Seed 003, 27: z/OS, MsgSeqNumber 1, by priority, index by GroupId."""
    rules.first_of_group_is_treated_differently()


def test_28_on_zos_each_condition_is_needed(rules: PriorityRules) -> None:
    """Seed 003, 28: the same sentence: each of its conditions is needed."""
    rules.group_conditions()


def test_29_on_zos_priorities_0_and_1_count_as_2(rules: PriorityRules) -> None:
    """Seed 003, 29: z/OS: 0 or 1 is processed as 2."""
    rules.low_priorities_count_as_two()


def test_30_a_reply_has_the_priority_of_its_request(rules: PriorityRules) -> None:
    """Seed 003, 30: replies."""
    rules.reply_takes_the_requests()


def test_31_the_special_value_allows_tuning(rules: PriorityRules) -> None:
    """Seed 003, 31: otherwise: tuning without changing the application."""
    rules.default_allows_tuning()


def test_32_output_of_mqget_and_input_of_mqput(rules: PriorityRules) -> None:
    """Seed 003, 32: output of MQGET, input of MQPUT and MQPUT1."""
    rules.output_of_get_input_of_put()


def test_33_the_initial_value(rules: PriorityRules) -> None:
    """Seed 003, 33: initial value."""
    rules.initial_value()
