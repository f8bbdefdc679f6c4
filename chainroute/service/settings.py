"""What one service allows, and how much of it."""

from dataclasses import dataclass, field

from chainroute.formats.road_server import RoadServer
from chainroute.runtime.cores import cores

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Settings:
    running: int = field(default_factory=lambda: max(2, cores()))  # jobs at once
    queued: int = 256  # jobs that may wait
    queued_bytes: int = 500_000_000  # of the problems that wait or are being solved
    arriving_bytes: int = 200_000_000  # of all bodies that are being received and read
    lanes: int = field(default_factory=lambda: min(4, cores()))  # processes that hold the policy, for batches
    batch: int = 8  # problems that are decoded together; more gain nothing on a CPU. 1: each by itself
    max_bytes: int = 20_000_000  # of a body
    max_customers: int = 2_000
    max_matrix_bytes: int = 500_000_000  # of all matrices of one problem, those of its vehicle types included
    max_name: int = 200  # characters of a name, since answers repeat it
    max_time_limit: float = 60.0  # seconds of one job
    keep_jobs: int = 1_000  # that have ended
    keep_bytes: int = 200_000_000  # of all that is kept of them
    keep_seconds: float = 900.0
    token: str | None = None  # asked of every request but those for the page and its health
    hosts: tuple[str, ...] = LOOPBACK  # names by which this service may be addressed; "*" for any
    webhooks: tuple[str, ...] = ()  # places to which ended jobs may be sent, such as https://host:port
    webhook_key: str | None = None  # by which what is sent there is signed
    connections: int = 500  # that are open at once
    client_connections: int = 100  # of them from one address; a proxy on this machine has all
    listeners: int = 200  # of all jobs' events
    origins: tuple[str, ...] = ()  # of other pages that may use this service
    roads: RoadServer | None = None  # whom requests may have asked for roads; never one that they name
