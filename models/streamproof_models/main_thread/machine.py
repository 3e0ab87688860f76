"""The main thread of a JobMaster: deployment and restart sets block it, and heartbeats wait meanwhile.

Flink runs everything of a JobMaster in the main thread of its RPC endpoint: `DefaultExecutionDeployer.deployAll` makes the
deployment descriptors of all tasks in one runnable, the failover strategy computes the restart set in another.
`HeartbeatManagerSenderImpl` sends heartbeat requests from there; each TaskExecutor answers. Both sides have a
`HeartbeatMonitorImpl`: that of the JobMaster is scheduled in the main thread, too, and reset by an answer; that of the
TaskExecutor is reset by a request. A time-out on either side ends the connection; the TaskExecutor fails its tasks and
registers again, the JobMaster computes the restart set and deploys again.

Time is counted in ticks, one for each unit of work: a descriptor made, or a task (or a pair of tasks) visited for the
restart set. The job is two vertices with an all-to-all edge. With groups and cached descriptors (Flink 1.14) a deployment
makes as many descriptors as a vertex has tasks, and a restart visits each task once; edge by edge (1.12) both cost a unit
for each pair. The heartbeat time-out is made for the grouped work: an interval, a deployment, a restart set, a reserve.

Abstractions: messages take no time; a deployment goes to the end of the mailbox, the order of other waiting messages is
left open; the tasks of all executors are one region; a TaskExecutor is never busy; slots are those of `slot_pool`.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, measure, require


class MainThread(Model):
    """A JobMaster with its main thread, and TaskExecutors that crash or are taken for dead."""

    name = "main_thread"
    check_deadlock = False
    """Time goes on."""
    sizes = {
        "small": {},
        "medium": {"executors": 4, "crashes": 2},
        "large": {"executors": 4, "parallelism": 6, "interval": 3, "crashes": 3},
    }

    executors: int = 2
    """Number of TaskExecutors."""
    parallelism: int = 4
    """Tasks of each of the two vertices."""
    interval: int = 1
    """Ticks between heartbeat requests."""
    reserve: int = 1
    """Ticks by which the heartbeat time-out exceeds an interval, a deployment and a restart set, by groups."""
    crashes: int = 1
    """Number of TaskExecutors that crash; the job needs the others only."""
    hangs: int = 1
    """Whether the main thread may hang without end."""

    limits = {
        "executors": (1, None), "parallelism": (1, None), "interval": (1, None), "reserve": (0, None),
        "crashes": (0, None), "hangs": (0, 1),
    }  # fmt: skip

    undisturbed = False
    """Whether requests and answers never wait; variants change this."""

    def setup(self):
        """Units of work, the time-out, and the number of executors that the job needs."""
        self.deployment = self.deployment_work()
        self.restart = self.restart_work()
        self.timeout = self.least_timeout() + self.reserve
        self.needed = max(1, self.executors - self.crashes)

    def least_timeout(self):
        """An interval, and a deployment and a restart set by groups: they may follow one another without a request."""
        return self.interval + 3 * self.parallelism

    def deployment_work(self):
        """Descriptors made for one deployment: those of the group of all producers, once."""
        return self.parallelism

    def restart_work(self):
        """Tasks visited for the restart set."""
        return 2 * self.parallelism

    def state(self):
        """All executors are connected, and the job is to be deployed."""
        x = self.executors
        return State(
            # the TaskExecutors
            up=Array(x, Bool(init=True)),
            connected=Array(x, Bool(init=True)),
            quiet=Array(x, Range(0, self.timeout)),  # ticks since the last request
            runs=Array(x, Bool()),  # its tasks run
            # the JobMaster
            registered=Array(x, Bool(init=True)),
            silent=Array(x, Range(0, self.timeout)),  # ticks without an answer; at the limit, the time-out waits
            hosts=Array(x, Bool()),  # has the tasks
            chosen=Array(x, Bool()),  # gets the tasks of the deployment under way
            doing=Enum("NOTHING", "RESTARTING", "DEPLOYING"),
            work=Range(0, self.deployment + self.restart),  # units left
            hung=Bool(),
            # waiting messages
            since_request=Range(0, self.interval),  # at the limit, the next requests wait to be sent
            deploy_due=Bool(init=True),
            asked=Array(x, Bool()),  # a request to a TaskExecutor
            answered=Array(x, Bool()),
            lost=Array(x, Bool()),  # the TaskExecutor has ended the connection
            registering=Array(x, Bool()),
            # faults, and the number of failovers for properties
            crashes_left=Range(0, self.crashes, init=self.crashes),
            hangs_left=Range(0, self.hangs, init=self.hangs),
            failovers=Range(0, self.crashes + 1),
        )

    # --- time

    @action(fairness=WEAK)
    def tick(self, s):
        """A tick passes when nothing is left to do at once."""
        require(not self.is_urgent(s))
        if s.doing != "NOTHING" and not s.hung:
            s.work -= 1
        s.since_request = min(s.since_request + 1, self.interval)
        for x in range(self.executors):
            if s.registered[x]:
                self.wait_for_answer(s, x)
            if s.connected[x]:
                s.quiet[x] = min(s.quiet[x] + 1, self.timeout)

    def wait_for_answer(self, s, x):
        """The monitor of the JobMaster; an answer that waits cancels a time-out behind it."""
        if not s.answered[x]:
            s.silent[x] = min(s.silent[x] + 1, self.timeout)

    def is_urgent(self, s):
        """Whether something takes no time and is enabled."""
        return (
            any(s.asked)
            or any(self.has_missed(s, x) for x in range(self.executors))
            or (self.is_free(s) and (self.others_wait(s) or self.may_deploy(s)))
            or (self.hears(s) and self.heartbeats_wait(s))
            or self.is_done(s)
        )

    def is_free(self, s):
        """Whether the main thread takes the next message."""
        return s.doing == "NOTHING" and not s.hung

    def hears(self, s):
        """Whether requests are sent and answers received: by the main thread."""
        return self.is_free(s)

    def heartbeats_wait(self, s):
        """Whether requests are due, or answers have come."""
        return s.since_request == self.interval or any(s.answered)

    def others_wait(self, s):
        """Whether other messages wait than heartbeats and a deployment."""
        return any((s.lost[x] or s.registering[x]) or self.has_timed_out(s, x) for x in range(self.executors))

    # --- heartbeats

    @action(fairness=WEAK)
    def send_requests(self, s):
        """`HeartbeatManagerSenderImpl.run`: a request to each registered executor."""
        require(self.hears(s) and s.since_request == self.interval)
        s.since_request = 0
        for x in range(self.executors):
            s.asked[x] = s.registered[x] and s.up[x]

    @action(x="executors", fairness=WEAK)
    def answer(self, s, x):
        """`requestHeartbeat` at the TaskExecutor: it answers, unless it has ended the connection."""
        require(s.asked[x])
        s.asked[x] = False
        if s.connected[x]:
            s.quiet[x] = 0
            s.answered[x] = True

    @action(x="executors", fairness=WEAK)
    def receive_answer(self, s, x):
        """`receiveHeartbeat`: the time-out is scheduled anew, unless it has come before."""
        require(self.hears(s) and s.answered[x] and not self.has_timed_out(s, x))
        s.answered[x] = False
        s.silent[x] = 0

    def has_missed(self, s, x):
        """Whether a TaskExecutor has got no request for too long."""
        return s.connected[x] and s.quiet[x] == self.timeout

    @action(x="executors", fairness=WEAK)
    def miss(self, s, x):
        """`JobManagerHeartbeatListener.notifyHeartbeatTimeout`: it fails its tasks, and registers again."""
        require(self.has_missed(s, x))
        s.lost[x] = True
        self.end_connection(s, x)

    def end_connection(self, s, x):
        """The tasks fail; the TaskExecutor registers again."""
        s.connected[x] = False
        s.quiet[x] = 0
        s.runs[x] = False
        s.registering[x] = True

    def has_timed_out(self, s, x):
        """Whether the time-out of the JobMaster's monitor waits."""
        return s.registered[x] and s.silent[x] == self.timeout

    @action(x="executors", fairness=WEAK)
    def time_out(self, s, x):
        """`TaskManagerHeartbeatListener.notifyHeartbeatTimeout`."""
        require(self.is_free(s) and self.has_timed_out(s, x))
        self.disconnect(s, x)

    @action(x="executors", fairness=WEAK)
    def receive_lost(self, s, x):
        """`disconnectTaskManager`, called by the TaskExecutor."""
        require(self.is_free(s) and s.lost[x])
        s.lost[x] = False
        self.disconnect(s, x)

    def disconnect(self, s, x):
        """The JobMaster ends the connection; if the executor has tasks, they fail."""
        s.registered[x] = False
        s.silent[x] = 0
        s.answered[x] = False
        s.asked[x] = False
        s.lost[x] = False
        self.forget_choice(s, x)
        if s.connected[x]:
            self.end_connection(s, x)
        if s.hosts[x]:
            self.fail_over(s)

    def forget_choice(self, s, x):
        """A deployment under way has lost an executor."""
        s.chosen[x] = False

    @action(x="executors", fairness=WEAK)
    def register(self, s, x):
        """`registerTaskManager`: the executor offers its slots, and a waiting deployment has another one."""
        require(self.is_free(s) and s.registering[x] and not s.lost[x])
        s.registering[x] = False
        s.registered[x] = True
        s.silent[x] = 0
        s.connected[x] = True
        s.quiet[x] = 0

    # --- failover and deployment

    def fail_over(self, s):
        """All tasks are cancelled; the main thread computes the restart set."""
        s.failovers = min(s.failovers + 1, self.crashes + 1)
        for x in range(self.executors):
            s.hosts[x] = False
            s.chosen[x] = False
            s.runs[x] = False
        s.doing = "RESTARTING"
        s.work = self.restart

    def may_deploy(self, s):
        """Whether a deployment is next: it is behind all other messages, and there are enough executors."""
        waits = self.others_wait(s) or self.heartbeats_wait(s)
        return s.deploy_due and s.doing == "NOTHING" and not waits and sum(int(r) for r in s.registered) >= self.needed

    @action(fairness=WEAK)
    def deploy(self, s):
        """`allocateSlotsAndDeploy`: executors are chosen, and the main thread makes the descriptors of all tasks."""
        require(self.is_free(s) and self.may_deploy(s))
        self.begin_deployment(s)

    def begin_deployment(self, s):
        """On the first executors that are registered."""
        s.deploy_due = False
        left = self.needed
        for x in range(self.executors):
            s.chosen[x] = s.registered[x] and left > 0
            left -= int(s.chosen[x])
        s.doing = "DEPLOYING"
        s.work = self.deployment

    def is_done(self, s):
        """Whether the work of the main thread is done."""
        return s.doing != "NOTHING" and s.work == 0 and not s.hung

    @action(fairness=WEAK)
    def finish_work(self, s):
        """The restart set is known, and the tasks are to be deployed; or all tasks are submitted."""
        require(self.is_done(s))
        if s.doing == "RESTARTING":
            self.after_restart(s)
        else:
            s.doing = "NOTHING"
            if self.is_current(s):
                for x in range(self.executors):
                    s.hosts[x] = s.chosen[x]
                    s.runs[x] = s.chosen[x] and s.connected[x]
            else:
                s.deploy_due = True
            s.chosen = [False] * self.executors

    def after_restart(self, s):
        """The deployment is a message of its own."""
        s.doing = "NOTHING"
        s.deploy_due = True

    def is_current(self, s):
        """Whether all chosen executors are still registered."""
        return sum(int(c) for c in s.chosen) == self.needed

    # --- faults

    @action(x="executors")
    def crash(self, s, x):
        """A TaskExecutor dies; a last answer may be on its way."""
        require(s.up[x] and s.crashes_left > 0)
        s.crashes_left -= 1
        s.up[x] = False
        s.connected[x] = False
        s.quiet[x] = 0
        s.runs[x] = False
        s.asked[x] = False
        s.registering[x] = False

    @action
    def hang(self, s):
        """The main thread does nothing any more."""
        require(s.hangs_left > 0)
        s.hangs_left -= 1
        s.hung = True

    @measure
    def longest_silence(self, s):
        """Ticks without a heartbeat, of an executor that is up, while the main thread does not hang."""
        return max((max(s.silent[x], s.quiet[x]) if s.up[x] and not s.hung else 0) for x in range(self.executors))
