/*
 * The rules of an election by a Lease, those of client-go's leaderelection: which request comes
 * next, and which candidate leads. It has no connection and no clock of its own.
 *
 *     waiting ──► reading ──► writing ──► waiting …
 *        └───────────────────────▲  (the leader renews what it wrote, without reading it)
 *
 * A candidate takes the lease if it is free, or if it has seen no change of it for the lease's
 * duration; only durations are measured, so the clocks of the candidates need not agree. A leader
 * that could not renew the lease within the deadline stops leading before another can begin: the
 * deadline is shorter than the duration.
 *
 * Owned by a candidate; the loop's thread. Times are of its monotonic clock, unless they are called
 * wall.
 */
#ifndef VIGIL_KUBECLIENT_LEADER_ELECTION_H
#define VIGIL_KUBECLIENT_LEADER_ELECTION_H

#include "base/random.h"
#include "kubeclient/leader/lease_record.h"

struct election_options {
    const char *identity; /* borrowed; shorter than LEASE_IDENTITY_BYTES */
    int64_t duration_ns;  /* whole seconds */
    int64_t deadline_ns, retry_ns;
};

enum election_state {
    ELECTION_WAITING,
    ELECTION_READING, /* the Lease is being read */
    ELECTION_WRITING, /* it is being created or updated with `wanted` */
};

struct election {
    struct election_options options;
    enum election_state state;
    struct random random;
    struct lease_record observed; /* the latest one that was read or written */
    struct lease_record wanted;
    bool creates;     /* writing: there is no Lease yet */
    bool from_memory; /* writing: the Lease was not read before */
    bool leads;
    int64_t observed_ns; /* when `observed` was seen first; 0: never */
    int64_t begun_ns;    /* when the attempt under way began */
    int64_t renewed_ns;  /* leads: the beginning of the last successful attempt */
    int64_t give_up_ns;  /* leads: without a success until then it stops leading */
    int64_t next_ns;     /* waiting: when the next attempt begins */
};

void election_init(struct election *election, const struct election_options *options,
                   uint64_t seed);

/* Waiting, and next_ns has come: begins an attempt. The state afterwards says which request is to
 * be made: reading, or writing `wanted` over the Lease that was written last. */
void election_begin(struct election *election, int64_t now_ns, int64_t wall_ns);

/* The Lease was read; lease is empty if it does not exist. Waiting: another candidate holds it.
 * Writing: `wanted` is to be written. */
void election_read(struct election *election, struct slice lease, int64_t now_ns, int64_t wall_ns);
/* `wanted` was written: this candidate leads. */
void election_wrote(struct election *election, int64_t now_ns);
/* The request failed. A leader whose Lease had changed reads it now, the others wait. */
void election_failed(struct election *election, int64_t now_ns);

/* When a leader stops leading unless it succeeds before; CLOCK_NEVER if it does not lead. */
int64_t election_deadline_ns(const struct election *election);
/* Stops leading: the deadline has come, or the owner wants it. A request under way is forgotten. */
void election_stop_leading(struct election *election, int64_t now_ns);

/* The record that releases the lease for others. */
struct lease_record election_release(const struct election *election, int64_t wall_ns);

/* The identity of the leader as it was observed; "" if there is none. */
const char *election_leader(const struct election *election);

/* Asserts every invariant; for tests. */
void election_check(const struct election *election);

#endif
