"""What is measured: one function for each row of the table, one call for each round."""
import dataclasses
import statistics
import time
import typing

from sidebyside import (cel_rows, client_rows, cluster, cluster_rows, compact_rows, during_rows, embedded_rows, growth_rows,
                        kube_client_rows, kube_peer, kube_peer_rows, kube_rows, quota_rows, rule_rows, servers, start_rows, tier_rows,
                        tiered, tls_rows, watch_rows, webhook_rows)

MILLION = 1_000_000
LISTED = 10_000
LEASES = 20_000
CATCH_UP_SECONDS = 10  # etcd needs twenty minutes for what it is given here


@dataclasses.dataclass
class Row:
    name: str
    measure: typing.Callable
    rounds: int = 0  # 0: as many as asked for
    asked: bool = False  # only with --only: it takes minutes
    group: str = "usual"  # or growth, which runs only with --rows growth
    of_clients: bool = False  # the server is always Vigil, and the clients are compared
    of_cluster: bool = False  # a cluster of etcd: what is in front of it is compared
    of_kube: bool = False  # a Kubernetes API: Vigil's, or a real kube-apiserver
    of_tier: bool = False  # a real kube-apiserver, directly or through the tier in front of it
    of_stores: bool = False  # stores inside a program are compared
    of_expressions: bool = False  # nothing is served: what evaluates expressions is compared
    of_rules: bool = False  # the same for the rules of custom resources


class Bench:
    def __init__(self, programs, directory):
        self.programs, self.directory = programs, directory
        self.plots = []  # as in docs/report/data, of rows that measure several sizes

    def round(self, row, name):
        """One fresh server, one measurement. Returns values by metric."""
        if row.of_stores:
            with embedded_rows.Stores(name, self.programs, self.directory / name) as stores:
                return row.measure(stores)
        if row.of_expressions:
            with cel_rows.Expressions(name, self.programs) as expressions:
                return row.measure(expressions)
        if row.of_rules:
            with rule_rows.Rules(name, self.programs, self.directory / name) as rules:
                return row.measure(rules)
        if row.of_cluster:
            with cluster.Cluster(name, self.programs, self.directory / name) as members:
                return row.measure(members)
        if row.of_kube:
            with kube_peer.make(name, self.programs, self.directory / name) as server:
                return row.measure(server)
        if row.of_tier:
            with tiered.Tiered(name, self.programs, self.directory / name) as server:
                return row.measure(server)
        server_name = "vigil" if row.of_clients else name
        with servers.Server(server_name, self.programs, self.directory / name, client=name) as server:
            return row.measure(server)


def put_one(server):
    server.start()
    found = server.bench("put", "--connections", 1, "--pipeline", 1, "--warmup", "500ms",
                         "--duration", "2s")
    return {"put_one.p50_us": found["latency_p50_us"], "put_one.p90_us": found["latency_p90_us"],
            "put_one.p99_us": found["latency_p99_us"], "other_cores": found["other_cores"]}


def put_many(server):
    server.start()
    found = server.bench("put", "--connections", 100, "--pipeline", 10, "--warmup", "1s",
                         "--duration", "3s")
    return {"put_many.rate": found["operations_per_second"],
            "put_many.cpu_us": found["server_cpu_us_per_operation"],
            "put_many.p50_us": found["latency_p50_us"], "put_many.p99_us": found["latency_p99_us"],
            "put_many.generator_cpu_us": found["generator_cpu_us_per_operation"],
            "other_cores": found["other_cores"]}


def get_one_key(server):
    server.start()
    found = server.bench("get", "--connections", 10, "--pipeline", 10, "--prepare",
                         "--warmup", "1s", "--duration", "3s")
    return {"get.rate": found["operations_per_second"],
            "get.cpu_us": found["server_cpu_us_per_operation"],
            "get.p50_us": found["latency_p50_us"], "get.p99_us": found["latency_p99_us"],
            "get.generator_cpu_us": found["generator_cpu_us_per_operation"],
            "other_cores": found["other_cores"]}


def list_shuffled(server):
    server.start()
    found = server.bench("list", "--key-space", LISTED, "--prepare", "--warmup", "1s",
                         "--duration", "3s")
    return {"list.cpu_ms": found["server_cpu_us_per_operation"] / 1e3,
            "list.p50_ms": found["latency_p50_us"] / 1e3, "other_cores": found["other_cores"]}


def million_keys(server):
    server.start()
    found = server.bench("load", "--key-space", MILLION)
    time.sleep(3)  # what is garbage to a server, it may give back
    loaded_mb = server.anonymous_mb()
    caught_up = watch_rows.catch_up(server, MILLION, CATCH_UP_SECONDS)
    restarts = []
    for _ in range(3):
        server.stop()
        restarts.append(server.start(value_size=256))
    time.sleep(3)
    return {"million.anonymous_mb": loaded_mb, "million.restart_s": statistics.median(restarts),
            "million.anonymous_after_restart_mb": server.anonymous_mb(),
            "million.load_rate": found["operations_per_second"], **caught_up,
            "other_cores": found["other_cores"]}


def leases(server):
    server.start()
    found = server.bench("lease", "--total", LEASES, "--duration", "2s")
    return {"lease.grant_rate": found["grants_per_second"],
            "lease.renew_rate": found["operations_per_second"],
            "lease.renew_cpu_us": found["server_cpu_us_per_operation"],
            "lease.renew_p99_us": found["latency_p99_us"],
            "lease.bytes": found["server_bytes_per_lease"], "other_cores": found["other_cores"]}


def million_leases(server):
    """Vigil alone: etcd needs minutes to grant so many."""
    if server.name != "vigil":
        return {}
    server.start()
    found = server.bench("lease", "--total", MILLION, "--duration", "3s")
    server.stop()
    restart_s = server.start()
    return {"million_leases.bytes": found["server_bytes_per_lease"],
            "million_leases.seconds": found["grant_seconds"],
            "million_leases.renew_rate": found["operations_per_second"],
            "million_leases.restart_s": restart_s, "other_cores": found["other_cores"]}


def idle(server):
    server.start()
    time.sleep(3)
    return {"idle.anonymous_mb": server.anonymous_mb()}


ROWS = [
    Row("put_one", put_one),
    Row("put_many", put_many),
    Row("get", get_one_key),
    Row("list", list_shuffled),
    Row("tls_put", tls_rows.put, rounds=2),
    Row("tls_get", tls_rows.get, rounds=2),
    Row("tls_events", tls_rows.events, rounds=2),
    Row("lease", leases, rounds=3),
    Row("million_leases", million_leases, rounds=1),
    Row("idle", idle, rounds=3),
    Row("start", start_rows.one, rounds=9),
    Row("pair", start_rows.pair, rounds=9),
    Row("idle_watcher", watch_rows.idle_watchers, rounds=5),
    Row("idle_stream", watch_rows.idle_streams, rounds=2),
    Row("idle_connection", watch_rows.idle_connections, rounds=2),
    Row("one_stream", watch_rows.one_stream, rounds=3),
    Row("thousand", watch_rows.thousand, rounds=3),
    Row("streams", watch_rows.streams, rounds=3),
    Row("grid", watch_rows.grid, rounds=3),
    Row("connections", watch_rows.connections, rounds=2),
    Row("client_calls", client_rows.calls, rounds=3, of_clients=True),
    Row("client_events", client_rows.events, rounds=3, of_clients=True),
    Row("client_watches", client_rows.watches, rounds=2, of_clients=True),
    Row("client_resume", client_rows.resumed, rounds=3, of_clients=True),
    Row("client_size", client_rows.size, rounds=2, of_clients=True),
    Row("beside", watch_rows.puts_beside, rounds=2),
    Row("long", watch_rows.long_catch_up, rounds=1),
    Row("million_watchers", watch_rows.million_watchers, rounds=1),
    Row("million", million_keys, rounds=2),
    Row("compact_one", compact_rows.one_million, rounds=1),
    Row("during", during_rows.during, rounds=1),
    Row("compact_ten", compact_rows.ten_million, rounds=1),
    Row("compact_ten_of_peer", compact_rows.ten_million_of_peer, rounds=1, asked=True),
    Row("kube_watch", kube_rows.watches, rounds=2),
    Row("kube_idle", kube_rows.idle_watches, rounds=1),
    Row("kube_list", kube_rows.listed, rounds=2),
    Row("kube_many", kube_rows.many_pods, rounds=1),
    Row("kube_stopped", kube_rows.stopped_clients, rounds=2),
    Row("kube_quota", quota_rows.quotas, rounds=7, asked=True),
    Row("peer_kube", kube_peer_rows.side_by_side, rounds=1, of_kube=True),
    Row("kube_informer", kube_client_rows.informer, rounds=3, of_clients=True),
    Row("kube_catch_up", kube_client_rows.catch_up, rounds=1, of_clients=True),
    Row("kube_client_idle", kube_client_rows.idle_watches, rounds=2, of_clients=True),
    Row("cluster_watch", cluster_rows.watchers, rounds=3, of_cluster=True),
    Row("cluster_delay", cluster_rows.delay, rounds=2, of_cluster=True),
    Row("cluster_get", cluster_rows.gets, rounds=2, of_cluster=True),
    Row("cluster_list", cluster_rows.lists, rounds=1, of_cluster=True),
    Row("cluster_catch_up", cluster_rows.catch_up, rounds=1, of_cluster=True),
    Row("cluster_million", cluster_rows.million_keys, rounds=1, of_cluster=True),
    Row("cluster_million_34", cluster_rows.million_keys_of_old, rounds=1, of_cluster=True),
    Row("embedded_get", embedded_rows.get, rounds=2, of_stores=True),
    Row("embedded_put", embedded_rows.put, rounds=3, of_stores=True),
    Row("embedded_puts", embedded_rows.puts_of_threads, rounds=2, of_stores=True),
    Row("embedded_events", embedded_rows.events, rounds=2, of_stores=True),
    Row("embedded_open", embedded_rows.million, rounds=1, of_stores=True),
    Row("cel", cel_rows.evaluate, rounds=3, of_expressions=True),
    Row("rules", rule_rows.programs, rounds=3, of_rules=True),
    Row("route", rule_rows.routes, rounds=1, of_kube=True),
    Row("unconcerned", rule_rows.others, rounds=1, of_kube=True),
    Row("webhook", webhook_rows.admitted, rounds=1, of_kube=True),
    Row("webhook_list", webhook_rows.converted, rounds=1, of_kube=True),
    Row("webhook_others", webhook_rows.unconcerned, rounds=1, of_kube=True),
    Row("tier_create", tier_rows.creates, rounds=1, of_tier=True),
    Row("tier_start", tier_rows.starts, rounds=1, of_tier=True),
    Row("tier_watch", tier_rows.watches, rounds=1, of_tier=True),
    Row("tier_watch_max", tier_rows.most_watches, rounds=1, of_tier=True),
    Row("tier_memory", tier_rows.memory, rounds=1, of_tier=True),
    Row("tier_memory_all", tier_rows.memory_of_all, rounds=1, asked=True, of_tier=True),
    Row("tier_rights", tier_rows.rights, rounds=1, asked=True, of_tier=True),
    Row("managed", webhook_rows.managed, rounds=1),
    Row("growth_keys", growth_rows.keys, rounds=1, group="growth"),
    Row("growth_values", growth_rows.values, rounds=1, group="growth"),
    Row("growth_watchers", growth_rows.watchers, rounds=1, group="growth"),
    Row("growth_streams", growth_rows.streams, rounds=1, group="growth"),
    Row("growth_connections", growth_rows.connections, rounds=1, group="growth"),
    Row("many_watchers", growth_rows.many_watchers, rounds=1, group="growth"),
]
