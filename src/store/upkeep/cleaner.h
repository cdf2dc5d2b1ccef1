/*
 * Cleaning: copies the live changes of a segment into a new one, so that the old one can be
 * removed. Order and indexes are kept: a reader of the log sees the same records without the dead
 * changes. A change is live if the checkpoint has it at that location. Runs on the keeper's thread.
 *
 *                          no more moves              all are recorded
 *   cleaner_copy ──► moving ───────────► recording ──────────────────► done
 *                     │  ▲                  │  ▲
 *  cleaner_find_moves │  │ store_relocate   └──┘ cleaner_record
 *           (keeper)  └──┘ (writer)
 *
 * When it is done, the relocation is freed and the writer forgets the old segment.
 *
 * A stop while moving leaves only an unlisted copy, which the next start removes. Recording takes
 * several transactions of the checkpoint. The first lists the new segment instead of the old one
 * and notes both (BACKEND_MOVED_FROM, BACKEND_MOVED_TO): while they are set, versions with a
 * location in the old segment are in the new one, found by revision and sub. After a stop then, the
 * next start calls cleaner_resume. Memory does not grow with segments, records or the number of
 * versions.
 */
#ifndef VIGIL_STORE_UPKEEP_CLEANER_H
#define VIGIL_STORE_UPKEEP_CLEANER_H

#include "store/index/index.h"
#include "store/upkeep/relocation.h"
#include "store/upkeep/segments.h"

/*
 * Copies, syncs and swaps the new segment in. The old one stays readable. A copy has new checksums,
 * so damaged changes are not copied: ST_DAMAGED if less than live_bytes are found, because of
 * damage in the segment or in the checkpoint.
 */
MUST_CHECK
enum status cleaner_copy(struct log *log, struct backend *backend, uint64_t segment,
                         uint64_t live_bytes, struct relocation **ret_relocation);
/* A relocation of which the index has all moves already. */
struct relocation *relocation_new(uint64_t old_segment, uint64_t new_segment);

/* Finds the next moves, after the index has the previous ones. A count of 0 means no more. */
MUST_CHECK
enum status cleaner_find_moves(struct relocation *relocation);

/*
 * Within a transaction, after the index has the new locations: puts them into the checkpoint, until
 * about bytes_max bytes of its pages have changed. *ret_all: it has them all.
 */
MUST_CHECK
enum status cleaner_record(const struct log *log, struct backend *backend,
                           struct relocation *relocation, size_t bytes_max, bool *ret_all);

/*
 * At a start, after a stop while recording: points the index, loaded from the checkpoint, to the
 * new locations. Damaged changes are not found, and those versions cannot be read.
 */
MUST_CHECK
enum status cleaner_resume(const struct log *log, struct backend *backend, struct index *index,
                           uint64_t old_segment, uint64_t new_segment);

void relocation_free(struct relocation *relocation); /* accepts NULL */

#endif
