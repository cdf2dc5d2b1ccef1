/* The parts of a log line: its level and its typed fields. Callers include base/log/log.h. */
#ifndef VIGIL_BASE_LOG_FIELD_H
#define VIGIL_BASE_LOG_FIELD_H

#include "base/slice.h"
#include "base/status.h"

enum {
    LOG_LINE_BYTES = 4096, /* length of a whole line; the rest is cut off */
    LOG_TEXT_BYTES = 1024, /* length of one text field */
};

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_FATAL };

struct log_field {
    const char *key; /* NULL: no field */
    enum {
        FIELD_I64,
        FIELD_U64,
        FIELD_F64,
        FIELD_BOOL,
        FIELD_TEXT,
        FIELD_LIST,
        FIELD_SLICES,
        FIELD_HEX,
        FIELD_TIME,
    } kind;
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
        struct slice text;
        struct {
            const struct slice *items;
            size_t count;
        } slices;
    } as;
};

#define LOG_I64(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_I64, .as.i64 = (v)})
#define LOG_U64(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_U64, .as.u64 = (v)})
#define LOG_F64(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_F64, .as.f64 = (v)})
#define LOG_BOOL(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_BOOL, .as.u64 = !!(v)})
/* An id, as etcd writes them: "8e9e05c52164694d". */
#define LOG_HEX(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_HEX, .as.u64 = (v)})
/* Nanoseconds of the real clock, written like the time of the line. */
#define LOG_TIME(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_TIME, .as.i64 = (v)})
#define LOG_SLICE(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_TEXT, .as.text = (v)})
#define LOG_TEXT(key_, v) LOG_SLICE(key_, slice_from_text(v))
/* A comma-separated text becomes an array. */
#define LOG_LIST(key_, v) \
    ((struct log_field){.key = (key_), .kind = FIELD_LIST, .as.text = slice_from_text(v)})
#define LOG_SLICES(key_, items_, n) \
    ((struct log_field){.key = (key_), .kind = FIELD_SLICES, .as.slices = {(items_), (n)}})
/* Nanoseconds, as Go writes durations: "1m30s". */
struct log_field log_duration_field(const char *key, int64_t ns, char *scratch);
#define LOG_DURATION(key_, ns) log_duration_field(key_, ns, (char[32]){0})
/* The name and the text of a status, as "error". */
#define LOG_STATUS(status) LOG_TEXT("error", status_text(status))

#endif
