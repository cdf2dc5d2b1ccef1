/*
 * Whether what a server of the cluster has sent can be true. The cluster is trusted with the data,
 * but not with the life of this process: a broken member, or a proxy before it, may send anything.
 * Answers are checked where they arrive, so that nothing behind meets a key that was not requested,
 * or a number with which it cannot calculate.
 */
#ifndef VIGIL_MIRROR_ANSWER_POSSIBLE_H
#define VIGIL_MIRROR_ANSWER_POSSIBLE_H

#include "base/slice.h"

#include <stdint.h>

struct pb_key_value;

/* Far beyond every revision that a cluster reaches, and far enough from the end for a sum. */
#define POSSIBLE_REVISION_MAX (INT64_C(1) << 62)

static inline bool possible_revision(int64_t revision)
{
    return revision > 0 && revision <= POSSIBLE_REVISION_MAX;
}

/* A key of the answer to a request for [from, end), as requests write it: without an end, only that
 * key; with the end "\0", all that follow. */
bool possible_key(struct slice key, struct slice from, struct slice end);
/* Whether a key can have these numbers in an answer at this revision. */
bool possible_numbers(int64_t create_revision, int64_t mod_revision, int64_t version,
                      int64_t revision);
/* All of these, in the answer to a request for [from, end). */
bool possible_kvs(const struct pb_key_value *kvs, size_t count, struct slice from,
                  struct slice end);

#endif
