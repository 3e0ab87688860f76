"""Offloaded task descriptors: a deployment has the key of a blob, which TaskExecutors fetch from the JobMaster.

Apache Flink, `blob.offload.minsize`: "Messages smaller than this are sent inline, larger ones are offloaded" to the blob
server. `regions` has the blobs of shuffle descriptors; here are those of whole descriptors, the connections by which they are
fetched, and the end of the job. Two deployments with the same descriptor share a blob; its key is made of its content. The
JobMaster deletes a blob when no deployment uses it. A TaskExecutor keeps those that it has used last, until its connection to
the JobMaster ends, with the job or before.

Abstractions: a request and its answer are one step; a failure ends deployments at once, on all TaskExecutors.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Option, Range, State, action, require, terminal


class TaskDescriptors(Model):
    """The deployments of a job whose descriptors are large."""

    name = "task_descriptors"
    sizes = {
        "small": {},
        "medium": {"deployments": 3, "failures": 2},
        "large": {"deployments": 3, "executors": 3, "contents": 3, "cache": 2},
    }
    instance_bounds = ("failures",)

    deployments: int = 2
    """Number of attempts that are deployed."""
    executors: int = 2
    """Number of TaskExecutors."""
    contents: int = 2
    """Number of different descriptors."""
    cache: int = 1
    """Blobs that a TaskExecutor keeps."""
    failures: int = 1
    """Number of failures of attempts, and of connections to TaskExecutors."""

    limits = {
        "deployments": (1, None),
        "executors": (1, None),
        "contents": (1, None),
        "cache": (1, None),
        "failures": (0, None),
    }

    def setup(self):
        """The deployments, TaskExecutors and keys."""
        self.every, self.keys = range(self.deployments), range(self.contents)

    def executors_of(self, d):
        """The TaskExecutors to which an attempt is deployed."""
        return range(self.executors)

    def state(self):
        """Nothing is deployed."""
        content, keys = Range(0, self.contents - 1), self.contents
        return State(
            is_over=Bool(),  # the job
            status=Array(self.deployments, Enum("NEW", "ACTIVE", "OVER")),
            content=Array(self.deployments, content),  # the descriptor of a deployment that is ACTIVE
            server=Array(keys, Option(content)),  # the blobs at the JobMaster, by key
            read=Array(self.executors, Array(self.deployments, Option(content))),  # what a TaskExecutor has read
            place=Array(self.executors, Array(keys, Range(0, self.cache + 1))),  # in its cache; 1: used last, 0: absent
            copy=Array(self.executors, Array(keys, content)),  # the blob in its cache
            failures_left=Range(0, self.failures, init=self.failures),
        )

    def key(self, s, d):
        """The key that the TaskExecutors of a deployment get."""
        return self.key_of(d, s.content[d])

    def key_of(self, d, c):
        """The key of a descriptor."""
        return c

    # --- the JobMaster

    @action(d="every", c="keys", fairness=WEAK)
    def deploy(self, s, d, c):
        """An attempt is deployed; its descriptor becomes a blob, unless there is one with this content."""
        require(s.status[d] == "NEW" and not s.is_over)
        s.status[d] = "ACTIVE"
        s.content[d] = c
        s.server[self.key_of(d, c)] = c

    @action(d="every", fairness=WEAK)
    def finish(self, s, d):
        """An attempt that was deployed everywhere has finished."""
        require(s.status[d] == "ACTIVE" and all(s.read[x][d] is not None for x in self.executors_of(d)))
        self.end(s, d)

    @action(d="every")
    def cancel(self, s, d):
        """An attempt has failed, wherever it is deployed, and has been stopped."""
        require(s.status[d] == "ACTIVE" and s.failures_left > 0)
        s.failures_left -= 1
        self.end(s, d)

    def end(self, s, d):
        """No TaskExecutor needs the descriptor for this attempt any more."""
        key = self.key(s, d)
        s.status[d] = "OVER"
        if self.is_unused(s, key):
            s.server[key] = None
        s.content[d] = 0
        for x in range(self.executors):
            s.read[x][d] = None

    def is_unused(self, s, key):
        """Whether a blob is to be deleted: no deployment uses it."""
        return not self.is_used(s, key)

    def is_used(self, s, key):
        """Whether a deployment uses a blob."""
        return any(s.status[d] == "ACTIVE" and self.key(s, d) == key for d in self.every)

    @action(fairness=WEAK)
    def end_job(self, s):
        """All attempts are over."""
        require(not s.is_over and all(s.status[d] == "OVER" for d in self.every))
        s.is_over = True

    # --- TaskExecutors

    @action(x="executors", d="every", fairness=WEAK)
    def load(self, s, x, d):
        """A TaskExecutor reads the descriptor of a deployment: from its cache, else from the JobMaster."""
        require(x in self.executors_of(d) and s.status[d] == "ACTIVE" and s.read[x][d] is None)
        key = self.key(s, d)
        if s.place[x][key] == 0:
            require(s.server[key] is not None)
            s.copy[x][key] = s.server[key]
            self.after_fetch(s, key)
        s.read[x][d] = s.copy[x][key]
        before = s.place[x][key]
        for k in self.keys:
            if k != key and s.place[x][k] > 0 and (before == 0 or s.place[x][k] < before):
                s.place[x][k] += 1
        s.place[x][key] = 1
        self.evict(s, x)

    def after_fetch(self, s, key):
        """The blob stays at the JobMaster."""

    def evict(self, s, x):
        """A full cache evicts the blob that was not used for the longest time."""
        for k in self.keys:
            if s.place[x][k] > self.cache:
                s.place[x][k] = 0
                s.copy[x][k] = 0

    @action(x="executors")
    def lose(self, s, x):
        """The connection to a TaskExecutor is lost, perhaps with its process: what it runs has failed, its cache is empty."""
        require(s.failures_left > 0 and not s.is_over)
        s.failures_left -= 1
        for d in self.every:
            if s.status[d] == "ACTIVE" and x in self.executors_of(d):
                self.end(s, d)
        self.after_loss(s, x)

    def after_loss(self, s, x):
        """Blobs go with the connection."""
        self.clear(s, x)

    @action(x="executors", fairness=WEAK)
    def drop(self, s, x):
        """With the end of the job a TaskExecutor loses its connection, and deletes the blobs."""
        require(s.is_over and any(s.place[x][k] > 0 for k in self.keys))
        self.clear(s, x)

    def clear(self, s, x):
        """A cache is empty."""
        for k in self.keys:
            s.place[x][k] = 0
            s.copy[x][k] = 0

    @terminal
    def over(self, s):
        """The job is over, and no TaskExecutor has a blob of it."""
        return s.is_over and all(s.place[x][k] == 0 for x in range(self.executors) for k in self.keys)


class DeletedWhenFetched(TaskDescriptors, variant="deleted-when-fetched"):
    """The JobMaster deletes a blob when a TaskExecutor has fetched it."""

    def after_fetch(self, s, key):
        """The others miss it."""
        s.server[key] = None


class DeletedWithFirst(TaskDescriptors, variant="deleted-with-first"):
    """The JobMaster deletes a blob with the first of the deployments that use it."""

    def is_unused(self, s, key):
        """It does not look at the others."""
        return True


class KeyedByRegion(TaskDescriptors, variant="keyed-by-region"):
    """The key of a blob names the region, and not the content."""

    def key_of(self, d, c):
        """All attempts are of one region."""
        return 0


class NoEviction(TaskDescriptors, variant="no-eviction"):
    """A TaskExecutor keeps every blob."""

    def evict(self, s, x):
        """Nothing is evicted; the place is that of the last one."""
        for k in self.keys:
            if s.place[x][k] > self.cache:
                s.place[x][k] = self.cache + 1


class NeverDeleted(TaskDescriptors, variant="never-deleted"):
    """The JobMaster keeps blobs while it is there."""

    def is_unused(self, s, key):
        """Nothing is deleted."""
        return False


class KeptAfterJob(TaskDescriptors, variant="kept-after-job"):
    """A TaskExecutor keeps its cache when the job has ended."""

    @action(x="executors", fairness=WEAK)
    def drop(self, s, x):
        """Nothing is deleted."""
        require(False)

    @terminal
    def over(self, s):
        """The job is over."""
        return s.is_over
