/*
 * Many watches of pods on the Kubernetes API, and one connection that changes the pods they watch.
 * A watch is one stream and sees the pods of one node, or one ConfigMap. Everything runs on the
 * caller's thread, in its calls of bench_kube_client_turn.
 */
#ifndef VIGIL_LOAD_KUBE_CLIENT_H
#define VIGIL_LOAD_KUBE_CLIENT_H

#include "load/load.h"

struct bench_kube_config {
    const struct bench_target *target;
    uint32_t connections;
    uint32_t streams; /* watches on each connection */
    uint32_t nodes;   /* and as many ConfigMaps */
    uint32_t users;   /* that connections present in turn, as digits behind the token; 0: none */
    bool initial; /* all pods as an informer's start asks for them, instead of one node's changes */
    bool configs; /* ConfigMaps, of which a watch names one, instead of pods */
    bool spread;  /* those of one node are on different connections, instead of together */
    uint32_t stopped; /* more connections, each with one watch of all pods, that are not read */
    uint64_t pods;    /* or ConfigMaps, which are changed one after the other */
    size_t pod_bytes;
    uint32_t pipeline; /* changes in flight */
};

struct bench_kube_counts {
    uint64_t opened; /* watches whose answer has begun, stopped ones too */
    uint64_t events;
    uint64_t synced;   /* watches to which all initial events have come */
    uint64_t retries;  /* watches that asked again when the server had said when */
    uint64_t expected; /* events of the changes that were answered */
    uint64_t changes_sent, changes_done;
    uint64_t last_event_ns;
    struct bench_histogram event_latency; /* from when the change was due */
    struct bench_histogram change_latency;
    struct bench_histogram sync_latency; /* from the opening of the first connection */
    struct bench_outcome trouble;        /* errors, first_error */
};

struct bench_kube_client;

/* Opens all connections and asks for all watches. */
MUST_CHECK
enum status bench_kube_client_new(const struct bench_kube_config *config,
                                  struct bench_kube_client **ret_client, struct error *error);
void bench_kube_client_free(struct bench_kube_client *client);
DEFINE_CLEANUP(struct bench_kube_client *, bench_kube_client_free)

/* Those that are to stop reading do. */
MUST_CHECK
enum status bench_kube_client_stop(struct bench_kube_client *client);

/* Begins a change that carries at_ns as its time; false when all of the pipeline is in flight. */
bool bench_kube_client_change(struct bench_kube_client *client, uint64_t at_ns);

/* Waits for the sockets up to wait_ns and handles what arrived. */
MUST_CHECK
enum status bench_kube_client_turn(struct bench_kube_client *client, uint64_t wait_ns,
                                   struct error *error);

/* Latencies are kept from here on; before, events and changes are only counted. */
void bench_kube_client_record(struct bench_kube_client *client);

const struct bench_kube_counts *bench_kube_client_counts(const struct bench_kube_client *client);

#endif
