/*
 * The cluster's answer to a range that was forwarded: the bytes of a RangeResponse, from which
 * key-values are pulled as from a range of the mirror.
 *
 *     take the message ──► scan, in steps ──► window, next, fill ──► fini
 *
 * The bytes are another server's: the scan finds what is not a RangeResponse, keys that were not
 * requested, and numbers that cannot be true (possible.h). Readers of the key-values rely on it.
 * Embedded in its read; used on its thread.
 */
#ifndef VIGIL_MIRROR_ANSWER_FORWARDED_RANGE_H
#define VIGIL_MIRROR_ANSWER_FORWARDED_RANGE_H

#include "base/buf.h"

struct account;

struct forwarded_range {
    struct account *account; /* charged with the message; NULL: none */
    struct buf message;      /* owned */
    struct slice from, end;  /* what was requested; borrowed until the scan has ended */

    /* Valid after the scan. */
    int64_t revision, count, kvs;
    bool more;
    uint64_t kvs_bytes; /* size of the key-values' fields, `12 len KeyValue` */

    /* Private. */
    int64_t newest;     /* mod revision of the key-values so far */
    size_t at;          /* where the scan, or later the reader, continues */
    int64_t in_window;  /* key-values that may still be begun */
    struct slice field; /* the rest of the one that fill has begun */
};

/* Copies the message. ST_NOMEM: refused, or there is no memory. */
MUST_CHECK
enum status forwarded_range_take(struct forwarded_range *range, struct account *account,
                                 struct slice message, struct slice from, struct slice end);
void forwarded_range_fini(struct forwarded_range *range); /* accepts a zeroed one */

/* Examines some of the message. ST_AGAIN: there is more; ST_MALFORMED. */
MUST_CHECK
enum status forwarded_range_scan(struct forwarded_range *range);

/* As engine_range_window, _next and _fill. */
void forwarded_range_window(struct forwarded_range *range, int64_t keys_max, int64_t *ret_keys,
                            uint64_t *ret_bytes);
bool forwarded_range_next(struct forwarded_range *range, struct slice *ret_field);
size_t forwarded_range_fill(struct forwarded_range *range, uint8_t *dst, size_t room);

#endif
