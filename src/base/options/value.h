/* The syntax of flag values: as in Go's flag package, which etcd uses. */
#ifndef VIGIL_BASE_OPTIONS_VALUE_H
#define VIGIL_BASE_OPTIONS_VALUE_H

#include "base/slice.h"
#include "base/status.h"

/* All return ST_INVALID for anything else, and leave the result unchanged. */

/* 1 t T true TRUE True, 0 f F false FALSE False */
MUST_CHECK
enum status option_value_bool(const char *text, bool *ret_value);

/* Decimal, or 0x, 0o, 0b; a sign; underscores between digits. */
MUST_CHECK
enum status option_value_int(const char *text, int64_t *ret_value);

/* Bytes: a number as above and not negative, or decimal with K, M, G, T (or KB, KiB, …: all powers
 * of 1024). */
MUST_CHECK
enum status option_value_size(const char *text, uint64_t *ret_bytes);

/* "10s", "1m30s", "1.5h", "100ms", "0"; units ns us µs ms s m h; a sign. In nanoseconds. */
MUST_CHECK
enum status option_value_duration(const char *text, int64_t *ret_ns);

/* The shortest form Go prints: "1m30s", "100ms", "0s". At most 32 bytes. */
enum { OPTION_DURATION_BYTES = 32 };
void option_format_duration(int64_t ns, char text[OPTION_DURATION_BYTES]);

/* Iterates over a comma-separated list: false at the end. Spaces around items are ignored, and an
 * empty list has no items. Begin with *rest at the list's text. */
bool option_list_next(const char **rest, struct slice *ret_item);

#endif
