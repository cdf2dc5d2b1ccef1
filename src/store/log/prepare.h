/*
 * Making the next segment of the log in steps, on the keeper's thread. Each zeroes and syncs a part
 * of the new file. The writer's syncs wait for those of the keeper, so all at once would delay the
 * puts of about 100 ms.
 */
#ifndef VIGIL_STORE_LOG_PREPARE_H
#define VIGIL_STORE_LOG_PREPARE_H

#include "store/log/log.h"

/* One step of log_prepare, of this many bytes. Done: no segment is being made any more. */
MUST_CHECK
enum status log_prepare_step(struct log *log, uint64_t bytes, bool *ret_done);
bool log_is_preparing(const struct log *log); /* steps are left */
/* The next step must not wait, or the writer could reach the end of its segment first. */
bool log_prepare_lags(const struct log *log);

/* As log_is_short, for any thread. It lags behind the writer by what is not written yet. */
bool log_seems_short(const struct log *log);
/* What the file system has left for the log; otherwise the error of the system. Any thread. */
MUST_CHECK
enum status log_free_bytes(const struct log *log, uint64_t *ret_bytes);

#endif
