/*
 * Copying what lives of a segment into a new one, so that the old can go. Order and indexes are
 * kept: a reader that goes through the log in order sees the same records, less the dead ones.
 *
 * What lives is what the checkpoint still has at that place. The keeper's thread.
 */
#ifndef VIGIL_STORE_CLEANER_H
#define VIGIL_STORE_CLEANER_H

#include "store/relocation.h"
#include "store/segments.h"

/*
 * Copies, syncs and swaps the new segment in. The old one stays readable. A copy gets checksums of
 * its own, so what is damaged is not copied: ST_DAMAGED if some of the live_bytes in it are.
 */
MUST_CHECK
enum status cleaner_copy(struct log *log, struct backend *backend, uint64_t segment,
                         uint64_t live_bytes, struct relocation **ret_relocation);

/* Inside a transaction, after the index knows the new places: the checkpoint gets them too. */
MUST_CHECK
enum status cleaner_record(const struct log *log, struct backend *backend,
                           struct segments *segments, const struct relocation *relocation);

void relocation_free(struct relocation *relocation); /* accepts NULL */

#endif
