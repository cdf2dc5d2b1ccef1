/*
 * Copying what lives of a segment into a new one, so that the old can go. Order and indexes are
 * kept: a reader that goes through the log in order sees the same records, less the dead ones.
 *
 * What lives is what the checkpoint still has at that place. The keeper's thread.
 *
 * Nothing here takes memory in proportion to a segment, a record or the number of versions. The
 * checkpoint learns the new places over several transactions. The first of them lists the new
 * segment instead of the old one and notes the two (BACKEND_MOVED_FROM, BACKEND_MOVED_TO): as long
 * as that stands, a version that is said to lie in the old segment lies in the new one, where it is
 * found by its revision and sub.
 */
#ifndef VIGIL_STORE_UPKEEP_CLEANER_H
#define VIGIL_STORE_UPKEEP_CLEANER_H

#include "store/index/index.h"
#include "store/upkeep/relocation.h"
#include "store/upkeep/segments.h"

/*
 * Copies, syncs and swaps the new segment in. The old one stays readable. A copy gets checksums of
 * its own, so what is damaged is not copied: ST_DAMAGED if some of the live_bytes in it are not
 * found, because of that or because the checkpoint is damaged.
 */
MUST_CHECK
enum status cleaner_copy(struct log *log, struct backend *backend, uint64_t segment,
                         uint64_t live_bytes, struct relocation **ret_relocation);
/* One of which the index knows all versions already. */
struct relocation *relocation_new(uint64_t old_segment, uint64_t new_segment);

/* The next moves, once the index knows those that are there; none: there are no more. */
MUST_CHECK
enum status cleaner_find_moves(struct relocation *relocation);

/*
 * Inside a transaction, after the index knows the new places: the checkpoint gets them too, until
 * about so many bytes of its pages have changed. *ret_all says whether it has them all.
 */
MUST_CHECK
enum status cleaner_record(const struct log *log, struct backend *backend,
                           struct relocation *relocation, size_t bytes_max, bool *ret_all);

/*
 * At a start, when a stop came in the middle of that: points the index, loaded from the checkpoint,
 * to the new places. What cannot be found there, because it is damaged, can not be read.
 */
MUST_CHECK
enum status cleaner_resume(const struct log *log, struct backend *backend, struct index *index,
                           uint64_t old_segment, uint64_t new_segment);

void relocation_free(struct relocation *relocation); /* accepts NULL */

#endif
