"""From samples to medians, ratios, goals; as JSON and as a Markdown table."""
import dataclasses
import json
import statistics
import typing


OTHER_CORES = "other_cores"  # what a row returns beside its metrics: the work of other processes meanwhile
OTHER_CORES_MAX = 0.1


@dataclasses.dataclass
class Metric:
    key: str
    text: str
    unit: str
    more_is_better: bool = False
    goal: typing.Optional[float] = None
    absolute: bool = False  # the goal is for Vigil's number itself, not for its ratio to etcd's
    digits: int = 0
    # or clients "of etcd" or "of Kubernetes", all of them used with Vigil; or what is in front of a "cluster": nothing
    # and Vigil, or a "proxy" and Vigil; or the store in a program and etcd ("embedded"), "sqlite" or "lmdb"; or
    # what evaluates expressions, "cel-go" and Vigil, or the rules of custom resources, Kubernetes' "library" and Vigil
    compared: str = "servers"
    growth: bool = False  # of the rows that run only with --rows growth


# The goals are those of the table this run has to answer; a metric without one is only shown.
METRICS = [
    Metric("put_one.p50_us", "put, 1 client, p50", "µs", goal=1 / 2),
    Metric("put_one.p99_us", "put, 1 client, p99", "µs"),
    Metric("put_many.rate", "put, 100 connections, 1000 in flight", "/s", True, goal=8),
    Metric("put_many.rate", "— the figure itself", "/s", True, goal=350_000, absolute=True),
    Metric("put_many.cpu_us", "— server CPU for each", "µs", goal=1 / 10, digits=2),
    Metric("put_many.p99_us", "— p99", "µs"),
    Metric("get.rate", "get of one key, 10 connections, 100 in flight", "/s", True, goal=10),
    Metric("get.cpu_us", "— server CPU for each", "µs", goal=1 / 10, digits=2),
    Metric("get.p99_us", "— p99", "µs"),
    Metric("tls_put.rate", "put over TLS, 100 connections, 1000 in flight", "/s", True, goal=8),
    Metric("tls_put.of_plain", "— part of the rate without TLS", "", True, goal=0.5, absolute=True, digits=2),
    Metric("tls_put.cpu_us", "— server CPU for each", "µs", digits=2),
    Metric("tls_get.rate", "get of one key over TLS, 10 connections, 100 in flight", "/s", True, goal=8),
    Metric("tls_get.of_plain", "— part of the rate without TLS", "", True, goal=0.5, absolute=True, digits=2),
    Metric("tls_get.cpu_us", "— server CPU for each", "µs", digits=2),
    Metric("tls_events.rate", "100 watchers of one key on one stream over TLS, 16 puts in flight, events", "/s", True, goal=8),
    Metric("tls_events.of_plain", "— part of the rate without TLS", "", True, goal=0.4, absolute=True, digits=2),
    Metric("tls_events.cpu_us", "— server CPU for each", "µs", digits=2),
    Metric("list.cpu_ms", "list of 10,000 keys overwritten in random order, server CPU", "ms",
           goal=1 / 8, digits=2),
    Metric("list.p50_ms", "— p50", "ms", digits=2),
    Metric("million.anonymous_mb", "1,000,000 keys loaded, anonymous memory", "MB", goal=160,
           absolute=True),
    Metric("million.anonymous_after_restart_mb", "— after a restart", "MB"),
    Metric("million.restart_s", "— restart to the first get", "s", goal=0.6, absolute=True,
           digits=2),
    Metric("million.load_rate", "— loaded at", "/s", True),
    Metric("lease.grant_rate", "20,000 leases granted, 1000 in flight", "/s", True, goal=8),
    Metric("lease.renew_rate", "— kept alive on 10 streams, 1000 in flight", "/s", True, goal=10),
    Metric("lease.renew_cpu_us", "— server CPU for each", "µs", goal=1 / 10, digits=2),
    Metric("lease.renew_p99_us", "— p99", "µs"),
    Metric("lease.bytes", "— anonymous memory of each", "B"),
    Metric("million_leases.bytes", "1,000,000 leases, anonymous memory of each", "B", goal=128,
           absolute=True),
    Metric("million_leases.seconds", "— granted in", "s", digits=1),
    Metric("million_leases.renew_rate", "— kept alive", "/s", True),
    Metric("million_leases.restart_s", "— restart to the first answer", "s", digits=2),
    Metric("idle.anonymous_mb", "idle, anonymous memory", "MB", goal=3, absolute=True, digits=1),
    Metric("start.readyz_ms", "start to the first answer of /readyz, from an empty directory", "ms", goal=100, absolute=True),
    Metric("start.cpu_ms", "— server CPU until then", "ms", digits=1),
    Metric("start.resident_mb", "— all resident memory a second later", "MB", goal=16, absolute=True, digits=1),
    Metric("pair.ready_ms", "under the names etcd and kube-apiserver, one after the other as envtest starts them: until both are ready",
           "ms", goal=300, absolute=True),
    Metric("pair.cpu_ms", "— CPU of both until then", "ms", digits=1),
    Metric("pair.resident_mb", "— all resident memory of both a second later", "MB", digits=1),
    Metric("one_stream.rate", "100 watchers of one key on one stream, 16 puts in flight, events", "/s",
           True, goal=1_500_000, absolute=True),
    Metric("one_stream.p50_ms", "— p50", "ms", digits=2),
    Metric("one_stream.p99_ms", "— p99", "ms", goal=5, absolute=True, digits=2),
    Metric("one_stream.cpu_us", "— server CPU for each", "µs", digits=2),
    Metric("thousand.rate", "1,000 watchers of one key on one stream, 1 put in flight, events", "/s",
           True, goal=2_000_000, absolute=True),
    Metric("thousand.p99_ms", "— p99", "ms", goal=2, absolute=True, digits=2),
    Metric("thousand.cpu_us", "— server CPU for each", "µs", goal=0.3, absolute=True, digits=2),
    Metric("streams.rate", "100 streams with one watcher each, 16 puts in flight, events", "/s", True,
           goal=5),
    Metric("streams.p99_ms", "— p99", "ms", digits=2),
    Metric("streams.cpu_us", "— server CPU for each", "µs", goal=0.8, absolute=True, digits=2),
    Metric("grid.rate", "10,000 watchers on 100 connections of 100 streams, 1 put in flight, events",
           "/s", True, goal=8),
    Metric("grid.p50_ms", "— p50", "ms", goal=8, absolute=True, digits=2),
    Metric("grid.cpu_us", "— server CPU for each", "µs", digits=2),
    Metric("connections.rate", "10,000 connections with one watcher each, 16 puts in flight, events",
           "/s", True, goal=8),
    Metric("connections.cpu_us", "— server CPU for each", "µs", digits=2),
    Metric("catchup.rate", "one watcher catching up over 1,000,000 revisions, events", "/s", True,
           goal=1_000_000, absolute=True),
    Metric("catchup.more_mb", "— memory that it takes meanwhile", "MB", goal=16, absolute=True,
           digits=1),
    Metric("beside.kept", "put rate of one client while two watchers catch up over 100,000 revisions every second, part of its "
           "rate alone", "",
           True, goal=0.9, absolute=True, digits=2),
    Metric("beside.p999_ms", "— p99.9", "ms", digits=2),
    Metric("beside.kept_unpaced", "— while one reads without a pause, its client limited to one core", "",
           True, digits=2),
    Metric("long.gb", "a catch-up over 10 GB beside 100 live watchers on its stream: read", "GB", True,
           digits=1),
    Metric("long.mb_s", "— at", "MB/s", True),
    Metric("long.live_p50_ms", "— events of the live ones, 200 puts a second, p50", "ms", digits=1),
    Metric("long.live_p99_ms", "— p99", "ms", digits=1),
    Metric("long.more_mb", "— memory that it takes meanwhile", "MB", goal=16, absolute=True, digits=1),
    Metric("idle_watcher.bytes", "idle watcher and its key of 16 bytes, 100,000 on one stream", "B",
           goal=144, absolute=True),
    Metric("idle_stream.bytes", "idle stream with one watcher", "B", goal=1024, absolute=True),
    Metric("idle_connection.kb", "connection with one stream and one watcher", "KB", goal=18,
           absolute=True, digits=1),
    Metric("million_watchers.mb", "1,000,000 idle watchers on 1,000 streams", "MB", goal=200,
           absolute=True),
    Metric("million_watchers.seconds", "— made in", "s", goal=10, absolute=True, digits=1),
    Metric("compact_one.more_mb", "compaction of 1,000,000 revisions of 50,000 keys beside one client's puts: memory "
           "that it takes", "MB", goal=32, absolute=True, digits=1),
    Metric("compact_one.kept", "— put rate, part of its rate alone", "", True, goal=0.8, absolute=True, digits=2),
    Metric("compact_one.p50_times", "— p50, times that alone", "", goal=1.5, absolute=True, digits=2),
    Metric("compact_one.seconds", "— until a put costs what it did before", "s"),
    Metric("during_compaction.p99_ms", "puts of one client during compaction of 1,000,000 revisions of 50,000 keys, p99", "ms", goal=5,
           absolute=True, digits=2),
    Metric("during_snapshot.p99_ms", "— during snapshots of all of them, one after the other", "ms", goal=5, absolute=True, digits=2),
    Metric("during_defragmentation.p99_ms", "— during defragmentations", "ms", goal=5, absolute=True, digits=2),
    Metric("during_nothing.p99_ms", "— during nothing else", "ms", digits=2),
    Metric("compact_ten.more_mb", "compaction of 10,000,000 revisions of 50,000 keys beside one client's puts: memory "
           "that it takes", "MB", goal=32, absolute=True, digits=1),
    Metric("compact_ten.kept", "— put rate, part of its rate alone", "", True, goal=0.8, absolute=True, digits=2),
    Metric("compact_ten.p50_times", "— p50, times that alone", "", goal=1.5, absolute=True, digits=2),
    Metric("compact_ten.seconds", "— until a put costs what it did before", "s"),
    Metric("kube_watch.cpu_us", "Kubernetes API, 10,000 watches of pods by node on 1,000 connections, 1,000 "
           "changes of 2 KB a second for 100 each: server CPU for each event delivered", "µs", goal=1,
           absolute=True, digits=2),
    Metric("kube_watch.p50_ms", "— p50", "ms", digits=2),
    Metric("kube_watch.p99_ms", "— p99", "ms", goal=20, absolute=True, digits=2),
    Metric("kube_watch.cpu_all_us", "— server CPU for each, that of the changes with it", "µs", digits=2),
    Metric("kube_watch.change_us", "— server CPU for each change beside one watch", "µs"),
    Metric("kube_spread.cpu_us", "— each of the 100 on another connection: server CPU for each event "
           "delivered", "µs", digits=2),
    Metric("kube_spread.p99_ms", "— p99", "ms", digits=2),
    Metric("kube_idle.bytes", "idle watch, 18 on a connection, everything counted", "B", goal=1200,
           absolute=True),
    Metric("kube_list.cpu_ms", "list of 10,000 pods of 2 KB, server CPU", "ms", goal=15, absolute=True,
           digits=1),
    Metric("kube_list.p50_ms", "— p50", "ms", digits=1),
    Metric("kube_many.memory", "150,000 pods of 4 KB, all resident memory, parts of their bytes", "",
           goal=1.3, absolute=True, digits=2),
    Metric("kube_many.anonymous_mb", "— anonymous memory", "MB"),
    Metric("kube_many.load_rate", "— created at", "/s", True),
    Metric("kube_stopped.kept", "1,000 watches beside 1,000 clients that stopped reading, events, part of "
           "their rate alone", "", True, goal=0.98, absolute=True, digits=2),
    Metric("kube_stopped.p99_ms", "— p99", "ms", goal=20, absolute=True, digits=2),
    Metric("kube_stopped.alone_p99_ms", "— p99 alone", "ms", digits=2),
    Metric("kube_stopped.more_mb", "— memory that those take", "MB", goal=64, absolute=True, digits=1),
    *[metric for clients in (8, 64) for metric in (
        Metric(f"quota_{clients}.with_cpu_us", f"create of pods of 2 KB, {clients} clients, server CPU for each", "µs", digits=1),
        Metric(f"quota_{clients}.without_cpu_us", "— without the plugin ResourceQuota", "µs", digits=1),
        Metric(f"quota_{clients}.with_p50_us", "— p50", "µs"),
        Metric(f"quota_{clients}.without_p50_us", "— p50 without the plugin", "µs"))],
    Metric("managed.ratio", "create of pods of 2 KB with --kube-managed-fields=all, server CPU, times that without managers", "",
           goal=1.5, absolute=True, digits=2),
    Metric("managed.with_us", "— server CPU for each", "µs", digits=1),
    Metric("managed.without_us", "— without managers", "µs", digits=1),
    Metric("put_many.generator_cpu_us", "generator's CPU for each put", "µs", digits=2),
    Metric("get.generator_cpu_us", "generator's CPU for each get", "µs", digits=2),
    *[dataclasses.replace(metric, compared="kube-apiserver") for metric in [
        Metric("peer_kube_event.cpu_us", "1,000 watches of pods by node, ten on a connection, 100 changes of 2 KB a second for 100 each: "
               "server CPU for each event delivered", "µs", goal=1 / 3, digits=2),
        Metric("peer_kube_event.p99_ms", "— p99", "ms", digits=2),
        Metric("peer_kube_change.cpu_us", "— server CPU for each change that one watch sees", "µs"),
        Metric("peer_kube_list.cpu_ms", "list of 10,000 pods of 2 KB, server CPU", "ms", goal=1 / 10, digits=1),
        Metric("peer_kube_list.p50_ms", "— p50", "ms", digits=1),
        Metric("peer_kube_create.cpu_us", "create of pods of 2 KB, 500 in flight, server CPU for each", "µs", goal=1 / 10),
        Metric("peer_kube_create.rate", "— rate", "/s", True),
        Metric("route.with_us", "create of gateway-api's example HTTPRoute with the rules of its definition, 100 in flight, server CPU "
               "for each", "µs", goal=1 / 10),
        Metric("route.ratio", "— times that without rules", "", goal=1.6, absolute=True, digits=2),
        Metric("route.without_us", "— without rules", "µs"),
        Metric("unconcerned.with_us", "create of a ConfigMap beside 50 policies of another kind, 100 in flight, server CPU for each", "µs"),
        Metric("unconcerned.ratio", "— times that without policies", "", goal=1.05, absolute=True, digits=3),
        Metric("unconcerned.without_us", "— without policies", "µs"),
        Metric("webhook.more_us", "create of a ConfigMap through one validating webhook, 1,000 in flight: server CPU for each, more than "
               "without it", "µs", goal=60, absolute=True),
        Metric("webhook.with_us", "— all of it", "µs", goal=1 / 10),
        Metric("webhook.without_us", "— without the webhook", "µs"),
        Metric("webhook_others.ratio", "create of a ConfigMap beside 50 webhooks of another kind, 100 in flight: server CPU, times that "
               "without them", "", goal=1.05, absolute=True, digits=3),
        Metric("webhook_others.with_us", "— server CPU for each", "µs"),
        Metric("webhook_others.without_us", "— without the webhooks", "µs"),
        Metric("webhook_list.calls", "list of 1,000 objects in a version that is not stored, calls of the webhook until the first one is "
               "answered", "", goal=4, absolute=True),
        Metric("webhook_list.cpu_ms", "— server CPU for each list that follows", "ms", digits=1),
        Metric("peer_kube_memory.mb", "10,000 pods and 1,000 watches, all resident memory, the mapped log too", "MB", goal=1 / 10),
    ]],
    *[dataclasses.replace(metric, growth=True) for metric in [
        Metric("many_watchers.mb", "10,000,000 watchers on ten streams, 100,000 puts a second that each reach one of them: anonymous "
               "memory", "MB", goal=1500, absolute=True),
        Metric("many_watchers.p99_ms", "— p99 of the events", "ms", goal=5, absolute=True, digits=2),
        Metric("many_watchers.p50_ms", "— p50", "ms", digits=2),
        Metric("many_watchers.rate", "— events", "/s", True),
        Metric("many_keys.bytes", "10,000,000 keys, anonymous memory of each", "B", goal=95, absolute=True, digits=1),
        Metric("many_keys.kept", "— rate of puts, 1000 in flight, part of that with 100,000 keys", "", True, goal=0.8, absolute=True,
               digits=2),
        Metric("many_keys.rate", "— rate of puts", "/s", True),
        Metric("many_keys.restart_s", "— restart to the first get", "s", goal=3, absolute=True, digits=2),
        *[Metric(f"growth_{name}.growth", f"growth with {what}: the steepest slope, part of that of n log n", "", goal=1, absolute=True,
                 digits=2)
          for name, what in (("keys", "keys"), ("values", "the size of values"), ("watchers", "watchers"), ("streams", "streams"),
                             ("connections", "connections"))],
    ]],
    *[dataclasses.replace(metric, compared="of etcd") for metric in [
        Metric("client_put.cpu_us", "put, 100 in flight, client CPU for each", "µs", goal=1 / 5, digits=2),
        Metric("client_put.cpu_us", "— the figure itself", "µs", goal=3, absolute=True, digits=2),
        Metric("client_put.rate", "— rate", "/s", True),
        Metric("client_get.cpu_us", "get of one key, 100 in flight, client CPU for each", "µs", goal=1 / 5,
               digits=2),
        Metric("client_get.cpu_us", "— the figure itself", "µs", goal=3, absolute=True, digits=2),
        Metric("client_get.rate", "— rate", "/s", True),
        Metric("client_events.cpu_us", "events of 300 bytes, 1,000 watches on one stream, client CPU for "
               "each", "µs", goal=1 / 10, digits=2),
        Metric("client_events.cpu_us", "— the figure itself", "µs", goal=0.4, absolute=True,
               digits=2),
        Metric("client_events.rate", "— rate", "/s", True),
        Metric("client_watches.rate", "100,000 watches created on one connection", "/s", True, goal=20),
        Metric("client_watches.cpu_us", "— client CPU for each", "µs", digits=2),
        Metric("client_watches.bytes", "— resident memory of the client for each", "B", goal=300,
               absolute=True),
        Metric("client_resume.ms", "10,000 watches resumed after a broken connection: until each has "
               "delivered an event", "ms", goal=1 / 10),
        Metric("client_resume.cpu_us", "— client CPU for each", "µs", digits=2),
        Metric("client_size.library_kb", "stripped shared library", "KB", goal=600, absolute=True),
        Metric("client_size.libraries_kb", "— with the library for Kubernetes", "KB", goal=900, absolute=True),
        Metric("client_size.thread_kb", "idle handle with its own thread and a connection, resident memory",
               "KB", goal=64, absolute=True),
        Metric("client_size.loop_kb", "— in the program's loop", "KB", goal=64, absolute=True),
        Metric("client_size.heap_kb", "— memory allocated for it, the larger of the two", "KB", goal=64,
               absolute=True),
    ]],
    *[dataclasses.replace(metric, compared="of Kubernetes") for metric in [
        Metric("kube_informer.memory", "informer over 150,000 pods of 4 KB: resident memory after sync, parts of "
               "the JSON", "", goal=1.2, absolute=True, digits=2),
        Metric("kube_informer.memory", "— in comparison", "", goal=1 / 2, digits=2),
        Metric("kube_informer.seconds", "— time until all are in the store and in a handler", "s", goal=1 / 3,
               digits=2),
        Metric("kube_informer.cpu_us", "— client CPU for each", "µs", goal=1 / 3, digits=2),
        Metric("kube_catch_up.rate", "catch-up over changes of 2 KB into the store and a handler, after the process "
               "was stopped", "/s", True, goal=100_000, absolute=True),
        Metric("kube_catch_up.rate", "— in comparison", "/s", True, goal=4),
        Metric("kube_catch_up.cpu_us", "— client CPU for each", "µs", digits=2),
        Metric("kube_catch_up.count", "— number of changes", ""),
        Metric("kube_client_idle.bytes", "1,000 idle watches (200 of client-go): resident memory of the client for "
               "each", "B", goal=4096, absolute=True),
        Metric("kube_client_idle.cpu_us", "— client CPU for each", "µs", digits=2),
    ]],
    *[dataclasses.replace(metric, compared="cluster") for metric in [
        Metric("cluster_watch.rate", "10,000 watchers of one prefix on 100 connections, 16 puts in flight, events", "/s",
               True, goal=10),
        Metric("cluster_watch.p99_ms", "— p99", "ms", digits=2),
        Metric("cluster_watch.members_times", "— the members' CPU with 50 puts a second, times that with one watcher",
               "", goal=1.1, absolute=True, digits=2),
        Metric("cluster_get.rate", "linearizable gets of one key, 1,000 in flight", "/s", True, goal=3),
        Metric("cluster_get.p50_ms", "— p50", "ms", digits=2),
        Metric("cluster_list.members_calls", "linearizable list of 10,000 keys: calls at the members for each", "",
               goal=1.1, absolute=True, digits=2),
        Metric("cluster_list.members_cpu_ms", "— the members' CPU for each", "ms", digits=2),
        Metric("cluster_list.p50_ms", "— p50", "ms", digits=2),
        Metric("cluster_catch_up.members_cores", "1,000 watchers that catch up over 100,000 revisions: cores that the "
               "members use for it", "", goal=0.05, absolute=True, digits=2),
        Metric("cluster_catch_up.rate", "— events", "/s", True),
        Metric("cluster_million.cold_s", "1,000,000 keys in the cluster: start with nothing, until the first get", "s",
               goal=10, absolute=True, digits=1),
        Metric("cluster_million_34.cold_s", "— the same in front of etcd 3.4", "s", goal=20, absolute=True, digits=1),
        Metric("cluster_million.warm_s", "— start again", "s", goal=1, absolute=True, digits=2),
        Metric("cluster_million.anonymous_mb", "— anonymous memory", "MB", goal=160, absolute=True),
    ]],
    *[dataclasses.replace(metric, compared="proxy") for metric in [
        Metric("proxy_cluster_watch.rate", "10,000 watchers of one prefix on 100 connections, 16 puts in flight, events",
               "/s", True, goal=10),
        Metric("proxy_cluster_watch.members_times", "— the members' CPU with 50 puts a second, times that with one "
               "watcher", "", digits=2),
        Metric("cluster_delay.put_ms", "added to the median of a put", "ms", goal=0.3, absolute=True, digits=2),
        Metric("cluster_delay.get_ms", "— of a linearizable get", "ms", goal=0.3, absolute=True, digits=2),
        Metric("cluster_delay.event_ms", "— of an event", "ms", goal=0.3, absolute=True, digits=2),
        Metric("proxy_cluster_get.rate", "linearizable gets of one key, 1,000 in flight", "/s", True),
        Metric("proxy_cluster_list.members_calls", "linearizable list of 10,000 keys: calls at the members for each", "",
               digits=2),
        Metric("proxy_cluster_list.members_cpu_ms", "— the members' CPU for each", "ms", digits=2),
        Metric("proxy_cluster_catch_up.members_cores", "1,000 watchers that catch up over 100,000 revisions: cores that "
               "the members use for it", "", digits=2),
        Metric("proxy_cluster_catch_up.rate", "— events", "/s", True),
    ]],
    *[dataclasses.replace(metric, compared="embedded") for metric in [
        Metric("embedded_get.us", "blocking get of one key", "µs", goal=1, absolute=True, digits=2),
        Metric("embedded_put.us", "durable put, one thread", "µs"),
        Metric("embedded_put.sync_us", "— fdatasync alone, of as many bytes", "µs"),
        Metric("embedded_put.more_us", "— more than that", "µs", goal=25, absolute=True),
        Metric("embedded_puts.rate", "durable puts, 64 threads", "/s", True, goal=300_000, absolute=True),
        Metric("embedded_puts.cpu_us", "— CPU for each", "µs", digits=2),
        Metric("embedded_events.cpu_us", "event to callback, CPU", "µs", goal=2, absolute=True, digits=2),
        Metric("embedded_open.s", "open with 1,000,000 keys, up to the first get", "s", goal=0.4, absolute=True, digits=2),
    ]],
    *[dataclasses.replace(metric, compared="tier") for metric in [
        Metric("tier_create.more_ms", "create of a ConfigMap, one at a time, p50, more than directly", "ms", goal=0.3, absolute=True,
               digits=2),
        Metric("tier_create.p50_ms", "— all of it", "ms", digits=2),
        Metric("tier_start.seconds", "1,000 informers start at once over 10,000 pods of 2 KB, until all have everything", "s", goal=1 / 10,
               digits=1),
        Metric("tier_start.lists", "— lists that the kube-apiserver saw, without fences", "", goal=1, absolute=True),
        Metric("tier_start.watches", "— watches that it saw", "", goal=1, absolute=True),
        Metric("tier_start.fences", "— fences", "", goal=3, absolute=True),
        Metric("tier_start.upstream_s", "— CPU of the kube-apiserver and its etcd", "s", digits=2),
        Metric("tier_start.tier_s", "— CPU of the tier", "s", digits=2),
        Metric("tier_start.generator_s", "— CPU of the informers", "s", digits=2),
        Metric("tier_start.retries", "— answers that they ask again later (429)", ""),
        Metric("tier_watch.upstream_times", "1,000 clients with ten watches each, 100 changes of 2 KB a second for 100 watches each: CPU "
               "of the kube-apiserver and its etcd, times that of one client without the tier", "", goal=1.1, absolute=True, digits=2),
        Metric("tier_watch.upstream_us", "— for each change", "µs"),
        Metric("tier_watch.alone_us", "— for each change, one client without the tier", "µs"),
        Metric("tier_watch.tier_us", "— CPU of the tier for each event delivered", "µs", digits=2),
        Metric("tier_watch.change_us", "— CPU of the tier for each change beside one client", "µs"),
        Metric("tier_watch.later_ms", "— p99, later than for one client without the tier", "ms", goal=5, absolute=True, digits=2),
        Metric("tier_watch.p50_ms", "— p50", "ms", digits=2),
        Metric("tier_watch.p99_ms", "— p99", "ms", digits=2),
        Metric("tier_watch.bytes", "— anonymous memory of a watch, ten on a connection", "B"),
        Metric("tier_watch.resident_mb", "— all resident memory of the tier", "MB"),
        Metric("tier_watch_max.rate", "as many watches, each of a ConfigMap of 2 KB by its name, as many changes as it can: events", "/s",
               True, goal=5),
        Metric("tier_watch_max.cpu_us", "— CPU of all that serves them for each", "µs", digits=2),
        Metric("tier_watch_max.upstream_us", "— CPU of the kube-apiserver and its etcd for each change", "µs"),
        Metric("tier_watch_max.generator_us", "— CPU of the clients for each", "µs", digits=2),
        Metric("tier_memory.times", "mirror of pods of 4 KB, all resident memory, times their JSON", "", goal=1.3, absolute=True, digits=2),
        Metric("tier_memory.json_mb", "— their JSON", "MB"),
        Metric("tier_rights.rate", "1,000 users with ten watches each: reviews at the kube-apiserver", "/s", goal=200, absolute=True),
        Metric("tier_rights.upstream_cores", "— CPU of the kube-apiserver and its etcd, with one change a second", "cores", digits=2),
        Metric("tier_rights.tier_cores", "— CPU of the tier", "cores", digits=2),
    ]],
    *[dataclasses.replace(metric, compared="cel-go") for metric in [
        Metric("cel_rule.us", "CEL: a rule that compares two fields", "µs", goal=1 / 10, digits=3),
        Metric("cel_rule.us", "— the figure itself", "µs", goal=0.5, absolute=True, digits=3),
        Metric("cel_all.us", "all over 1,000 items", "µs", goal=1 / 20),
        Metric("cel_all.us", "— the figure itself", "µs", goal=100, absolute=True),
        Metric("cel_map.us", "map over 1,000 items", "µs", goal=1 / 20),
        Metric("cel_map.us", "— the figure itself", "µs", goal=100, absolute=True),
    ]],
    *[dataclasses.replace(metric, compared="library") for metric in [
        Metric("rules.compile_ms", "the 89 rules of gateway-api's HTTPRoute compiled, with the estimate of their cost", "ms", goal=5,
               absolute=True, digits=2),
        Metric("rules.bytes", "— memory of each", "B", goal=2048, absolute=True),
        Metric("rules.evaluate_us", "a write of an object with one rule that compares two fields, its rules only", "µs", goal=1 / 10,
               digits=2),
    ]],
    *[dataclasses.replace(metric, key=f"{store}_{metric.key}", compared=store) for store in ("sqlite", "lmdb") for metric in [
        Metric("get.us", "blocking get of one key", "µs", digits=2),
        Metric("put.us", "durable put, one thread", "µs"),
        Metric("puts.rate", "durable puts, 64 threads", "/s", True),
        Metric("open.s", "open with 1,000,000 keys, up to the first get", "s", digits=4),
    ]],
]


def middle(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "samples": values}


def reached(metric, vigil, etcd):
    if metric.goal is None or vigil is None or (etcd is None and not metric.absolute):
        return None
    value = vigil["median"] if metric.absolute else vigil["median"] / etcd["median"]
    return value >= metric.goal if metric.more_is_better else value <= metric.goal


def samples_of(results):
    """Samples by metric of results that were written."""
    found = {}
    for metric in results.get("metrics", []):
        found[metric["key"]] = {name: metric[name]["samples"] for name in ("vigil", "etcd") if metric[name]}
    return found


def added_to(earlier, results, samples):
    """The results, with what an earlier run has measured and this one has not. They say when and with what that was."""
    kept = {key: found for key, found in samples_of(earlier).items() if key not in samples}
    both = summarize({**kept, **samples}, results["machine"], results["seconds"])
    fresh = {plot["title"] for plot in results["plots"]}
    before = earlier["machine"]
    return {**both, OTHER_CORES: {**earlier[OTHER_CORES], **results[OTHER_CORES]},
            "latency_us": {row: found or earlier["latency_us"].get(row, {}) for row, found in results["latency_us"].items()},
            "plots": [plot for plot in earlier.get("plots", []) if plot["title"] not in fresh] + results["plots"],
            "earlier": [*earlier.get("earlier", []), {"date": before["date"], "commit": before["commit"], "numbers": len(kept)}]}


def latencies(samples):
    """Median and p99 by row and server, for the plot."""
    rows = {}
    for row in ("put_one", "put_many", "get"):
        p50, p99 = samples.get(f"{row}.p50_us", {}), samples.get(f"{row}.p99_us", {})
        rows[row] = {name: [statistics.median(p50[name]), statistics.median(p99[name])]
                     for name in p50 if name in p99}
    return rows


def summarize(samples, machine, seconds, known=METRICS):
    metrics = []
    for metric in known:
        by_server = {name: middle(values) for name, values in samples.get(metric.key, {}).items()}
        vigil, etcd = by_server.get("vigil"), by_server.get("etcd")
        if not by_server:
            continue
        both = vigil and etcd and etcd["median"]
        metrics.append({**dataclasses.asdict(metric), "vigil": vigil, "etcd": etcd,
                        "ratio": vigil["median"] / etcd["median"] if both else None,
                        "reached": reached(metric, vigil, etcd)})
    return {"machine": machine, "seconds": seconds, "metrics": metrics,
            "latency_us": latencies(samples), OTHER_CORES: other_cores(samples)}


def other_cores(samples):
    """By row: the most CPU that other processes used during any of its rounds."""
    found = {}
    for key, by_server in samples.items():
        row, _, metric = key.rpartition(".")
        if metric == OTHER_CORES:
            found[row] = max(v for values in by_server.values() for v in values)
    return found


def number(metric, value):
    return f"{value:,.{metric['digits']}f}"


def cell(metric, found):
    """The median, and how far the rounds lay from it."""
    if found is None:
        return "–"
    text = f"{number(metric, found['median'])} {metric['unit']}".rstrip()
    if len(found["samples"]) > 1 and found["median"]:
        spread = max(found["max"] - found["median"], found["median"] - found["min"])
        text += f" ±{100 * spread / abs(found['median']):.0f} %"
    return text


def ratio_text(metric):
    if metric["ratio"] is None or metric["ratio"] < 0:
        return "–"  # what is added may be less than nothing, and then a ratio says nothing
    if metric["more_is_better"] or metric["ratio"] >= 1 or metric["ratio"] == 0:
        return f"{metric['ratio']:.2f} ×"
    return f"1/{1 / metric['ratio']:.{1 if metric['ratio'] <= 0.1 else 2}f}"


def goal_text(metric):
    if metric["goal"] is None:
        return ""
    if metric["absolute"]:
        bound = "at least" if metric["more_is_better"] else "at most"
        return f"{bound} {metric['goal']:,.12g} {metric['unit']}".rstrip()
    if metric["more_is_better"]:
        return f"at least {metric['goal']:g} ×"
    return f"at most 1/{1 / metric['goal']:g}"


def subjects(metric):
    """What is compared: the peer's and ours."""
    return {"servers": ("etcd", "Vigil"), "kube-apiserver": ("kube-apiserver on etcd", "Vigil"), "of etcd": ("clientv3", "libvigil"),
            "of Kubernetes": ("client-go", "libvigil-kube"), "cluster": ("three members", "Vigil in front"),
            "proxy": ("grpc-proxy in front", "Vigil in front"), "embedded": ("etcd over loopback", "libvigil-embed"),
            "sqlite": ("SQLite, WAL, synchronous=FULL", "libvigil-embed"),
            "lmdb": ("LMDB alone", "libvigil-embed"), "cel-go": ("cel-go", "Vigil"),
            "tier": ("kube-apiserver directly", "through the tier"),
            "library": ("Kubernetes' library on cel-go", "Vigil")}[metric["compared"]]


def table(results):
    """One for the servers, one for a real kube-apiserver, one for each kind of clients that was measured, two for a cluster, three for
    the store in a program, one for the watch tier, and two for expressions."""
    parts = [[m for m in results["metrics"] if m["compared"] == compared]
             for compared in ("servers", "kube-apiserver", "of etcd", "of Kubernetes", "cluster", "proxy", "embedded", "sqlite", "lmdb",
                              "tier", "cel-go", "library")]
    return "\n\n".join(part_of_table(metrics) for metrics in parts if metrics)


def part_of_table(metrics):
    peer, ours = subjects(metrics[0])
    lines = [f"| work | {peer} | {ours} | {ours} to {peer} | goal | |",
             "| --- | ---: | ---: | ---: | --- | --- |"]
    for metric in metrics:
        mark = {True: "reached", False: "**missed**", None: ""}[metric["reached"]]
        lines.append(f"| {metric['text']} | {cell(metric, metric['etcd'])} | "
                     f"{cell(metric, metric['vigil'])} | {ratio_text(metric)} | "
                     f"{goal_text(metric)} | {mark} |")
    return "\n".join(lines)


def warning(results):
    """Other processes take cores and caches: above a tenth of a core, measure again."""
    text = f"at most {max(results[OTHER_CORES].values(), default=0):.2f} cores in any round"
    busy = [row for row, cores in results[OTHER_CORES].items() if cores > OTHER_CORES_MAX]
    if busy:
        text += f": **not a quiet machine, do not trust the numbers of {', '.join(busy)}**"
    return text


def earlier_runs(results):
    """Where the numbers are from that this run has not measured."""
    return [(f"up to {e['numbers']} of these numbers", f"of the run of {e['date']}, commit {e['commit']}")
            for e in results.get("earlier", [])]


def page(results):
    m = results["machine"]
    return f"""# Vigil and etcd on the same machine

Written by `make bench`; how to read it is in [bench/README.md](../README.md). 256-byte values, no TLS, everything
on loopback, a fresh server and data directory for each round. Medians of the rounds; ± is the round farthest from it.

{table(results)}

![Bars for each row of the table](overview.svg)

![Quantiles of latency](latency.svg)

| | |
| --- | --- |
| date | {m['date']} |
| machine | {m['cores']} cores, {m['cpu']} ({m['architecture']}), {m['memory_gb']} GB, Linux {m['kernel']} |
| disk | {m['filesystem']}, fdatasync of 4 KiB {m['fdatasync_us']} µs |
| Vigil | {m['vigil']}, commit {m['commit']} |
| etcd | {m['etcd']} |
| took | {results['seconds']:.0f} s |
| other work on the machine | {warning(results)} |
""" + "".join(f"| {name} | {value} |\n" for name, value in earlier_runs(results))


def write_data(results, file):
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def write(results, directory):
    write_data(results, directory / "latest.json")
    (directory / "README.md").write_text(page(results))
