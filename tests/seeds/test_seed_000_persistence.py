"""Seed 000 (000_9f954e1ba04d3a66.txt): MQMD Persistence, an older C edition.

One test a sentence that states a rule, numbered in the order of the document; what each demands is
in persistence_rules.py.

An older edition: what later ones add (the queues that may hold persistent messages, AMQ9407) is in
test_seed_002_persistence_newest.py. Where they differ the newest counts; "usually all instances
have the same value" is older wording for what 002 says at length.
"""

from __future__ import annotations

from naming_fixture import C
from persistence_rules import PersistenceRules

NAMING = C


def test_01_the_field_says_whether_a_message_survives(rules: PersistenceRules) -> None:
    """Seed 000, 1: what the field is about."""
    rules.field_says_what_survives()


def test_02_mqput_and_mqput1_take_three_values(rules: PersistenceRules) -> None:
    """Seed 000, 2: the values that MQPUT and MQPUT1 take."""
    rules.put_takes_three_values()


def test_03_a_persistent_message_survives_failure_and_restart(rules: PersistenceRules) -> None:
    """Seed 000, 3: persistent: survives failures and restarts."""
    rules.persistent_survives()


def test_04_it_is_preserved_from_the_commit_of_its_put(rules: PersistenceRules) -> None:
    """Seed 000, 4: preserved once put and committed."""
    rules.stored_from_commit_of_the_put()


def test_05_it_remains_until_the_commit_of_its_get(rules: PersistenceRules) -> None:
    """Seed 000, 5: remains until got and committed."""
    rules.kept_until_commit_of_the_get()


def test_06_a_remote_message_is_held_by_this_queue_manager(rules: PersistenceRules) -> None:
    """Seed 000, 6: store and forward to a remote queue."""
    rules.first_hop_keeps()


def test_07_temporary_dynamic_queues_refuse_persistent_messages(rules: PersistenceRules) -> None:
    """Seed 000, 7: not on temporary dynamic queues."""
    rules.temporary_dynamic_refuses()


def test_08_shared_queues_at_level_two_or_below_refuse_them(rules: PersistenceRules) -> None:
    """Seed 000, 8: not on shared queues: CFLEVEL(2) or below."""
    rules.structures_of_low_level_refuse()


def test_09_shared_queues_without_recovery_refuse_them(rules: PersistenceRules) -> None:
    """Seed 000, 9: not on shared queues: RECOVER(NO)."""
    rules.structures_without_recovery_refuse()


def test_10_others_do_not_usually_survive(rules: PersistenceRules) -> None:
    """Seed 000, 10: not persistent: does not usually survive."""
    rules.not_persistent_is_lost()


def test_11_even_an_intact_copy_on_storage_is_discarded(rules: PersistenceRules) -> None:
    """Seed 000, 11: not persistent: an intact copy on storage."""
    rules.discarded_though_intact_on_storage()


def test_12_npmclass_high_survives_an_orderly_restart(rules: PersistenceRules) -> None:
    """Seed 000, 12: NPMCLASS(HIGH)."""
    rules.high_class_survives_an_orderly_end()


def test_13_on_shared_queues_they_survive_restarts(rules: PersistenceRules) -> None:
    """Seed 000, 13: not persistent on shared queues: restarts."""
    rules.shared_survives_restarts()


def test_14_on_shared_queues_they_die_with_the_structure(rules: PersistenceRules) -> None:
    """Seed 000, 14: not persistent on shared queues: failure of the structure."""
    rules.shared_is_lost_with_its_structure()


def test_15_a_cluster_queue_takes_the_value_of_the_instance(rules: PersistenceRules) -> None:
    """Seed 000, 15: default, cluster queue: from the instance."""
    rules.cluster_takes_the_instances_value()


def test_16_instances_of_a_cluster_queue_may_differ(rules: PersistenceRules) -> None:
    """Seed 000, 16: cluster: instances usually agree, need not."""
    rules.cluster_instances_agree_usually()


def test_17_a_cluster_queues_value_is_copied_when_placed(rules: PersistenceRules) -> None:
    """Seed 000, 17: cluster: copied when placed on the destination queue."""
    rules.cluster_copies_when_placed()


def test_18_a_later_change_at_the_destination_is_without_effect(rules: PersistenceRules) -> None:
    """Seed 000, 18: cluster: later changes."""
    rules.cluster_later_change_is_without_effect()


def test_19_other_queues_take_the_local_definition_even_if_remote(rules: PersistenceRules) -> None:
    """Seed 000, 19: default, no cluster queue: from the local definition."""
    rules.local_definition_counts_for_remote_queues()


def test_20_the_first_definition_in_the_path_decides(rules: PersistenceRules) -> None:
    """Seed 000, 20: several definitions: the first in the path."""
    rules.first_definition_decides()


def test_21_first_definition_an_alias_queue(rules: PersistenceRules) -> None:
    """Seed 000, 21: first definition: an alias queue."""
    rules.kind_decides("alias")


def test_22_first_definition_a_local_queue(rules: PersistenceRules) -> None:
    """Seed 000, 22: first definition: a local queue."""
    rules.kind_decides("local")


def test_23_first_definition_a_local_definition_of_a_remote_queue(rules: PersistenceRules) -> None:
    """Seed 000, 23: first definition: a local definition of a remote queue."""
    rules.kind_decides("remote")


def test_24_first_definition_a_queue_manager_alias(rules: PersistenceRules) -> None:
    """Seed 000, 24: first definition: a queue-manager alias."""
    rules.kind_decides("manager alias")


def test_25_first_definition_a_transmission_queue(rules: PersistenceRules) -> None:
    """Seed 000, 25: first definition: a transmission queue, named or by DefXmitQName."""
    rules.kind_decides("transmission")


def test_26_the_value_is_copied_when_the_message_is_put(rules: PersistenceRules) -> None:
    """Seed 000, 26: copied when put."""
    rules.copied_when_put()


def test_27_a_later_change_is_without_effect(rules: PersistenceRules) -> None:
    """Seed 000, 27: later changes."""
    rules.later_change_is_without_effect()


def test_28_a_cluster_queue_takes_the_value_of_the_instance_again(rules: PersistenceRules) -> None:
    """Seed 000, 28: cluster queue: from the instance, said again at the end of the list."""
    rules.cluster_takes_the_instances_value()


def test_29_instances_of_a_cluster_queue_may_differ_again(rules: PersistenceRules) -> None:
    """Seed 000, 29: cluster: instances usually agree, said again."""
    rules.cluster_instances_agree_usually()


def test_30_both_kinds_lie_on_one_queue(rules: PersistenceRules) -> None:
    """Seed 000, 30: both kinds on one queue."""
    rules.both_kinds_share_a_queue()


def test_31_a_reply_has_the_persistence_of_its_request(rules: PersistenceRules) -> None:
    """Seed 000, 31: replies."""
    rules.reply_takes_the_requests()


def test_32_mqget_returns_one_of_two_values(rules: PersistenceRules) -> None:
    """Seed 000, 32: what MQGET returns."""
    rules.get_returns_one_of_two()


def test_33_output_of_mqget_and_input_of_mqput(rules: PersistenceRules) -> None:
    """Seed 000, 33: output of MQGET, input of MQPUT and MQPUT1."""
    rules.output_of_get_input_of_put()


def test_34_the_initial_value(rules: PersistenceRules) -> None:
    """Seed 000, 34: initial value."""
    rules.initial_value()
