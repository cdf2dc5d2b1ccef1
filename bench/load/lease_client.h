/*
 * Grants leases and keeps them alive: grants as unary calls, so many in flight on each connection;
 * renewals on one stream of each connection, so many unanswered. Everything runs on the caller's
 * thread, in its calls of bench_lease_client_turn.
 */
#ifndef VIGIL_LOAD_LEASE_CLIENT_H
#define VIGIL_LOAD_LEASE_CLIENT_H

#include "load/load.h"

/* So that every id takes the same bytes: room for millions. */
#define BENCH_LEASE_FIRST_ID (UINT64_C(1) << 28)

struct bench_lease_config {
    const struct bench_target *target;
    uint32_t connections;
    uint32_t pipeline; /* grants in flight, or renewals unanswered, on each connection */
    uint64_t leases;
};

struct bench_lease_counts {
    uint64_t granted;
    uint64_t renewed;
    struct bench_histogram grant_latency, renew_latency;
    struct bench_outcome trouble; /* errors, first_error */
};

struct bench_lease_client;

MUST_CHECK
enum status bench_lease_client_new(const struct bench_lease_config *config,
                                   struct bench_lease_client **ret_client, struct error *error);
void bench_lease_client_free(struct bench_lease_client *client);
DEFINE_CLEANUP(struct bench_lease_client *, bench_lease_client_free)

/* From grants to renewals, when all are granted; and to letting what is under way end. */
void bench_lease_client_renew(struct bench_lease_client *client);
void bench_lease_client_stop(struct bench_lease_client *client);
/* Nothing is under way. */
bool bench_lease_client_idle(const struct bench_lease_client *client);

/* Sends as many requests as allowed, waits for the sockets up to wait_ns and handles answers. */
MUST_CHECK
enum status bench_lease_client_turn(struct bench_lease_client *client, uint64_t wait_ns,
                                    struct error *error);

const struct bench_lease_counts *bench_lease_client_counts(const struct bench_lease_client *client);

#endif
