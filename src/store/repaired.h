/*
 * A store that a repair has rewritten takes the place of the damaged one, in the same data
 * directory. Interrupted anywhere, this leaves the old store, or a directory that no version of
 * this program opens and that the next repair finishes:
 *
 *   repair.tmp/         is being built; removed by the next repair
 *   repaired/           is complete. From here on the damaged store is not used any more
 *   FORMAT is removed; log and meta become log.lost and meta.lost, and those of repaired/ take
 *   their places; FORMAT of repaired/ comes last
 *
 * Uses real files only. For one thread, with the directory locked.
 */
#ifndef VIGIL_STORE_REPAIRED_H
#define VIGIL_STORE_REPAIRED_H

#include "base/error.h"
#include "io/file.h"

#define REPAIR_BUILD_NAME "repair.tmp"
#define REPAIR_DONE_NAME "repaired"

/* Removes what an interrupted repair has begun to build, if any. */
MUST_CHECK
enum status repaired_clear(const char *dir, struct error *ret_error);
/* repair.tmp is complete and closed: it takes the place of the store. */
MUST_CHECK
enum status repaired_install(struct fs *fs, const char *dir, struct error *ret_error);
/* The same from where it was interrupted. Does nothing if there is no repaired/. */
MUST_CHECK
enum status repaired_finish(struct fs *fs, const char *dir, struct error *ret_error);

#endif
