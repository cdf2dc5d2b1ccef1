/*
 * What happened, for people and machines: one event a line, with typed fields.
 *
 *     log_info("compacted", LOG_I64("rev", rev), LOG_TEXT("by", name));
 *     {"level":"info","ts":"2026-11-15T00:15:10.229359Z","caller":"store/compact.c:73",
 *      "msg":"compacted","rev":7,"by":"x"}                                         (on one line)
 *
 * The keys are etcd's (zap's), so what reads its logs reads ours. A line leaves in one write and
 * has at most LOG_LINE_BYTES: pipes keep it whole, and lines of threads do not mix.
 *
 * Any thread may log and none waits for an output: lines go into a queue of LOG_QUEUE_BYTES, from
 * which a thread of the logger writes them. What has no room, or waits longer than
 * LOG_READER_WAIT_MS for a reader, is dropped and counted; the next line tells how many.
 *
 * Only the faces and programs log; lower layers return what they know. Never log a password, a
 * token, or a value.
 */
#ifndef VIGIL_BASE_LOG_LOG_H
#define VIGIL_BASE_LOG_LOG_H

#include "base/error.h"
#include "base/slice.h"

#include <stdatomic.h>

struct clock;

enum {
    LOG_LINE_BYTES = 4096,
    LOG_TEXT_BYTES = 1024,
    LOG_OUTPUTS_MAX = 8,
    LOG_QUEUE_BYTES = 1 << 20,
    LOG_READER_WAIT_MS = 500,
};

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_FATAL };

enum log_format { LOG_JSON, LOG_CONSOLE };

struct log_field {
    const char *key; /* NULL: nothing */
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
/* Nanoseconds of the real clock, written as the line's own time is. */
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

extern _Atomic int log_level_now; /* use log_enabled and log_set_level */

static inline bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

void log_set_level(enum log_level level);

/* When a log file is begun anew, and which old ones are kept. */
struct log_rotation {
    int64_t file_bytes_max; /* 0: never */
    unsigned backups_max;   /* 0: all */
    unsigned age_days_max;  /* 0: any age */
    bool local_time;        /* in the names of old files */
};

struct logger_options {
    /* "default" and "stderr", "stdout", "systemd/journal", or a file's path; several with commas */
    const char *outputs;
    enum log_format format; /* the console has colours on a terminal */
    struct clock *clock;    /* NULL: the system's */
    struct log_rotation rotation;
};

/* At start-up and once. Before it, lines go to stderr as JSON, from the thread that logs. */
MUST_CHECK
enum status logger_open(const struct logger_options *options, struct error *error);
/* Writes what is queued, then back to how it was before logger_open. Nobody may be logging. */
void logger_close(void);

/* Waits until what was logged is written, or so long. From any thread. */
void logger_flush(int64_t timeout_ns);
/* Files that were moved away are made anew with the next line. */
void logger_reopen(void);

/* For the macros. */
void logger_write(enum log_level level, const char *file, int line, const char *message,
                  const struct log_field *fields, size_t count);

#define LOG_AT(level, message, ...)                                                               \
    do {                                                                                          \
        if (log_enabled(level)) {                                                                 \
            const struct log_field log_fields_[] = {{.key = NULL}, ##__VA_ARGS__};                \
            logger_write(level, __FILE__, __LINE__, message, log_fields_, COUNT_OF(log_fields_)); \
        }                                                                                         \
    } while (0)

#define log_debug(message, ...) LOG_AT(LOG_DEBUG, message, ##__VA_ARGS__)
#define log_info(message, ...) LOG_AT(LOG_INFO, message, ##__VA_ARGS__)
#define log_warn(message, ...) LOG_AT(LOG_WARN, message, ##__VA_ARGS__)
#define log_error(message, ...) LOG_AT(LOG_ERROR, message, ##__VA_ARGS__)
/* Ends the process with status 1. */
#define log_fatal(message, ...)                    \
    do {                                           \
        LOG_AT(LOG_FATAL, message, ##__VA_ARGS__); \
        log_exit();                                \
    } while (0)

_Noreturn void log_exit(void);

#endif
