"""A real webserver and daemon on a checkout, driven over GraphQL as a user's browser drives them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ctxstream_dagster.orchestration.home import ensure_home
from tests.orchestration.checkout import Checkout

T = TypeVar("T")
_LIVE_BACKFILL = ("REQUESTED", "CANCELING", "FAILING")
_ENDED_RUN = ("SUCCESS", "FAILURE", "CANCELED")

_STATUS = """query($k: AssetKeyInput!) { assetNodeOrError(assetKey: $k) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses {
    materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions } } } } }"""
_BACKFILL = """query($i: String!) { partitionBackfillOrError(backfillId: $i) { ... on PartitionBackfill {
  id status error { message causes { message } } } } }"""
_RUN = "query($i: ID!) { runOrError(runId: $i) { ... on Run { runId status tags { key value } } } }"
_RUNS = (
    "query($f: RunsFilter) { runsOrError(filter: $f) { ... on Runs { results { runId status tags { key value } } } } }"
)
_LAUNCH = """mutation($p: ExecutionParams!) { launchPipelineExecution(executionParams: $p) { __typename
  ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_LAUNCH_BACKFILL = """mutation($b: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $b) { __typename
  ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_REEXECUTE = """mutation($p: ReexecutionParams) { reexecutePartitionBackfill(reexecutionParams: $p) { __typename
  ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_CANCEL_BACKFILL = """mutation($i: String!) { cancelPartitionBackfill(backfillId: $i) { __typename
  ... on PythonError { message } } }"""
_TERMINATE = """mutation($i: String!) { terminateRun(runId: $i, terminatePolicy: SAFE_TERMINATE) { __typename
  ... on TerminateRunFailure { message } } }"""
_STALE = """query($k: AssetKeyInput!, $p: String) { assetNodeOrError(assetKey: $k) { ... on AssetNode {
  staleStatus(partition: $p) staleCauses(partition: $p) { reason category } } } }"""
_CHECKS = """query($k: AssetKeyInput!) { assetNodeOrError(assetKey: $k) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization {
    status evaluation { success description } } } } } } } }"""
_LOGS = """query($i: ID!) { logsForRun(runId: $i) { ... on EventConnection { events { __typename
  ... on LogMessageEvent { message }
  ... on ExecutionStepFailureEvent { stepKey error { message } failureMetadata { description } }
  ... on RunFailureEvent { message error { message } } ... on MaterializationEvent { partition } } } } }"""
_POOLS = "{ instance { concurrencyLimits { concurrencyKey activeRunIds } } }"
_LOCATION = """{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus
  locationOrLoadError { __typename ... on PythonError { message causes { message } } } } } } }"""

_DAEMON = (
    "import dagster._daemon.controller as controller; from dagster._daemon.cli import main; "
    "controller.DEFAULT_DAEMON_INTERVAL_SECONDS = {}; main()"
)


@dataclass
class Stack:
    """The processes of one Dagster deployment; `start` and `kill` as often as a test needs.

    Dagster's daemon looks at backfills every 30 seconds, and has no setting for it; tests need not wait so long.
    """

    checkout: Checkout
    environment: dict[str, str]
    backfill_interval_s: int = 30
    port: int = 0
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.checkout.root / "stack.log"

    def start(self, *, daemon: bool = True) -> None:
        ensure_home(self.checkout.project)
        self.port = self.port or _free_port()
        workspace = str(self.checkout.root / "workspace.yaml")
        webserver = ("-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(self.port), "-w", workspace)
        self._spawn("webserver", *webserver)
        if daemon:
            self._spawn("daemon", "-c", _DAEMON.format(self.backfill_interval_s), "run", "-w", workspace)
        wait_until(self._loaded, timeout_s=90, what="the code location to load")

    def stop(self) -> None:
        """End every process politely, then for certain."""
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        self.kill()

    def kill(self) -> None:
        """SIGKILL everything the stack started, run workers included, as a power cut would."""
        mine = [pid for process in self.processes.values() for pid in _family(process.pid)]
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def query(self, text: str, **variables: Any) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": text, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            reply = json.load(response)
        assert not reply.get("errors"), json.dumps(reply["errors"])[:1000]
        return reply["data"]

    def materialize(self, *assets: str, sweep: str = "census", tags: dict[str, str] | None = None) -> str:
        """Click Materialize on unpartitioned assets; return the run's id."""
        selector = {
            "repositoryLocationName": "ctxstream",
            "repositoryName": "__repository__",
            "jobName": "__ASSET_JOB",
            "assetSelection": [{"path": [sweep, asset]} for asset in assets],
        }
        told = self.query(
            _LAUNCH,
            p={
                "selector": selector,
                "runConfigData": {},
                "mode": "default",
                "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in (tags or {}).items()]},
            },
        )["launchPipelineExecution"]
        assert told["__typename"] == "LaunchRunSuccess", told
        return told["run"]["runId"]

    def backfill(self, *, sweep: str = "census", partitions: Sequence[str] | None = None) -> str:
        """Click Materialize… on the extraction: all partitions, or these."""
        wanted = {"allPartitions": True} if partitions is None else {"partitionNames": list(partitions)}
        told = self.query(_LAUNCH_BACKFILL, b={"assetSelection": [{"path": [sweep, "extraction"]}], **wanted})
        assert told["launchPartitionBackfill"]["__typename"] == "LaunchBackfillSuccess", told
        return told["launchPartitionBackfill"]["backfillId"]

    def retry_failed(self, backfill: str) -> str:
        """Click "Retry from failure" on the backfill's page."""
        told = self.query(_REEXECUTE, p={"parentRunId": backfill, "strategy": "FROM_FAILURE"})
        assert told["reexecutePartitionBackfill"]["__typename"] == "LaunchBackfillSuccess", told
        return told["reexecutePartitionBackfill"]["backfillId"]

    def cancel_backfill(self, backfill: str) -> None:
        """Click Cancel on the backfill's page."""
        told = self.query(_CANCEL_BACKFILL, i=backfill)["cancelPartitionBackfill"]
        assert told["__typename"] == "CancelBackfillSuccess", told

    def ended_backfill(self, backfill: str, *, timeout_s: float = 180) -> str:
        def ended() -> str | None:
            found = self.query(_BACKFILL, i=backfill)["partitionBackfillOrError"]
            assert not found["error"], f"{found['error']}\n{self.log.read_text(errors='replace')[-6000:]}"
            return None if found["status"] in _LIVE_BACKFILL else found["status"]

        return wait_until(ended, timeout_s=timeout_s, what=f"backfill {backfill}")

    def status(self, run_id: str) -> str:
        return self.query(_RUN, i=run_id)["runOrError"]["status"]

    def ended(self, run_id: str, *, timeout_s: float = 90) -> str:
        def ended() -> str | None:
            status = self.status(run_id)
            return status if status in _ENDED_RUN else None

        return wait_until(ended, timeout_s=timeout_s, what=f"run {run_id}")

    def failures(self, run_id: str) -> str:
        """Return what the run's page says went wrong."""
        told = [event for event in self._events(run_id) if "Failure" in event["__typename"]]
        return "\n".join(json.dumps(event) for event in told)

    def logged(self, run_id: str) -> str:
        """Return the messages of a run's log."""
        return "\n".join(event.get("message", "") for event in self._events(run_id))

    def materializations(self, run_id: str) -> list[str]:
        """Return the partitions a run materialized, in order."""
        return [event["partition"] for event in self._events(run_id) if event["__typename"] == "MaterializationEvent"]

    def runs(self, **conditions: Any) -> list[dict[str, Any]]:
        found = self.query(_RUNS, f=conditions)["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def terminate(self, run_id: str) -> None:
        told = self.query(_TERMINATE, i=run_id)["terminateRun"]
        assert told["__typename"] == "TerminateRunSuccess", told

    def partitions(self, sweep: str = "census") -> dict[str, list[str]]:
        """Return the extraction's partitions by state, as the UI's bar draws them."""
        node = self.query(_STATUS, k={"path": [sweep, "extraction"]})["assetNodeOrError"]
        states = node["assetPartitionStatuses"]
        return {name.removesuffix("Partitions"): keys for name, keys in states.items()}

    def staleness(self, partition: str, sweep: str = "census") -> tuple[str, str]:
        node = self.query(_STALE, k={"path": [sweep, "extraction"]}, p=partition)["assetNodeOrError"]
        return node["staleStatus"], "; ".join(cause["reason"] for cause in node["staleCauses"])

    def checks(self, sweep: str = "census") -> dict[str, Any]:
        node = self.query(_CHECKS, k={"path": [sweep, "tally"]})["assetNodeOrError"]
        return {
            check["name"]: check["executionForLatestMaterialization"] for check in node["assetChecksOrError"]["checks"]
        }

    def slot_holders(self) -> set[str]:
        """Return the runs that hold a slot of the pool `ollama`."""
        limits = self.query(_POOLS)["instance"]["concurrencyLimits"]
        return {run for limit in limits if limit["concurrencyKey"] == "ollama" for run in limit["activeRunIds"]}

    def reload(self) -> None:
        """Click Reload beside the code location."""
        self.query(
            "mutation($n: String!) { reloadRepositoryLocation(repositoryLocationName: $n) { __typename } }",
            n="ctxstream",
        )

    def location_error(self) -> str:
        entry = self.query(_LOCATION)["workspaceOrError"]["locationEntries"][0]["locationOrLoadError"]
        told = [entry, *entry.get("causes", ())] if entry else []
        return "\n".join(error.get("message", "") for error in told)

    def switch_on(self, name: str, *, kind: str) -> None:
        """Switch a schedule or sensor on, as under Automation."""
        selector = {"repositoryLocationName": "ctxstream", "repositoryName": "__repository__", f"{kind}Name": name}
        verb = "startSchedule" if kind == "schedule" else "startSensor"
        argument = "scheduleSelector" if kind == "schedule" else "sensorSelector"
        type_ = "ScheduleSelector" if kind == "schedule" else "SensorSelector"
        told = self.query(
            f"mutation($s: {type_}!) {{ {verb}({argument}: $s) {{ __typename ... on PythonError {{ message }} }} }}",
            s=selector,
        )[verb]
        assert "Error" not in told["__typename"], told

    def _events(self, run_id: str) -> list[dict[str, Any]]:
        return self.query(_LOGS, i=run_id)["logsForRun"]["events"]

    def _loaded(self) -> bool | None:
        for name, process in self.processes.items():
            assert process.poll() is None, f"the {name} ended:\n{self.log.read_text(errors='replace')[-3000:]}"
        try:
            entries = self.query(_LOCATION)["workspaceOrError"]["locationEntries"]
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None
        return True if entries and entries[0]["loadStatus"] == "LOADED" else None

    def _spawn(self, name: str, *arguments: str) -> None:
        with self.log.open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-W", "ignore", *arguments],
                cwd=self.checkout.root,
                env=self.environment,
                stdout=log,
                stderr=log,
            )


def wait_until(ask: Callable[[], T | None], *, timeout_s: float, what: str, every_s: float = 0.3) -> T:
    """Ask until the reply is not None (nor False); raises `TimeoutError`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        reply = ask()
        if reply:
            return reply
        time.sleep(every_s)
    raise TimeoutError(f"waited {timeout_s:g} s for {what}")


def _family(pid: int) -> list[int]:
    """Return a process and everything it started, found while it lives: orphans have lost their parent."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
