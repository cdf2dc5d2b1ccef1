/*
 * What a run has covered, for the report: how often each request was made, and how often each fault
 * has really happened, which is less often than it was planned.
 */
#ifndef VIGIL_TESTS_SIM_COVERAGE_H
#define VIGIL_TESTS_SIM_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The first kinds of requests are those of operations.h, in the same order. */
#define COVERAGE_TABLE(X)                                                      \
    X(RANGE, "requests: range")                                                \
    X(PUT, "requests: put")                                                    \
    X(DELETE, "requests: delete")                                              \
    X(TXN, "requests: transaction")                                            \
    X(GRANT, "requests: lease granted")                                        \
    X(REVOKE, "requests: lease revoked")                                       \
    X(COMPACT, "requests: compaction")                                         \
    X(LOCK, "requests: lock")                                                  \
    X(RENEWAL, "requests: renewal that arrived")                               \
    X(WATCH, "requests: watch")                                                \
    X(SNAPSHOT, "requests: snapshot")                                          \
    X(HASH, "requests: hash")                                                  \
    X(DEFRAGMENT, "requests: defragmentation")                                 \
    X(RIGHT, "requests: permission, role or user granted or revoked")          \
    X(KUBE_CREATE, "requests: Kubernetes create")                              \
    X(KUBE_UPDATE, "requests: Kubernetes update")                              \
    X(KUBE_PATCH, "requests: Kubernetes patch")                                \
    X(KUBE_GET, "requests: Kubernetes get")                                    \
    X(KUBE_DELETE, "requests: Kubernetes delete")                              \
    X(INFORMED, "changes that an informer has shown")                          \
    X(REFUSED, "requests that were refused")                                   \
    X(UNKNOWN, "requests without an answer")                                   \
    X(CUT, "faults: power cut")                                                \
    X(LOST, "faults: all unsynced writes of a file lost")                      \
    X(TORN, "faults: last unsynced write of a file torn")                      \
    X(REORDERED, "faults: unsynced sectors of a file reordered")               \
    X(MISDIRECTED, "faults: sector in the wrong place")                        \
    X(KILL, "faults: kill")                                                    \
    X(STOP, "faults: stop and start")                                          \
    X(IO_ERROR, "faults: call of the disk failed")                             \
    X(FULL, "faults: call of the disk refused because it was full")            \
    X(FULL_MIRROR, "faults: batch of a mirror refused because of a full disk") \
    X(SLOW, "faults: sync that took a second")                                 \
    X(ROT, "faults: changed bit")                                              \
    X(BREAK, "faults: broken connection")                                      \
    X(LINK, "faults: all connections between the servers cut")                 \
    X(SILENCE, "faults: half-open connection")                                 \
    X(DELAY, "faults: slow connection")                                        \
    X(PAUSE, "faults: pause of a thread")                                      \
    X(CLOCK_SET, "faults: time of day set")                                    \
    X(SUSPEND, "faults: both clocks jumped")

#define COVERAGE_ENUM(id, name) COVERAGE_##id,
enum coverage { COVERAGE_TABLE(COVERAGE_ENUM) COVERAGES };
#undef COVERAGE_ENUM

/* [1]: of the server in front, or of a seed with one if the fault belongs to no server. */
struct coverage_counts {
    uint64_t of[COVERAGES][2];
};

void coverage_begin(bool has_front);
void coverage_add(enum coverage what);
void coverage_add_at(enum coverage what, bool in_front, uint64_t count);
const struct coverage_counts *coverage_counts(void);
const char *coverage_name(enum coverage what);

#endif
