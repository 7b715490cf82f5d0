"""Seed 001 (001_268fcf9ee667bc8f.txt): MDPER, the field in ILE RPG.

One test a sentence that states a rule, numbered in the order of the document; what each demands is
in persistence_rules.py.

Everything here is said in RPG names, through penstock.rpg. An older edition: it knows no
NPMCLASS, says "level 3" of recoverable structures where 4 and 5 follow, and "should normally" of
replies; the list after "This could be:" is lost in our copy, its kinds are those of the others.
"""

from __future__ import annotations

import paths
from naming_fixture import RPG
from persistence_rules import PersistenceRules

NAMING = RPG


def test_01_the_field_says_whether_a_message_survives(rules: PersistenceRules) -> None:
    """Seed 001, 1: what the field is about."""
    rules.field_says_what_survives()


def test_02_mqput_and_mqput1_take_three_values(rules: PersistenceRules) -> None:
    """Seed 001, 2: the values that MQPUT and MQPUT1 take."""
    rules.put_takes_three_values()


def test_03_a_persistent_message_survives_failure_and_restart(rules: PersistenceRules) -> None:
    """Seed 001, 3: persistent: survives failures and restarts."""
    rules.persistent_survives()


def test_04_it_is_preserved_from_the_commit_of_its_put(rules: PersistenceRules) -> None:
    """Seed 001, 4: preserved once put and committed."""
    rules.stored_from_commit_of_the_put()


def test_05_it_remains_until_the_commit_of_its_get(rules: PersistenceRules) -> None:
    """Seed 001, 5: remains until got and committed."""
    rules.kept_until_commit_of_the_get()


def test_06_a_remote_message_is_held_by_this_queue_manager(rules: PersistenceRules) -> None:
    """Seed 001, 6: store and forward to a remote queue."""
    rules.first_hop_keeps()


def test_07_temporary_dynamic_queues_refuse_persistent_messages(rules: PersistenceRules) -> None:
    """Seed 001, 7: not on temporary dynamic queues."""
    rules.temporary_dynamic_refuses()


def test_08_shared_queues_below_level_three_refuse_them(rules: PersistenceRules) -> None:
    """Seed 001, 8: not on shared queues: level below three."""
    rules.structures_of_low_level_refuse()


def test_09_shared_queues_without_recovery_refuse_them(rules: PersistenceRules) -> None:
    """Seed 001, 9: not on shared queues: structure not recoverable."""
    rules.structures_without_recovery_refuse()


def test_10_permanent_dynamic_queues_take_them(rules: PersistenceRules) -> None:
    """Seed 001, 10: may be placed on permanent dynamic queues."""
    rules.permanent_dynamic_takes()


def test_11_predefined_queues_take_them(rules: PersistenceRules) -> None:
    """Seed 001, 11: may be placed on predefined queues."""
    rules.predefined_takes()


def test_12_recoverable_shared_queues_take_them(rules: PersistenceRules) -> None:
    """Seed 001, 12: may be placed on recoverable shared queues of level three."""
    rules.recoverable_structures_take()


def test_13_others_do_not_usually_survive(rules: PersistenceRules) -> None:
    """Seed 001, 13: not persistent: does not usually survive."""
    rules.not_persistent_is_lost()


def test_14_even_an_intact_copy_on_storage_is_discarded(rules: PersistenceRules) -> None:
    """Seed 001, 14: not persistent: an intact copy on storage."""
    rules.discarded_though_intact_on_storage()


def test_15_on_shared_queues_they_survive_restarts(rules: PersistenceRules) -> None:
    """Seed 001, 15: not persistent on shared queues: restarts."""
    rules.shared_survives_restarts()


def test_16_on_shared_queues_they_die_with_the_structure(rules: PersistenceRules) -> None:
    """Seed 001, 16: not persistent on shared queues: failure of the structure."""
    rules.shared_is_lost_with_its_structure()


def test_17_a_cluster_queue_takes_the_value_of_the_instance(rules: PersistenceRules) -> None:
    """Seed 001, 17: default, cluster queue: from the instance."""
    rules.cluster_takes_the_instances_value()


def test_18_instances_of_a_cluster_queue_may_differ(rules: PersistenceRules) -> None:
    """Seed 001, 18: cluster: instances usually agree, need not."""
    rules.cluster_instances_agree_usually()


def test_19_a_cluster_queues_value_is_copied_when_placed(rules: PersistenceRules) -> None:
    """Seed 001, 19: cluster: copied when placed on the destination queue."""
    rules.cluster_copies_when_placed()


def test_20_a_later_change_at_the_destination_is_without_effect(rules: PersistenceRules) -> None:
    """Seed 001, 20: cluster: later changes."""
    rules.cluster_later_change_is_without_effect()


def test_21_other_queues_take_the_local_definition_even_if_remote(rules: PersistenceRules) -> None:
    """Seed 001, 21: default, no cluster queue: from the local definition."""
    rules.local_definition_counts_for_remote_queues()


def test_22_the_first_definition_in_the_path_decides(rules: PersistenceRules) -> None:
    """Seed 001, 22: several definitions: the first in the path."""
    rules.first_definition_decides()


def test_23_the_first_definition_may_be_of_every_kind(rules: PersistenceRules) -> None:
    """Seed 001, 23: the kinds of first definition (list lost in this edition)."""
    rules.kind_decides(*paths.KINDS)


def test_24_the_value_is_copied_when_the_message_is_put(rules: PersistenceRules) -> None:
    """Seed 001, 24: copied when put."""
    rules.copied_when_put()


def test_25_a_later_change_is_without_effect(rules: PersistenceRules) -> None:
    """Seed 001, 25: later changes."""
    rules.later_change_is_without_effect()


def test_26_both_kinds_lie_on_one_queue(rules: PersistenceRules) -> None:
    """Seed 001, 26: both kinds on one queue."""
    rules.both_kinds_share_a_queue()


def test_27_a_reply_has_the_persistence_of_its_request(rules: PersistenceRules) -> None:
    """Seed 001, 27: replies."""
    rules.reply_takes_the_requests()


def test_28_mqget_returns_one_of_two_values(rules: PersistenceRules) -> None:
    """Seed 001, 28: what MQGET returns."""
    rules.get_returns_one_of_two()


def test_29_output_of_mqget_and_input_of_mqput(rules: PersistenceRules) -> None:
    """Seed 001, 29: output of MQGET, input of MQPUT and MQPUT1."""
    rules.output_of_get_input_of_put()


def test_30_the_initial_value(rules: PersistenceRules) -> None:
    """Seed 001, 30: initial value."""
    rules.initial_value()
