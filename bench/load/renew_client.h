/*
 * Heartbeats of nodes on the Kubernetes API, as kubelets make them: each node reads an object of
 * its own once, and from then on sends the last answer back with another time. The object is the
 * node's Lease, replaced by PUT; or one of its pods, whose status is patched. Everything runs on
 * the caller's thread, in its calls of bench_renew_client_turn.
 */
#ifndef VIGIL_LOAD_RENEW_CLIENT_H
#define VIGIL_LOAD_RENEW_CLIENT_H

#include "load/load.h"

#define BENCH_LEASES_PATH "/apis/coordination.k8s.io/v1/namespaces/default/leases"

struct bench_renew_config {
    const struct bench_target *target;
    uint32_t connections;
    uint32_t nodes; /* on each connection, with one request in flight for each */
    uint64_t rate;  /* requests per second, of all nodes in turn; 0: as soon as the last is answered
                     */
    bool pods;      /* the status of a pod instead of a Lease */
};

struct bench_renew_counts {
    uint64_t read, renewed;
    uint64_t missed;                /* were due while the one before was still in flight */
    struct bench_histogram latency; /* from when a renewal was due */
    struct bench_outcome trouble;   /* errors, first_error */
};

struct bench_renew_client;

/* Opens all connections and reads all objects. */
MUST_CHECK
enum status bench_renew_client_new(const struct bench_renew_config *config,
                                   struct bench_renew_client **ret_client, struct error *error);
void bench_renew_client_free(struct bench_renew_client *client);
DEFINE_CLEANUP(struct bench_renew_client *, bench_renew_client_free)

/* All objects have been read: renews from here on, until stopped. */
MUST_CHECK
enum status bench_renew_client_renew(struct bench_renew_client *client, struct error *error);
/* Latencies are kept from here on. */
void bench_renew_client_record(struct bench_renew_client *client);
void bench_renew_client_stop(struct bench_renew_client *client);
/* Nothing is under way. */
bool bench_renew_client_idle(const struct bench_renew_client *client);

/* Sends what is due, waits for the sockets up to wait_ns and handles answers. */
MUST_CHECK
enum status bench_renew_client_turn(struct bench_renew_client *client, uint64_t wait_ns,
                                    struct error *error);

const struct bench_renew_counts *bench_renew_client_counts(const struct bench_renew_client *client);

#endif
