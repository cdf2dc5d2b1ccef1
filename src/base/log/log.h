/*
 * Logging for people and machines: one event per line, with typed fields.
 *
 *     log_info("compacted", LOG_I64("rev", rev), LOG_TEXT("by", name));
 *     {"level":"info","ts":"2026-11-15T00:15:10.229359Z","caller":"store/compact.c:73",
 *      "msg":"compacted","rev":7,"by":"x"}                                         (on one line)
 *
 * The keys are etcd's (zap's), so that tools for its logs can read ours. A line is written with one
 * system call and has at most LOG_LINE_BYTES: pipes keep it whole, and lines of threads do not mix.
 *
 * Any thread may log, and none waits for an output: lines enter a queue of LOG_QUEUE_BYTES, from
 * which the logger's thread writes them. A line that does not fit, or waits longer than
 * LOG_READER_WAIT_MS for a reader, is dropped and counted; the next line contains the count.
 *
 * Only the APIs and programs log; lower layers return errors. Never log a password, a token, or a
 * value.
 */
#ifndef VIGIL_BASE_LOG_LOG_H
#define VIGIL_BASE_LOG_LOG_H

#include "base/error.h"
#include "base/log/field.h"
#include "base/log/rotation.h"

#include <stdatomic.h>

struct clock;

enum {
    LOG_OUTPUTS_MAX = 8,
    LOG_QUEUE_BYTES = 1 << 20,
    LOG_READER_WAIT_MS = 500,
};

enum log_format { LOG_JSON, LOG_CONSOLE };

extern _Atomic int log_level_now; /* use log_enabled and log_set_level */

static inline bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

void log_set_level(enum log_level level);

struct logger_options {
    /* "default" and "stderr", "stdout", "systemd/journal", or a file's path; several with commas */
    const char *outputs;
    enum log_format format; /* console lines are coloured on a terminal */
    struct clock *clock;    /* NULL: the system clock */
    struct log_rotation rotation;
};

/* To be called once, at start-up. Before it, lines are written to stderr as JSON by the thread that
 * logs. */
MUST_CHECK
enum status logger_open(const struct logger_options *options, struct error *error);
/* Writes what is queued, then restores the state before logger_open. No other thread may log. */
void logger_close(void);

/* Waits until everything logged so far is written, or for timeout_ns. Any thread. */
void logger_flush(int64_t timeout_ns);
/* Files that were moved away are created again with the next line. */
void logger_reopen(void);

/* Used by the macros. */
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
