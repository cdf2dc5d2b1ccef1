/*
 * Where the raft log of the cluster was at some time, to decide later whether the cluster can have
 * been restored from a snapshot in between. Neither the ids nor the revision say that: a restored
 * cluster may keep its ids, and be written until it has passed the old revision. But it begins a
 * new log, so it would have to have written as many entries as the old one in less time.
 *
 *     index  ▲            ╱ old                 restored: cannot be at the old index so soon
 *            │          ╱
 *            │        ●  followed           ╱
 *            │                            ╱  restored
 *            └────────┼──── time ───────┼────────►
 *
 * It says nothing of members whose files were replaced by older copies of themselves.
 */
#ifndef VIGIL_MIRROR_DIRECTORY_RAFT_MARK_H
#define VIGIL_MIRROR_DIRECTORY_RAFT_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct vigil_status_response;

/* Entries that no etcd writes in a second: several times as many as were ever measured. */
enum { RAFT_ENTRIES_PER_S_MAX = 100 * 1000 };

struct raft_mark {
    uint64_t index; /* index of the last entry that is committed; 0: not known */
    int64_t at_ms;  /* since 1970 */
};

/* The mark of an answer that has just come. */
struct raft_mark raft_mark_of(const struct vigil_status_response *status, struct loop *loop);
/* Both are of the same log. False: they may be, but need not. */
bool raft_mark_is_same_log(struct raft_mark before, struct raft_mark now);

#endif
