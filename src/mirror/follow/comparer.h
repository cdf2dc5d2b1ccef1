/*
 * Compares the histories of the mirror and of the cluster, by linearizable reads: a member that is
 * merely behind does not answer them, and without a quorum none does.
 *
 *     version of the server ──► the reads of the history check, one after the other ──► its raft log
 *
 * Another cluster id, a revision or a term below the last one, or another change at the revision of
 * the mirror's last changes means another history. That all of them agree does not prove that it is
 * the same: a change before them may differ, or the cluster may have compacted them. The raft log
 * can (directory/raft_mark.h), and if it does not, the states must be compared.
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_COMPARER_H
#define VIGIL_MIRROR_FOLLOW_COMPARER_H

#include "mirror/directory/raft_mark.h"
#include "mirror/follow/history_check.h"

#include <vigil/call.h>

struct comparer;

enum comparer_verdict {
    COMPARER_SAME,
    COMPARER_UNPROVEN, /* nothing differs, which proves nothing */
    COMPARER_OTHER,    /* another history */
    COMPARER_FAILED,   /* the cluster does not answer */
};

struct comparer_result {
    enum comparer_verdict verdict;
    char reason[VIGIL_ERROR_TEXT_BYTES]; /* if it is another one, or failed */
    vigil_header header;                 /* header of the last linearizable answer */
    char version[32];                    /* version of the server; "" if it does not say */
};

struct comparer_question {
    const struct history_check *history_check; /* borrowed; does not change until the verdict */
    int64_t mirrored;                          /* the cluster's revision is not below */
    uint64_t cluster_id;                       /* 0: not known yet */
    uint64_t raft_term;                        /* term of the last comparison; 0: not known */
    struct raft_mark raft;                     /* when the cluster was last followed */
    bool is_proven;   /* that the past is the same; only the header is needed */
    struct slice key; /* one that may be read; borrowed */
};

struct comparer *comparer_new(vigil_client *client,
                              void (*done)(void *ctx, const struct comparer_result *result),
                              void *ctx);      /* aborts without memory */
void comparer_free(struct comparer *comparer); /* accepts NULL */

/* done is called once, but not from within. It is idle. */
void comparer_start(struct comparer *comparer, const struct comparer_question *question);
/* done is not called any more. */
void comparer_cancel(struct comparer *comparer);

#endif
