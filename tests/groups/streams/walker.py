"""Random members that join, run tasks, stop and return, and a check of the tasks' owners."""

from collections import Counter

from barnabas.groups.streams.states import GroupState
from tests.groups.streams.machine import Client, World

Task = tuple[str, int]

PROCESSES = 3
ROUNDS = 60


class Runner(Client):
    """A member on its own machine. It runs a task that it has to revoke until it confirms that it does not."""

    def __init__(self, index: int) -> None:
        super().__init__(f"m{index}")
        self.process = f"p{index % PROCESSES}"
        self.is_in = False
        self.running: set[Task] = set()

    @property
    def active_tasks(self) -> set[Task]:
        return {(subtopology, each) for subtopology, partitions in self.tasks[0].items() for each in partitions}


class Walker:
    def __init__(self, world: World, members: int) -> None:
        self.world = world
        self.runners = [Runner(index) for index in range(members)]
        world.clients = {runner.name: runner for runner in self.runners}
        for line in (
            "topic t 3",
            "subtopology 0 from=t write=r",
            "subtopology 1 read=r keep=c",
        ):
            world.command(line)
        self.size = 3

    def do(self, verb: str, index: int) -> None:
        getattr(self, verb)(self.runners[index % len(self.runners)])
        self.judge()

    # ------------------------------------------------------------- what may happen

    def join(self, runner: Runner) -> None:
        runner.is_in, runner.running = False, set()
        self.heed(runner, self.world.command(f"join {runner.name} process={runner.process}"))

    def beat(self, runner: Runner) -> None:
        if runner.is_in:
            self.heed(runner, self.world.command(f"beat {runner.name}"))

    def ack(self, runner: Runner) -> None:
        """Makes the member revoke its tasks, and confirm it."""
        if runner.is_in:
            runner.running = runner.active_tasks
            self.heed(runner, self.world.command(f"ack {runner.name}"))

    def lose(self, runner: Runner) -> None:
        """Loses the response; the member repeats the request."""
        if runner.is_in:
            epoch, tasks = runner.epoch, runner.tasks
            self.world.command(f"beat {runner.name}")
            runner.epoch, runner.tasks = epoch, tasks
            self.ack(runner)

    def leave(self, runner: Runner) -> None:
        if runner.is_in:
            runner.running = set()
            active_tasks = self.world.command(f"leave {runner.name}")
            runner.is_in = "epoch -1" not in active_tasks and "UNKNOWN" not in active_tasks

    def wait(self, runner: Runner) -> None:
        """Advances the clock: enough for rebalance timeouts, or session timeouts."""
        self.world.command("advance 8s")

    def restart(self, runner: Runner) -> None:
        self.world.command("restart")

    def trouble(self, runner: Runner) -> None:
        self.world.command("log fine" if self.world.is_broken else "log broken")

    def grow(self, runner: Runner) -> None:
        """Adds partitions to the source topic, and to the internal topics."""
        self.size = self.size % 5 + 1
        for name in "trc":
            self.world.command(f"topic {name} {self.size}")

    def copy(self, runner: Runner) -> None:
        replicas = 1 - self.world.settings["streams.num.standby.replicas"]
        self.world.command(f"config num.standby.replicas={replicas}")

    def heed(self, runner: Runner, active_tasks: str) -> None:
        if f"{runner.name}: epoch" in active_tasks:
            runner.is_in = True
            runner.running |= runner.active_tasks
        elif (
            "FENCED_MEMBER_EPOCH" in active_tasks
            or "UNKNOWN_MEMBER_ID" in active_tasks
            or "GROUP_ID_NOT_FOUND" in active_tasks
        ):
            runner.is_in, runner.running, runner.tasks = False, set(), ({}, {}, {})

    # ------------------------------------------------------------- what must hold

    def judge(self) -> None:
        """Checks that no active task has two members, and no process has a task in two roles."""
        group = self.world.group
        members = {} if group is None else group.members
        running = Counter(task for each in self.runners if each.name in members for task in each.running)
        assert all(count == 1 for count in running.values()), running
        held = Counter(
            (member.process_id, subtopology, each)
            for member in members.values()
            for part in (member.assigned, member.revoking)
            for role in part
            for subtopology, partitions in role.items()
            for each in partitions
        )
        assert all(count == 1 for count in held.values()), held

    def settle(self, living: set[int]) -> None:
        """Kills all but these members, and checks that every task runs once."""
        self.world.command("log fine")
        chosen = [self.runners[index] for index in sorted(living) if index < len(self.runners)]
        for runner in self.runners:
            if runner not in chosen:
                self.leave(runner)
        for _ in range(ROUNDS):
            for runner in chosen:
                (self.ack if runner.is_in else self.join)(runner)
            self.judge()
            group = self.world.group
            if (
                group is not None
                and group.state is GroupState.STABLE
                and all(runner.is_in and runner.running == runner.active_tasks for runner in chosen)
            ):
                break
            self.world.clock.advance(1)
        group = self.world.group
        assert group is not None and group.state is GroupState.STABLE, group and group.state
        assert set(group.members) == {runner.name for runner in chosen}
        every = Counter(task for runner in chosen for task in runner.running)
        wanted = {(subtopology, each) for subtopology in "01" for each in range(self.size)}
        assert every == Counter(wanted)
        if not self.world.settings["streams.num.standby.replicas"]:
            shares = [len(runner.running) for runner in chosen]
            assert max(shares) <= -(-len(wanted) // len(chosen)), shares
        self.world.command("restart")
