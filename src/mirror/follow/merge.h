/*
 * Makes whole revisions of what the watches of a cluster deliver:
 *
 *     watch of /a  ──► 5, 7, 9 …      passed 9 ─┐
 *     watch of /b  ──► 7, 8 …         passed 8 ─┴──► 5, 7 (of both), 8: complete, in order
 *
 * A watch has passed a revision when a later event, the end of a response or progress shows that
 * nothing more of it follows. A revision is complete when every watch has passed it. Changes of one
 * revision have the order of the watches, and within a watch the server's.
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_MERGE_H
#define VIGIL_MIRROR_FOLLOW_MERGE_H

#include "engine/local/mirror/mirror_store.h"

struct merge;
struct pb_event;

enum {
    /* More changes of a single revision than this are not kept: the state is loaded instead. */
    MERGE_REVISION_BYTES_MAX = 256 << 20,
};

/*
 * Everything up to `from` is known. The ranges are those of the prefixes, sorted and disjoint, and
 * borrowed; events outside them are dropped. None: all keys. watches is 1, or one for each prefix.
 */
struct merge *merge_new(size_t watches, int64_t from, const struct slice *prefixes,
                        size_t prefix_count); /* aborts without memory */
void merge_free(struct merge *merge);         /* accepts NULL */

/*
 * Events of a watch, which are copied. more: others of the last revision may follow (a fragment).
 * What was known before the merge is dropped. ST_INVALID: an event comes out of order or after the
 * watch has passed its revision, or has no key. ST_LIMIT: see MERGE_REVISION_BYTES_MAX.
 */
MUST_CHECK
enum status merge_add(struct merge *merge, size_t watch, const struct pb_event *events,
                      size_t count, bool more);
/* Everything up to the revision was delivered by this watch. */
void merge_pass(struct merge *merge, size_t watch, int64_t revision);
void merge_pass_all(struct merge *merge, int64_t revision);

/* Every watch has passed this revision, and it was taken or has no changes if nothing is ready. */
int64_t merge_complete(const struct merge *merge);
/* Bytes of all changes that were added and not taken. */
size_t merge_bytes(const struct merge *merge);
/* Some watch has delivered revisions that another one has not passed. */
bool merge_waits(const struct merge *merge);

/* A change in the memory that it owns. */
struct merge_change {
    struct merge_change *next;
    struct imported_change change; /* mod_revision is set in tombstones too */
    uint8_t bytes[];               /* the key, then the value */
};

/* Complete revisions. Freed by the caller. */
struct merge_taken {
    struct mirror_revision *revisions;
    size_t count;
    struct imported_change *changes; /* changes of all revisions */
    size_t change_count;
    struct merge_change *owned;
    size_t bytes;
    int64_t reach; /* everything up to here is known afterwards */
};

/* About this many bytes of the oldest complete revisions, but at least one revision. False: nothing
 * is new. There may be no revision at all if only `reach` has grown. */
MUST_CHECK
bool merge_take(struct merge *merge, size_t bytes_max, struct merge_taken *ret_taken);
void merge_taken_fini(struct merge_taken *taken);

/* Asserts every invariant; for tests. */
void merge_check(const struct merge *merge);

#endif
