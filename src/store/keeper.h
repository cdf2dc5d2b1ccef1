/*
 * What keeps the store in order behind the writer's back, on a thread of its own:
 *
 *   - the next segment of the log, ready before the writer needs it
 *   - the checkpoint: takes over what the log got since the last one, and lets go of versions
 *     that compaction has replaced
 *   - cleaning: full segments of which less than half is alive are copied and dropped
 *
 * Cleaning needs the writer in the middle, to point the index to the copies:
 *
 *   keeper_clean_begin ──► relocation ──► writer: store_relocate ──► keeper_clean_end ──► writer:
 * forget
 */
#ifndef VIGIL_STORE_KEEPER_H
#define VIGIL_STORE_KEEPER_H

#include "store/store.h"

struct keeper;

struct keeper *keeper_new(struct store *store); /* before the store's threads run */
void keeper_free(struct keeper *keeper);
DEFINE_CLEANUP(struct keeper *, keeper_free)

/* On the keeper's own thread, before the others below. */
void keeper_join(struct keeper *keeper);

/* Prepares the next segment if none waits. */
MUST_CHECK
enum status keeper_prepare(struct keeper *keeper);

/* How many log records and bytes are not in the checkpoint yet: when to write the next one. */
uint64_t keeper_checkpoint_lag_bytes(struct keeper *keeper);

/* Brings the checkpoint up to the newest view. */
MUST_CHECK
enum status keeper_checkpoint(struct keeper *keeper);

/* Copies the living part of the segment that needs it most. *ret_relocation is NULL if none does.
 */
MUST_CHECK
enum status keeper_clean_begin(struct keeper *keeper, struct relocation **ret_relocation);
/* After the writer has relocated: the checkpoint follows. The relocation is freed. */
MUST_CHECK
enum status keeper_clean_end(struct keeper *keeper, struct relocation *relocation);

/* As in store/hash.h, over the newest view. */
MUST_CHECK
enum status keeper_hash(struct keeper *keeper, int64_t compact_revision, int64_t revision,
                        uint32_t *ret_hash);

/* The newest view, pinned until keeper_let_go. For answers that need its numbers. */
const struct store_view *keeper_hold_view(struct keeper *keeper);
void keeper_let_go(struct keeper *keeper);

/* Why the last call failed, for a log line. */
const char *keeper_error_text(const struct keeper *keeper);

#endif
