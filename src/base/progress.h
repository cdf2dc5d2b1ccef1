/*
 * How far something long has come: a line on a terminal that is drawn over itself, with the rate
 * and the remaining time, and nothing at all when the output is not a terminal.
 *
 *     snapshot         [############..................]  41 %  38 MB/s, 12 s left
 *     mirror           128000 keys  9500/s
 *
 * One thread.
 */
#ifndef VIGIL_BASE_PROGRESS_H
#define VIGIL_BASE_PROGRESS_H

#include "base/slice.h"

#include <stdio.h>

enum { PROGRESS_TEXT_BYTES = 160 };

struct progress {
    FILE *to;         /* borrowed */
    const char *what; /* "snapshot" */
    const char *unit; /* "keys"; NULL: bytes; "": time, which has no rate */
    bool is_terminal;
    bool drawn; /* the line must be erased */
    bool begun;
    uint64_t begun_at; /* how much was done at the first call: it does not count for the rate */
    int64_t begun_ns;
    int64_t shown_ns; /* when it was last drawn */
};

/* unit is NULL for bytes and "" for time. */
void progress_init(struct progress *progress, FILE *to, const char *what, const char *unit);

/* So much is done of so much (0: the whole is unknown). Draws at most ten times a second. */
void progress_show(struct progress *progress, uint64_t done, uint64_t all);

/* Another part of the work begins, under this name. */
void progress_next(struct progress *progress, const char *what);

/* Erases the line, so that the result can be printed. It may be shown again afterwards. */
void progress_end(struct progress *progress);

/* The line itself, for the width of a terminal; for tests. Returns its length. */
size_t progress_text(const struct progress *progress, uint64_t done, uint64_t all, int64_t now_ns,
                     size_t columns, char ret_text[PROGRESS_TEXT_BYTES]);

/* "20 kB", as etcdctl and etcdutl write sizes. */
void progress_bytes_text(uint64_t bytes, char ret_text[32]);

#endif
