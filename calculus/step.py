"""The one rule of the semantics, E-FireQueue: a queue fires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from calculus.state import Configuration

if TYPE_CHECKING:
    from calculus.program import Consumer, Firing, Op, Program, Value


class NotEligible(ValueError):  # noqa: N818 - says what the queue is
    """The queue that should fire is empty or has no consumer."""


class WrongFiring(TypeError):  # noqa: N818 - says what the function returned
    """A function returned a firing that does not fit its operator: a mistake of whoever bound it."""


@frozen
class Event:
    """One firing of a trace: queue, operator, the item popped, what was read, pushed and written."""

    queue: str
    op: Op
    item: Value
    read: tuple[Value, ...]
    pushed: tuple[tuple[Value, ...], ...]
    written: tuple[Value, ...]

    def __str__(self) -> str:
        """The event on one line, by the names of its queues and variables."""
        said = [f"{self.queue} -> {self.op.function}({self.item!r})"]
        said += [f"${name} = {read!r}" for name, read in zip(self.op.reads, self.read, strict=True)]
        said += [
            f"{name} += {list(got)!r}" for name, got in zip(self.op.outs, self.pushed, strict=True) if got
        ]
        said += [f"${name} := {now!r}" for name, now in zip(self.op.writes, self.written, strict=True)]
        return "; ".join(said)


def eligible(program: Program, configuration: Configuration) -> tuple[str, ...]:
    """The queues that may fire: those that hold an item and have a consumer, in the order of the wiring."""
    queues = configuration.queues
    return tuple([c.queue for c in program.wiring.consumers if queues[c.position]])


def step(program: Program, configuration: Configuration, queue: str) -> Configuration:
    """The configuration after `queue` fires.

    Raises: Fault if the firing faults; NotEligible if the queue cannot fire; WrongFiring if the function
    misbehaves.

    Paper: River §2 (the loop of an execution), Brooklet rule E-FireQueue.
    """
    consumer = _consumer(program, configuration, queue)
    return _after(consumer, configuration, _firing(consumer, configuration))


def fire(program: Program, configuration: Configuration, queue: str) -> tuple[Event, Configuration]:
    """As `step`, with a record of what happened."""
    consumer = _consumer(program, configuration, queue)
    firing = _firing(consumer, configuration)
    event = Event(
        queue=queue,
        op=consumer.op,
        item=configuration.queues[consumer.position][0],
        read=_read(consumer, configuration),
        pushed=firing.pushed,
        written=firing.written,
    )
    return event, _after(consumer, configuration, firing)


def _consumer(program: Program, configuration: Configuration, queue: str) -> Consumer:
    """The operator that `queue` feeds, if the queue may fire."""
    consumer = program.wiring.by_queue.get(queue)
    if consumer is None or not configuration.queues[consumer.position]:
        reason = "has no consumer" if consumer is None else "is empty"
        message = f"queue `{queue}` is not eligible: it {reason}"
        raise NotEligible(message)
    return consumer


def _read(consumer: Consumer, configuration: Configuration) -> tuple[Value, ...]:
    variables = configuration.variables
    return tuple([variables[position] for position in consumer.reads])


def _firing(consumer: Consumer, configuration: Configuration) -> Firing:
    """F(f)(d, i, V(v*)), checked against the shape of the operator."""
    item = configuration.queues[consumer.position][0]
    firing = consumer.function(item, consumer.port, _read(consumer, configuration))
    if len(firing.pushed) != len(consumer.outs) or len(firing.written) != len(consumer.writes):
        message = (
            f"`{consumer.op}` got {len(firing.pushed)} sequences and {len(firing.written)} values to write"
        )
        raise WrongFiring(message)
    return firing


def _after(consumer: Consumer, configuration: Configuration, firing: Firing) -> Configuration:
    """Pop the item, push `b'*` at the tails, write `d'*`."""
    queues = list(configuration.queues)
    queues[consumer.position] = queues[consumer.position][1:]
    for position, pushed in zip(consumer.outs, firing.pushed, strict=True):
        if pushed:
            queues[position] += pushed
    if not consumer.writes:
        return Configuration(tuple(queues), configuration.variables)
    variables = list(configuration.variables)
    for position, written in zip(consumer.writes, firing.written, strict=True):
        variables[position] = written
    return Configuration(tuple(queues), tuple(variables))
