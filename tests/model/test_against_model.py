"""The engine against the reference model: random calls over several connections and processes, with
restarts and kills in between; every result and, now and then, every queue is compared.

A failure prints its seed and a short list of operations that shows it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from generator import Generator
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from runner import Difference, Run, explore
from workers_fixture import WorkerForker

RUN_STEPS = 2000  # operations on one queue manager
SEED = int(os.environ.get("SEED", "20240229"))
STEPS = int(os.environ.get("STEPS", "10000"))
SECONDS_A_STEP = 0.05  # many times what one takes, on a slow and busy machine too
SHARE_OF_ZOS = 5  # every fifth run is on platform z/OS


@pytest.fixture(scope="module")
def forker() -> Iterator[WorkerForker]:
    made = WorkerForker()
    yield made
    made.close()


@pytest.mark.timeout(600 + STEPS * SECONDS_A_STEP)
def test_engine_and_model_agree_on_random_calls(forker: WorkerForker) -> None:
    done, seed = 0, SEED
    while done < STEPS:
        zos = (seed - SEED) % SHARE_OF_ZOS == SHARE_OF_ZOS - 1
        done += explore(forker, seed, min(RUN_STEPS, STEPS), "zos" if zos else "unix")
        seed += 1
    print(f"{done} operations, seeds {SEED} to {seed - 1}")


class Machine(RuleBasedStateMachine):
    """The same operations, drawn and shrunk by hypothesis."""

    forker: WorkerForker

    def __init__(self) -> None:
        super().__init__()
        self.machine = Run(self.forker)

    @rule(rng=st.randoms(use_true_random=False))
    def call(self, rng: random.Random) -> None:
        generator = Generator(rng, self.machine.model)
        generator.numbers = len(self.machine.history) * 10
        for op in generator.next(sorted(self.machine.workers.by_number)):
            self.machine.apply(op)

    def teardown(self) -> None:
        try:
            self.machine.compare_dumps()
        finally:
            self.machine.close()


def test_engine_and_model_agree_on_calls_that_hypothesis_draws(forker: WorkerForker) -> None:
    Machine.forker = forker
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=8,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_difference_is_reported_with_a_short_list_of_operations(
    forker: WorkerForker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness finds a fault: a model that takes 8 for the highest priority."""
    import model_put

    monkeypatch.setattr(model_put, "MAX_PRIORITY", 8)
    with pytest.raises(Difference, match="operations show it"):
        for seed in range(3):
            explore(forker, seed, 1000)
