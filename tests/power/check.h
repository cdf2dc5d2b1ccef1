/*
 * Opens a data directory after a power failure with the store of this build, and compares it with
 * the history (history.h).
 *
 *   - everything acknowledged before the failure is there, and nothing that was requested after it
 *   - the keys are exactly those of the history at the store's revision, and the log has every
 *     change since the compaction as it was sent
 *   - leases, users and roles are as acknowledged; a revoked lease and its keys are gone together
 *   - a compaction was done or not
 *   - the store's own check finds no damage, and hashes are those that the server answered with
 *   - one more put is there after the checkpoint was written and the store opened again
 */
#ifndef VIGIL_TESTS_POWER_CHECK_H
#define VIGIL_TESTS_POWER_CHECK_H

#include "history.h"

struct check_result {
    int64_t revision, revision_due, compact_revision;
    uint64_t log_index;
};

/* ST_DAMAGED: the error says what is wrong. The directory is changed. */
MUST_CHECK
enum status check_dir(struct history *history, uint64_t position, const char *dir,
                      struct check_result *ret_result, struct error *ret_error);

#endif
