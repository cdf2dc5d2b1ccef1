/*
 * The last changes that the mirror has, as evidence of its past: if the cluster has other ones at
 * these revisions, the mirror is of another history, whatever the ids and revisions are.
 *
 *     the last put       the key exists at that revision, with the same numbers and value
 *     a later delete     the key does not exist at that revision, but did at the one before
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_HISTORY_CHECK_H
#define VIGIL_MIRROR_FOLLOW_HISTORY_CHECK_H

#include "base/buf.h"
#include "store/mvcc/applier.h"

#include <vigil/types.h>

struct engine;

enum history_check_kind {
    HISTORY_CHECK_PUT,
    HISTORY_CHECK_GONE,
    HISTORY_CHECK_WAS_THERE,
    HISTORY_CHECK_KINDS
};

struct history_check {
    /* The last put; its revision is 0 if there is none. */
    struct buf key;
    int64_t revision, create_revision, version, lease;
    size_t value_bytes;
    uint32_t value_crc;
    /* The last delete, if it is later. */
    struct buf gone_key;
    int64_t gone_revision;
};

void history_check_fini(struct history_check *check); /* it is empty afterwards */
/* Takes the newest put that the mirror has as evidence. */
void history_check_find(struct history_check *check, struct engine *mirror);
/* A change, not older than those before. Aborts without memory. */
void history_check_note(struct history_check *check, const struct imported_change *change);
/* The last put of these changes, and the last one if it is a delete. */
void history_check_note_last(struct history_check *check, const struct imported_change *changes,
                             size_t count);

/* What to read, by linearizable ranges. False: this kind has nothing to say. */
MUST_CHECK
bool history_check_question(const struct history_check *check, enum history_check_kind kind,
                            struct slice *ret_key, int64_t *ret_revision);
/* Whether the answer is that of the same past; NULL: the key does not exist. */
MUST_CHECK
bool history_check_agrees(const struct history_check *check, enum history_check_kind kind,
                          const vigil_kv *kv);

#endif
