#include "base/log/log.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log/line.h"
#include "base/log/output.h"
#include "base/options/value.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_NS NS_PER_S /* for a line that may be the last, and at the end */

/* The head of a line in the queue. */
struct queued {
    uint64_t dropped; /* lines dropped before this one */
    uint16_t len;
    uint8_t level;
};

static struct {
    struct log_output outputs[LOG_OUTPUTS_MAX]; /* used by the thread while it runs */
    size_t count;                               /* 0: stderr, as JSON */
    enum log_format format;
    bool colour;
    struct clock *clock;
    _Atomic uint64_t dropped;
    atomic_bool reopen;
    atomic_bool hurry; /* do not wait for readers any more */

    struct lock lock; /* guards everything below */
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stopping;
    uint8_t *queue;          /* LOG_QUEUE_BYTES, used as a ring */
    uint64_t written, taken; /* bytes ever written and taken; the queue holds the difference */
    bool busy;               /* the thread is writing a line */
} sink = {.lock = LOCK_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static_assert(LOG_LINE_BYTES <= UINT16_MAX, "queued.len");

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

/* -- The queue -- */

static void ring_put(const void *bytes, size_t len)
{
    assert(lock_held(&sink.lock));
    size_t at = sink.written % LOG_QUEUE_BYTES;
    size_t first = size_min(len, LOG_QUEUE_BYTES - at);
    memcpy(sink.queue + at, bytes, first);
    memcpy(sink.queue, (const uint8_t *)bytes + first, len - first);
    sink.written += len;
}

static void ring_take(void *bytes, size_t len)
{
    assert(lock_held(&sink.lock));
    size_t at = sink.taken % LOG_QUEUE_BYTES;
    size_t first = size_min(len, LOG_QUEUE_BYTES - at);
    memcpy(bytes, sink.queue + at, first);
    memcpy((uint8_t *)bytes + first, sink.queue, len - first);
    sink.taken += len;
}

static bool enqueue(const struct log_event *event, const struct log_line *line)
{
    struct queued head = {
        .dropped = event->dropped,
        .len = (uint16_t)line->len,
        .level = (uint8_t)event->level,
    };
    LOCK_SCOPE(&sink.lock);
    if (sink.written - sink.taken + sizeof(head) + line->len > LOG_QUEUE_BYTES)
        return false;
    ring_put(&head, sizeof(head));
    ring_put(line->text, line->len);
    pthread_cond_broadcast(&sink.changed);
    return true;
}

/* False: the queue is empty and stays so. */
static bool dequeue(struct queued *ret_head, char text[LOG_LINE_BYTES])
{
    LOCK_SCOPE(&sink.lock);
    sink.busy = false;
    if (sink.written == sink.taken)
        pthread_cond_broadcast(&sink.changed); /* for threads that wait in a flush */
    while (sink.written == sink.taken && !sink.stopping)
        lock_wait(&sink.lock, &sink.changed);
    if (sink.written == sink.taken)
        return false;
    ring_take(ret_head, sizeof(*ret_head));
    ring_take(text, ret_head->len);
    sink.busy = true;
    return true;
}

/* -- The thread -- */

static bool write_all(enum log_level level, struct slice line)
{
    bool whole = true;
    int wait_ms = atomic_load_explicit(&sink.hurry, memory_order_relaxed) ? 0 : LOG_READER_WAIT_MS;
    for (size_t i = 0; i < sink.count; i++)
        whole &= log_output_write(&sink.outputs[i], level, line, wait_ms);
    return whole;
}

static void *logger_main(void *arg)
{
    (void)arg;
    struct queued head;
    char text[LOG_LINE_BYTES];
    while (dequeue(&head, text)) {
        if (atomic_exchange(&sink.reopen, false))
            for (size_t i = 0; i < sink.count; i++)
                log_output_reopen(&sink.outputs[i]);
        if (!write_all((enum log_level)head.level, slice_of(text, head.len)))
            atomic_fetch_add_explicit(&sink.dropped, head.dropped + 1, memory_order_relaxed);
    }
    return NULL;
}

/* Signals are handled by the threads that wait for them. */
static enum status start_thread(struct error *error)
{
    sigset_t all, before;
    sink.queue = malloc(LOG_QUEUE_BYTES);
    if (!sink.queue)
        return error_set(error, ST_NOMEM, "no memory for the queue of the log");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&sink.thread, NULL, logger_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(error, status_from_errno(failed), "cannot start the thread of the log: %s",
                         strerrordesc_np(failed));
    pthread_setname_np(sink.thread, "vigil-log");
    sink.running = true;
    return ST_OK;
}

static void stop_thread(void)
{
    if (!sink.running)
        return;
    logger_flush(FLUSH_NS);
    atomic_store(&sink.hurry, true);
    lock_take(&sink.lock);
    sink.stopping = true;
    pthread_cond_broadcast(&sink.changed);
    lock_release(&sink.lock);
    pthread_join(sink.thread, NULL);
    sink.running = sink.stopping = false;
}

/* -- Opening and closing -- */

/* The output was named before: a line is written there once, as in etcd. */
static bool is_repeated(const char *outputs, struct slice name)
{
    struct slice earlier;
    while (option_list_next(&outputs, &earlier) && earlier.ptr != name.ptr)
        if (slice_equal(earlier, name))
            return true;
    return false;
}

static enum status open_outputs(const struct logger_options *options, struct error *error)
{
    struct slice name;
    const char *rest = options->outputs;
    sink.colour = true;
    while (option_list_next(&rest, &name)) {
        if (is_repeated(options->outputs, name))
            continue;
        if (sink.count == LOG_OUTPUTS_MAX)
            return error_set(error, ST_LIMIT, "more than %d log outputs", LOG_OUTPUTS_MAX);
        struct log_output *output = &sink.outputs[sink.count];
        TRY(log_output_open(output, name, &options->rotation, error));
        sink.colour = sink.colour && isatty(output->fd);
        sink.count++;
    }
    return ST_OK;
}

enum status logger_open(const struct logger_options *options, struct error *error)
{
    assert(sink.count == 0);
    sink.format = options->format;
    sink.clock = options->clock;
    enum status status = open_outputs(options, error);
    if (status == ST_OK)
        status = start_thread(error);
    if (status != ST_OK)
        logger_close();
    return status;
}

void logger_close(void)
{
    stop_thread();
    for (size_t i = 0; i < sink.count; i++)
        log_output_close(&sink.outputs[i]);
    free(sink.queue);
    sink.queue = NULL;
    sink.count = 0;
    sink.written = sink.taken = 0;
    sink.format = LOG_JSON;
    sink.clock = NULL;
    atomic_store(&sink.hurry, false);
}

void logger_reopen(void)
{
    atomic_store(&sink.reopen, true);
}

void logger_flush(int64_t timeout_ns)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    int64_t end = clock_mono_ns(clock_system()) + timeout_ns;
    for (bool idle = false; !idle;) {
        lock_take(&sink.lock);
        idle = !sink.running || (sink.written == sink.taken && !sink.busy);
        lock_release(&sink.lock);
        if (idle || clock_mono_ns(clock_system()) >= end)
            break;
        nanosleep(&pause, NULL);
    }
}

/* -- Lines -- */

/* Without the thread: before it starts, and after it has ended. */
static bool write_now(enum log_level level, const struct log_line *line)
{
    static struct log_output fallback = {.kind = LOG_TO_DESCRIPTOR, .fd = STDERR_FILENO};
    LOCK_SCOPE(&sink.lock);
    return log_output_write(&fallback, level, slice_of(line->text, line->len), LOG_READER_WAIT_MS);
}

void logger_write(enum log_level level, const char *file, int line_number, const char *message,
                  const struct log_field *fields, size_t count)
{
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
    if (sink.format == LOG_JSON)
        log_line_json(&line, &event);
    else
        log_line_console(&line, &event, sink.colour);
    bool passed = sink.running ? enqueue(&event, &line) : write_now(level, &line);
    if (!passed)
        atomic_fetch_add_explicit(&sink.dropped, event.dropped + 1, memory_order_relaxed);
}

void log_exit(void)
{
    logger_flush(FLUSH_NS);
    /* Other threads continue, and what libraries free at exit may be in use by them. */
    fflush(NULL);
    _exit(1);
}
