/* How far an import is, for a caller that shows it. Called often, on the importing thread. */
#ifndef VIGIL_IMPORT_PROGRESS_H
#define VIGIL_IMPORT_PROGRESS_H

#include <stdint.h>

enum import_stage {
    IMPORT_CHECKING, /* the checksum of a snapshot, in bytes */
    IMPORT_KEYS,     /* revisions, in bytes of the file */
    IMPORT_ENTRIES,  /* entries of the write-ahead log */
    IMPORT_FINISHING,
    IMPORT_STAGES,
};

struct import_progress {
    void (*fn)(void *ctx, enum import_stage stage, uint64_t done, uint64_t all);
    void *ctx;
};

/* Accepts NULL. */
static inline void import_progress_report(struct import_progress *progress, enum import_stage stage,
                                          uint64_t done, uint64_t all)
{
    if (progress && progress->fn)
        progress->fn(progress->ctx, stage, done, all);
}

#endif
