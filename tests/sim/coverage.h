/*
 * What a run has covered, for the report: how often each request was made, and how often each fault
 * has really happened, which is less often than it was planned.
 */
#ifndef VIGIL_TESTS_SIM_COVERAGE_H
#define VIGIL_TESTS_SIM_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The first kinds of requests are those of operations.h, in the same order. Faults of one server
 * begin with CUT, the others with BREAK. */
#define COVERAGE_TABLE(X)                                              \
    X(RANGE, "range")                                                  \
    X(PUT, "put")                                                      \
    X(DELETE, "delete")                                                \
    X(TXN, "transaction")                                              \
    X(GRANT, "lease granted")                                          \
    X(REVOKE, "lease revoked")                                         \
    X(COMPACT, "compaction")                                           \
    X(LOCK, "lock")                                                    \
    X(RENEWAL, "renewal that arrived")                                 \
    X(WATCH, "watch")                                                  \
    X(SNAPSHOT, "snapshot")                                            \
    X(HASH, "hash")                                                    \
    X(DEFRAGMENT, "defragmentation")                                   \
    X(RIGHT, "permission, role or user granted or revoked")            \
    X(KUBE_CREATE, "Kubernetes create")                                \
    X(KUBE_UPDATE, "Kubernetes update")                                \
    X(KUBE_PATCH, "Kubernetes patch")                                  \
    X(KUBE_GET, "Kubernetes get")                                      \
    X(KUBE_DELETE, "Kubernetes delete")                                \
    X(INFORMED, "change that an informer has shown")                   \
    X(TIER_LIST, "list through the watch tier")                        \
    X(TIER_GET, "get from the watch tier")                             \
    X(TIER_WATCH, "watch through the watch tier")                      \
    X(TIER_EVENT, "event of such a watch")                             \
    X(TIER_EXPIRED, "such a watch ended because of lost history")      \
    X(REFUSED, "request that was refused")                             \
    X(UNKNOWN, "request without an answer")                            \
    X(CUT, "power cut")                                                \
    X(LOST, "all unsynced writes of a file lost")                      \
    X(TORN, "last unsynced write of a file torn")                      \
    X(REORDERED, "unsynced sectors of a file reordered")               \
    X(MISDIRECTED, "sector in the wrong place")                        \
    X(KILL, "kill")                                                    \
    X(STOP, "stop and start")                                          \
    X(IO_ERROR, "disk call failed")                                    \
    X(FULL, "disk call refused because the disk was full")             \
    X(FULL_MIRROR, "batch of a mirror refused because of a full disk") \
    X(SLOW, "sync that took a second")                                 \
    X(ROT, "changed bit")                                              \
    X(DISCARD, "damaged mirror loaded again")                          \
    X(BREAK, "broken connection")                                      \
    X(LINK, "all connections between the servers cut")                 \
    X(SILENCE, "half-open connection")                                 \
    X(DELAY, "slow connection")                                        \
    X(PAUSE, "pause of a thread")                                      \
    X(CLOCK_SET, "time of day set")                                    \
    X(SUSPEND, "both clocks jumped")                                   \
    X(EMPTY, "another history behind a watch tier")                    \
    X(THROTTLED, "request of a watch tier refused with 429")           \
    X(UNREADABLE, "read behind a watch tier failed with 500")          \
    X(EXPIRED, "token of a watch tier's client expired")               \
    X(UNDEFINED, "definition of a custom resource deleted")

#define COVERAGE_ENUM(id, name) COVERAGE_##id,
enum coverage { COVERAGE_TABLE(COVERAGE_ENUM) COVERAGES };
#undef COVERAGE_ENUM

/* [1]: of the server in front, or in seeds with one if it belongs to no server. */
struct coverage_counts {
    uint64_t of[COVERAGES][2];
};

void coverage_begin(bool has_front);
void coverage_add(enum coverage what);
void coverage_add_at(enum coverage what, bool in_front, uint64_t count);
const struct coverage_counts *coverage_counts(void);
const char *coverage_name(enum coverage what);

#endif
