/*
 * Rewriting: build a new segment holding chosen records of a full one, in order, with their
 * index and revision; make it durable; then swap it into the order in the old one's place. Old
 * locations stay readable until log_forget. Only segments that a checkpoint covers to their last
 * index may be rewritten, and log_forget follows the checkpoint that lists the new one.
 */
#ifndef VIGIL_STORE_LOG_REWRITE_H
#define VIGIL_STORE_LOG_REWRITE_H

#include "store/log/log.h"

struct log_rewrite;
/*
 * ST_NOT_FOUND when it is not full, ST_AGAIN when nothing durable follows it yet. The caller
 * has held what it will copy to its checksums.
 */
MUST_CHECK
enum status log_rewrite_begin(struct log *log, uint64_t old_id, struct log_rewrite **ret_rewrite);
/*
 * A record in pieces, so that the longest takes no more memory than its longest piece: begin says
 * how long the body is, and the pieces must come to that.
 */
MUST_CHECK
enum status log_rewrite_record(struct log_rewrite *rewrite, const struct log_record *like,
                               size_t body_bytes, log_loc *ret_body_loc);
MUST_CHECK
enum status log_rewrite_piece(struct log_rewrite *rewrite, struct slice bytes);
/* Both in one: a body of one piece. */
MUST_CHECK
enum status log_rewrite_add(struct log_rewrite *rewrite, const struct log_record *like,
                            struct slice body, log_loc *ret_body_loc);
/*
 * Syncs and swaps. *ret_new_id is 0 when nothing was added: the old one has no successor. Ends the
 * rewrite, also when it fails.
 */
MUST_CHECK
enum status log_rewrite_commit(struct log_rewrite *rewrite, uint64_t *ret_new_id);
void log_rewrite_abort(struct log_rewrite *rewrite); /* accepts NULL */
DEFINE_CLEANUP(struct log_rewrite *, log_rewrite_abort)
/*
 * Gives up a segment that was swapped out and that no reader can reach any more. Quick, on any
 * thread: unmapping and removing the file takes 15 ms for 64 MiB and is left to log_prepare.
 */
MUST_CHECK
enum status log_forget(struct log *log, uint64_t old_id);

/* Reads a segment and checks every record. */
MUST_CHECK
enum status log_verify(const struct log *log, uint64_t segment_id, struct error *ret_error);

#endif
