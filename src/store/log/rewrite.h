/*
 * Rewriting: makes a new segment with chosen records of a full one, in order, with their index and
 * revision; makes it durable; then swaps it into the order in place of the old one. Old locations
 * stay readable until log_forget. Only segments that a checkpoint covers to their last index may be
 * rewritten, and log_forget follows the checkpoint that lists the new one.
 */
#ifndef VIGIL_STORE_LOG_REWRITE_H
#define VIGIL_STORE_LOG_REWRITE_H

#include "store/log/log.h"

struct log_rewrite;
/*
 * ST_NOT_FOUND when it is not full, ST_AGAIN when nothing durable follows it yet. The caller has
 * verified the checksums of what it will copy.
 */
MUST_CHECK
enum status log_rewrite_begin(struct log *log, uint64_t old_id, struct log_rewrite **ret_rewrite);
/*
 * A record in pieces, so that the longest record takes no more memory than its longest piece:
 * log_rewrite_record states the length of the body, and the pieces must add up to it. An empty body
 * is one empty piece.
 */
MUST_CHECK
enum status log_rewrite_record(struct log_rewrite *rewrite, const struct log_record *like,
                               size_t body_bytes, log_loc *ret_body_loc);
MUST_CHECK
enum status log_rewrite_piece(struct log_rewrite *rewrite, struct slice bytes);
/*
 * Syncs and swaps. *ret_new_id is 0 when nothing was added: the old segment has no successor. Ends
 * the rewrite, also when it fails.
 */
MUST_CHECK
enum status log_rewrite_commit(struct log_rewrite *rewrite, uint64_t *ret_new_id);
void log_rewrite_abort(struct log_rewrite *rewrite); /* accepts NULL */
DEFINE_CLEANUP(struct log_rewrite *, log_rewrite_abort)
/*
 * Drops a segment that was swapped out and that no reader can reach any more. Fast, on any thread:
 * unmapping and removing the file takes 15 ms for 64 MiB and is left to log_prepare.
 */
MUST_CHECK
enum status log_forget(struct log *log, uint64_t old_id);

#endif
