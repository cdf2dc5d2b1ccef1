/*
 * The versions of one generation of a collection and the revisions of the store that have them:
 *
 *     version    100   105   110   117   130
 *     revision    40    41    57    57    63      everything up to version 110 is in revision 57,
 *                                                 and nothing newer than 117 is before revision 63
 *
 * Both only grow. A version without a change of its own, which a bookmark or a fence has shown,
 * shares the revision of the change before it. Entries that are older than the history are dropped
 * from the front. Not thread-safe: protected by the lock of its collection.
 */
#ifndef VIGIL_TIER_MIRROR_VERSIONS_H
#define VIGIL_TIER_MIRROR_VERSIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tier_version_entry {
    uint64_t version;
    int64_t revision;
};

struct tier_versions {
    struct tier_version_entry *entries; /* owned; a ring */
    size_t first, count, capacity;
};

void tier_versions_fini(struct tier_versions *versions); /* accepts a zeroed one */

/* The next entry; neither number is lower than that of the last one. An entry with the same version
 * is left out. ST_NOMEM. */
MUST_CHECK
enum status tier_versions_add(struct tier_versions *versions, uint64_t version, int64_t revision);

/* The next call of add does not fail. ST_NOMEM. */
MUST_CHECK
enum status tier_versions_reserve(struct tier_versions *versions);

/* History up to this revision is dropped: the last entry up to it becomes the first one. */
void tier_versions_drop(struct tier_versions *versions, int64_t revision);

/* The revision that has everything up to this version. False: it is older than the first entry. */
MUST_CHECK
bool tier_versions_revision(const struct tier_versions *versions, uint64_t version,
                            int64_t *ret_revision);
/* The newest version of which everything is in this revision. False: it is before the first entry.
 */
MUST_CHECK
bool tier_versions_version(const struct tier_versions *versions, int64_t revision,
                           uint64_t *ret_version);

/* The version of the change with this revision: the lowest one. False: no entry has it. */
MUST_CHECK
bool tier_versions_change(const struct tier_versions *versions, int64_t revision,
                          uint64_t *ret_version);

/* 0 if there is no entry. */
uint64_t tier_versions_oldest(const struct tier_versions *versions);
uint64_t tier_versions_newest(const struct tier_versions *versions);

#endif
