/*
 * The last changes that the mirror has, as evidence of its past: if the cluster has other ones at
 * these revisions, the mirror is of another past, whatever the ids and revisions are.
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

enum witness_kind { WITNESS_PUT, WITNESS_GONE, WITNESS_WAS_THERE, WITNESS_KINDS };

struct witness {
    /* The last put; its revision is 0 if there is none. */
    struct buf key;
    int64_t revision, create_revision, version, lease;
    size_t value_bytes;
    uint32_t value_crc;
    /* The last delete, if it is later. */
    struct buf gone_key;
    int64_t gone_revision;
};

void witness_fini(struct witness *witness); /* it is empty afterwards */
/* Takes the newest put that the mirror has as the witness. */
void witness_find(struct witness *witness, struct engine *mirror);
/* A change, not older than those before. Aborts without memory. */
void witness_note(struct witness *witness, const struct imported_change *change);
/* The last put of these changes, and the last one if it is a delete. */
void witness_note_last(struct witness *witness, const struct imported_change *changes,
                       size_t count);

/* What to read, by linearizable ranges. False: this kind has nothing to say. */
MUST_CHECK
bool witness_question(const struct witness *witness, enum witness_kind kind, struct slice *ret_key,
                      int64_t *ret_revision);
/* Whether the answer is that of the same past; NULL: the key does not exist. */
MUST_CHECK
bool witness_agrees(const struct witness *witness, enum witness_kind kind, const vigil_kv *kv);

#endif
