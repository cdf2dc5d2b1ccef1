/* What one run of vigil-bench carries from its flags to its report. Lives on main's stack. */
#ifndef VIGIL_LOAD_CONTEXT_H
#define VIGIL_LOAD_CONTEXT_H

#include "load/load.h"
#include "load/options.h"
#include "load/report.h"
#include "load/watch_client.h"

struct bench_context {
    struct bench_options options;
    struct bench_target target;
    enum bench_order order;
    enum bench_watch_keys watch_keys;
    bool own_clients; /* the command connects by itself: endpoint and TLS of the target are unset */
    struct bench_report report;
    struct error error; /* set when a run does not return ST_OK */
};

/* The load that the flags describe. */
struct bench_load bench_context_load(const struct bench_context *context, enum bench_verb verb);

/* Puts every key of the key space once; any failed call fails it. */
MUST_CHECK
enum status bench_context_put_all(struct bench_context *context, enum bench_order order);

/* The commands. Each measures, fills the report, and fails if any call failed. */
MUST_CHECK
enum status bench_put_run(struct bench_context *context);
MUST_CHECK
enum status bench_get_run(struct bench_context *context);
MUST_CHECK
enum status bench_list_run(struct bench_context *context);
MUST_CHECK
enum status bench_load_all_run(struct bench_context *context);
/* Tries until a get of the first key succeeds, and tells when it did. */
MUST_CHECK
enum status bench_ready_run(struct bench_context *context);
/* Watchers on a prefix while it is put: events per second, and how late they are. */
MUST_CHECK
enum status bench_watch_run(struct bench_context *context);
/* Watchers that start in the past: how fast the history of --total puts arrives, and what the
 * server needs for it. If --duration ends first, the report covers the part that arrived. */
MUST_CHECK
enum status bench_catchup_run(struct bench_context *context);
/* Makes watchers and holds them: what they cost the server, and how fast they were made. */
MUST_CHECK
enum status bench_watch_idle_run(struct bench_context *context);
/* Holds connections, and watchers if --streams is given. */
MUST_CHECK
enum status bench_idle_run(struct bench_context *context);
/* Grants --total leases, then renews them for --duration: both rates, and what a lease costs. */
MUST_CHECK
enum status bench_lease_run(struct bench_context *context);
/* On the Kubernetes API: creates pods; lists them; watches them by node while they change. */
MUST_CHECK
enum status bench_kube_load_run(struct bench_context *context);
MUST_CHECK
enum status bench_kube_list_run(struct bench_context *context);
MUST_CHECK
enum status bench_kube_watch_run(struct bench_context *context);
/* Informers that start at once: until all pods have come to each of them. */
MUST_CHECK
enum status bench_kube_start_run(struct bench_context *context);
/* Nodes that renew their Leases, or patch the status of a pod. */
MUST_CHECK
enum status bench_kube_renew_run(struct bench_context *context);
/* With --prepare: creates objects like this one at --path, or pods if it is empty. */
MUST_CHECK
enum status bench_kube_prepare(struct bench_context *context, struct slice object);
/* Simulated nodes with all that they do: see scale/scale.c. */
MUST_CHECK
enum status bench_kube_scale_run(struct bench_context *context);
/* Serves as a sink until it is killed. */
MUST_CHECK
enum status bench_sink_run(struct bench_context *context);

#endif
