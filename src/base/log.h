/*
 * What happened, for people and machines: one event a line, with typed fields.
 *
 *     log_info("compacted", LOG_I64("rev", rev), LOG_TEXT("by", name));
 *     {"level":"info","ts":"2026-11-15T00:15:10.229359Z","caller":"store/compact.c:73",
 *      "msg":"compacted","rev":7,"by":"x"}                                         (on one line)
 *
 * The keys are etcd's (zap's), so what reads its logs reads ours. A line leaves in one write and
 * has at most LOG_LINE_BYTES: pipes keep it whole, and lines of threads do not mix. A reader that
 * does not read costs its writer a few milliseconds once, then lines are dropped and counted; the
 * next line that passes tells how many. Any thread may log.
 *
 * Only the faces and programs log; lower layers return what they know. Never log a password, a
 * token, or a value.
 */
#ifndef VIGIL_BASE_LOG_H
#define VIGIL_BASE_LOG_H

#include "base/error.h"
#include "base/slice.h"

#include <stdatomic.h>

struct clock;

enum { LOG_LINE_BYTES = 4096, LOG_TEXT_BYTES = 1024, LOG_OUTPUTS_MAX = 4 };

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_FATAL };
#define LOG_LEVEL_CHOICES "debug|info|warn|error|fatal"

enum log_format { LOG_JSON, LOG_CONSOLE };
#define LOG_FORMAT_CHOICES "json|console"

struct log_field {
    const char *key; /* NULL: nothing */
    enum { FIELD_I64, FIELD_U64, FIELD_F64, FIELD_BOOL, FIELD_TEXT, FIELD_LIST, FIELD_HEX } kind;
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
        struct slice text;
    } as;
};

#define LOG_I64(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_I64, .as.i64 = (v)})
#define LOG_U64(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_U64, .as.u64 = (v)})
#define LOG_F64(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_F64, .as.f64 = (v)})
#define LOG_BOOL(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_BOOL, .as.u64 = !!(v)})
/* An id, as etcd writes them: "8e9e05c52164694d". */
#define LOG_HEX(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_HEX, .as.u64 = (v)})
#define LOG_SLICE(key_, v) ((struct log_field){.key = (key_), .kind = FIELD_TEXT, .as.text = (v)})
#define LOG_TEXT(key_, v) LOG_SLICE(key_, slice_from_text(v))
/* A comma-separated text becomes an array. */
#define LOG_LIST(key_, v) \
    ((struct log_field){.key = (key_), .kind = FIELD_LIST, .as.text = slice_from_text(v)})
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

/*
 * Where lines go: "default" and "stderr", "stdout", or a file's path, several with commas. At
 * start-up and once; before it, lines go to stderr as JSON. The console format has colours on a
 * terminal. clock may be NULL for the system's.
 */
MUST_CHECK
enum status logger_open(const char *outputs, enum log_format format, struct clock *clock,
                        struct error *error);
/* Back to how it was before logger_open. Nobody may be logging. */
void logger_close(void);

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
