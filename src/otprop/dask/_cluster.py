"""Clients and clusters of Dask: the running one, one of this machine's processes, or one at an address."""

from __future__ import annotations

import ctypes
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import otprop
from otprop._errors import OtpropError
from otprop._validation import InputError, ParameterError
from otprop.dask import require_dask
from otprop.files import TableError

CONNECT_SECONDS = 10
START_TIMEOUT = PROCESS_TIMEOUT = "120s"  # of connections and processes of this machine, which may be busy
SHORT_OF_MEMORY = "use fewer processes, or free memory: a system that runs out of it kills them"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # in malloc.h


class ClusterError(OtpropError, OSError):
    """A cluster cannot be used, or its workers failed; the message is one line for the user."""


def default_client() -> Any | None:
    """The running client; None where there is none."""
    from distributed import default_client as running

    try:
        return running()
    except ValueError:
        return None


def check_client(client: Any) -> Any:
    """The client, if it is one that can be used here."""
    from distributed import Client

    if not isinstance(client, Client):
        raise InputError(f"client must be a dask.distributed.Client or None; got {type(client).__name__}.")
    if client.status != "running":
        raise ParameterError("client", f"is {client.status}: give a running one, or None to start one.")
    if client.asynchronous:
        raise InputError("client is asynchronous: give one that was made with asynchronous=False.")
    check_workers(client)
    return client


def local_client(
    n_workers: int | None = None,
    memory_limit: str | float = "auto",
    default: bool = True,
    advice: str = SHORT_OF_MEMORY,
) -> Any:
    """A client of a new cluster: a process for each processor, one thread each.

    It listens on the loopback interface only, and talks only to who has the certificate made for it. `advice` ends the
    message where a process dies while it starts.
    """
    require_dask("cryptography")
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    config = {
        "distributed.comm.timeouts.connect": START_TIMEOUT,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "temporary-directory": _private_folder(),
    }
    with dask.config.set(config):
        try:
            cluster = LocalCluster(
                n_workers=n_workers or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                security=Security.temporary(),
                memory_limit=memory_limit,
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
                death_timeout=PROCESS_TIMEOUT,  # else one that hangs or dies again and again is waited for for ever
            )
        except RuntimeError as error:
            reason = str(error).rstrip(".")
            raise ClusterError(f"a process of the cluster ended while it started ({reason}): {advice}.") from error
        except (TimeoutError, AssertionError) as error:  # Dask asserts that what it ends after the time has started
            raise ClusterError(f"a process of the cluster did not start within {PROCESS_TIMEOUT}: {advice}.") from error
        client = Client(cluster, set_as_default=default, timeout=START_TIMEOUT)
    cluster.scheduler.http_server.stop()
    client.register_plugin(_without_http())
    return client


def _private_folder() -> str:
    """A folder for what workers spill, which only this user can write to: Dask puts it on the path for imports."""
    if not hasattr(os, "getuid"):  # Windows: every user has a temporary folder
        return tempfile.gettempdir()
    folder = os.path.join(tempfile.gettempdir(), f"otprop-dask-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077:
        return folder
    return tempfile.mkdtemp(prefix="otprop-dask-")  # somebody else took the name


def _without_http() -> Any:
    """A plugin that closes the web server of each worker, the later ones too; Dask has no option for it."""
    from distributed import WorkerPlugin

    class WithoutHttp(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            worker.http_server.stop()

    return WithoutHttp()


def close_client(client: Any) -> None:
    """Close a client and its own cluster; a busy machine that is slow to end processes is not an error."""
    cluster = client.cluster
    for one in (client, cluster):
        if one is not None:
            with suppress(TimeoutError, OSError):
                one.close()


def connect(address: str) -> Any:
    """A client of the scheduler at an address."""
    from distributed import Client
    from distributed.comm import parse_address, parse_host_port

    try:
        parse_host_port(parse_address(address)[1])  # a client of no address is hard to get rid of
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise ClusterError(f"no scheduler answers at {address} ({reason}).") from None
    check_workers(client)
    return client


def check_workers(client: Any) -> None:
    """Refuse a cluster without workers, or whose workers have another version of otprop."""

    def version() -> str:  # nested, so that it is sent as code: a worker may lack otprop
        try:
            import otprop

            return str(otprop.__version__)
        except ImportError:
            return ""

    address = client.scheduler.address
    found = client.run(version)
    if not found:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(f"the scheduler at {address} has no workers: start some first.") from None
        found = client.run(version)
    for worker, other in found.items():
        if not other:
            raise ClusterError(f"the worker at {worker} lacks otprop: install version {otprop.__version__} there.")
        if other != otprop.__version__:
            raise ClusterError(
                f"the worker at {worker} has otprop {other}, here it is {otprop.__version__}: install the same version."
            )


def n_threads(client: Any) -> int:
    """The number of tasks that the cluster can run at once, at least 1."""
    return max(1, sum(client.nthreads().values()))


def worker_threads() -> int:
    """The threads of the worker that this runs on; 1 elsewhere."""
    from distributed import get_worker

    try:
        return max(1, int(get_worker().state.nthreads))
    except ValueError:
        return 1


@cache
def keep_freed_memory() -> None:
    """Have a worker keep up to 64 MB of freed memory.

    Dask starts workers so that they give it back at once: every larger array costs page faults, a prediction 2.5 times
    the seconds.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        with suppress(OSError, AttributeError, TypeError):  # not the GNU C library
            library = ctypes.CDLL(None)
            library.mallopt(M_TRIM_THRESHOLD, 2**26)
            library.mallopt(M_MMAP_THRESHOLD, 2**25)


@contextmanager
def threads_for_fit(n_jobs: int | None) -> Iterator[int]:
    """The threads for a fit on this worker, its own unless `n_jobs` says otherwise.

    Joblib would allow one only: it thinks of processes, which a worker may not start.
    """
    from joblib import parallel_config

    keep_freed_memory()
    with parallel_config(backend="threading"):
        yield worker_threads() if n_jobs is None else n_jobs


def run_each(client: Any, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """Call a function on the workers, yielding the number and the future of each call as it is done.

    Only as many calls are under way as the cluster has threads: when a worker dies, Dask suspects every task that was
    assigned to it, and drops a task on its fourth suspicion.
    """
    from distributed import as_completed

    numbers: dict[str, int] = {}
    todo = iter(enumerate(calls))

    def start() -> Any | None:
        for number, arguments in todo:
            future = client.submit(function, *arguments, pure=False)
            numbers[future.key] = number
            return future
        return None

    first = [future for _ in range(n_threads(client)) if (future := start()) is not None]
    if not first:
        return
    under_way = as_completed(first, loop=client.loop)
    for future in under_way:
        following = start()
        if following is not None:
            under_way.add(following)
        yield numbers.pop(future.key), future


def run_here(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """As `run_each`, in this process; of errors only those of a file are kept for its future."""
    for number, arguments in enumerate(calls):
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except (TableError, OSError) as error:
            future.set_exception(error)
        yield number, future


def reason_of(error: BaseException, sentence: Callable[[BaseException], str] = str) -> str:
    """Why a task failed, as the rest of a sentence; the death of workers in words, other errors by `sentence`."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return (
            "the workers that had it were killed, one after the other, as they are where memory runs out; "
            "give them more memory, or split the file"
        )
    text = " ".join(sentence(error).split())
    return (text or type(error).__name__).rstrip(".")
