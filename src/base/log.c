#include "base/log.h"

#include "base/clock.h"
#include "base/log_line.h"
#include "base/option_value.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_FOR_READER_MS = 10 };

struct log_output {
    int fd;
    bool owned, colour;
    atomic_bool stuck; /* its reader did not read in time; not waited for again until it does */
};

static struct {
    struct log_output outputs[LOG_OUTPUTS_MAX];
    size_t count; /* 0: stderr, as JSON */
    enum log_format format;
    struct clock *clock;
    _Atomic uint64_t dropped;
} sink;

_Atomic int log_level_now = LOG_INFO;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

struct log_field log_duration_field(const char *key, int64_t ns, char *scratch)
{
    static_assert(OPTION_DURATION_BYTES == 32, "LOG_DURATION's scratch");
    option_format_duration(ns, scratch);
    return LOG_TEXT(key, scratch);
}

/* -- outputs -- */

static enum status open_output(struct log_output *output, struct slice name, struct error *error)
{
    char path[4096];
    if (name.len >= sizeof(path))
        return error_set(error, ST_INVALID, "the path of a log output is too long");
    slice_copy(path, name);
    path[name.len] = 0;
    *output = (struct log_output){.fd = STDERR_FILENO};
    if (strcmp(path, "stdout") == 0) {
        output->fd = STDOUT_FILENO;
    } else if (strcmp(path, "stderr") != 0 && strcmp(path, "default") != 0) {
        output->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        output->owned = true;
        if (output->fd < 0)
            return error_set(error, status_from_errno(errno), "cannot log to %s: %s", path,
                             strerrordesc_np(errno));
    }
    output->colour = isatty(output->fd);
    return ST_OK;
}

enum status logger_open(const char *outputs, enum log_format format, struct clock *clock,
                        struct error *error)
{
    assert(sink.count == 0);
    struct slice name;
    size_t count = 0;
    sink.format = format;
    sink.clock = clock;
    while (option_list_next(&outputs, &name)) {
        enum status status = ST_OK;
        if (count == LOG_OUTPUTS_MAX)
            status = error_set(error, ST_LIMIT, "more than %d log outputs", LOG_OUTPUTS_MAX);
        else
            status = open_output(&sink.outputs[count], name, error);
        if (status != ST_OK) {
            sink.count = count;
            logger_close();
            return status;
        }
        count++;
    }
    sink.count = count;
    return ST_OK;
}

void logger_close(void)
{
    for (size_t i = 0; i < sink.count; i++)
        if (sink.outputs[i].owned)
            close(sink.outputs[i].fd);
    sink.count = 0;
    sink.format = LOG_JSON;
    sink.clock = NULL;
}

/* A pipe that is writable takes LOG_LINE_BYTES without blocking. */
static bool takes_a_line(struct log_output *output, enum log_level level)
{
    struct pollfd one = {.fd = output->fd, .events = POLLOUT};
    bool stuck = atomic_load_explicit(&output->stuck, memory_order_relaxed);
    int wait_ms = level == LOG_FATAL ? 1000 : stuck ? 0 : WAIT_FOR_READER_MS;
    bool ready = poll(&one, 1, wait_ms) == 1 && one.revents & POLLOUT;
    if (ready == stuck)
        atomic_store_explicit(&output->stuck, !ready, memory_order_relaxed);
    return ready;
}

static bool send_line(struct log_output *output, enum log_level level, const struct log_line *line)
{
    if (!takes_a_line(output, level))
        return false;
    ssize_t n;
    do
        n = write(output->fd, line->text, line->len);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)line->len;
}

void logger_write(enum log_level level, const char *file, int line_number, const char *message,
                  const struct log_field *fields, size_t count)
{
    static struct log_output fallback = {.fd = STDERR_FILENO};
    struct log_line line;
    struct log_event event = {
        .level = level,
        .file = file,
        .line = line_number,
        .message = message,
        .fields = fields,
        .count = count,
        .real_ns = clock_real_ns(sink.clock ? sink.clock : clock_system()),
        .dropped = atomic_exchange_explicit(&sink.dropped, 0, memory_order_relaxed),
    };
    struct log_output *outputs = sink.count ? sink.outputs : &fallback;
    size_t outputs_count = sink.count ? sink.count : 1;
    bool lost = false;
    if (sink.format == LOG_JSON)
        log_line_json(&line, &event);
    for (size_t i = 0; i < outputs_count; i++) {
        if (sink.format == LOG_CONSOLE)
            log_line_console(&line, &event, outputs[i].colour);
        lost |= !send_line(&outputs[i], level, &line);
    }
    if (lost)
        atomic_fetch_add_explicit(&sink.dropped, event.dropped + 1, memory_order_relaxed);
}

void log_exit(void)
{
    exit(1);
}
