"""Kinds of requests to a worker or the forkserver. An answer has its request's kind, unless it is a `WorkerReply`."""

from __future__ import annotations

from enum import StrEnum


class WorkerRequest(StrEnum):
    WARM = "warm"
    SETTLE = "settle"
    START = "start"
    CONSTRUCT = "construct"
    DUMP_STATE = "dump_state"
    LOAD_STATE = "load_state"
    HOLD_STATE = "hold_state"
    CALL = "call"  # answered by ARMED, then CALLED or DISARMED
    WINDOW = "window"  # likewise
    RECORD = "record"
    EXPORT = "export"
    STORE = "store"
    RECOPY = "recopy"
    PIN = "pin"
    PROFILE = "profile"
    DESCRIBE_ABLATION = "describe_ablation"
    CONFIGURE_EMULATORS = "configure_emulators"
    TAKE_KERNEL_FINDINGS = "take_kernel_findings"
    READ_COMPILED = "read_compiled"
    COLLECT = "collect"
    # To a process that replays recorded work instead of running a candidate.
    OPEN_REPLAYER = "open_replayer"
    MAP_PAGES = "map_pages"
    BUILD_GRAPH = "build_graph"
    REPLAY = "replay"
    REPLAY_IN_ROW = "replay_in_row"
    UNLOAD = "unload"


class WorkerReply(StrEnum):
    UP = "up"  # unasked, when the worker has started
    ARMED = "armed"
    CALLED = "called"
    DISARMED = "disarmed"
    FAILED = "failed"  # instead of any other
    BUILD = "build"  # a request in the middle of any other; the evaluator answers with BUILT


BUILT = "built"


class ForkserverRequest(StrEnum):
    PRELOAD = "preload"
    SPAWN = "spawn"
    KILL = "kill"
    PAUSE = "pause"
    RESUME = "resume"  # without a reply
    FORGET_USE = "forget_use"
    COUNT_USED = "count_used"
    FIND = "find"
