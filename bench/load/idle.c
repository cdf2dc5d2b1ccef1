#include "load/context.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, POLL_MS = 50 };

/* Connections that are only held. */
struct idlers {
    struct bench_conn *conns;
    uint64_t open;
    int epoll_fd;
    uint8_t *scratch;
};

static void idlers_fini(struct idlers *idlers)
{
    for (uint64_t i = 0; i < idlers->open; i++)
        bench_conn_close(&idlers->conns[i]);
    if (idlers->epoll_fd >= 0)
        close(idlers->epoll_fd);
    free(idlers->conns);
    free(idlers->scratch);
}

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    (void)conn;
    (void)call;
    (void)error;
}

static const struct bench_conn_handler handler = {.on_end = on_end};

static enum status open_all(struct idlers *idlers, struct bench_context *context)
{
    uint64_t count = context->options.connections;
    idlers->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    idlers->conns = calloc(count, sizeof(*idlers->conns));
    idlers->scratch = malloc(BENCH_CONN_SCRATCH_BYTES);
    if (idlers->epoll_fd < 0 || !idlers->conns || !idlers->scratch)
        return ST_NOMEM;
    for (; idlers->open < count; idlers->open++) {
        struct bench_conn *conn = &idlers->conns[idlers->open];
        TRY(bench_conn_open(conn, &context->target.address, 0, &handler, NULL, &context->error));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
        if (epoll_ctl(idlers->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0)
            return status_from_errno(errno);
    }
    return ST_OK;
}

/* Answers the server's pings and notices when it closes a connection. */
static enum status hold(struct idlers *idlers, struct bench_context *context)
{
    uint64_t until_ns = bench_now_ns() + context->options.duration_ns;
    while (bench_now_ns() < until_ns) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(idlers->epoll_fd, events, EVENTS_MAX, POLL_MS);
        for (int i = 0; i < n; i++) {
            struct bench_conn *conn = events[i].data.ptr;
            enum status status = bench_conn_read(conn, idlers->scratch);
            if (status == ST_OK)
                status = bench_conn_flush(conn);
            if (status != ST_OK)
                return error_set(&context->error, status, "a connection was lost: %s",
                                 conn->failure);
        }
    }
    return ST_OK;
}

enum status bench_idle_run(struct bench_context *context)
{
    if (context->options.streams)
        return bench_watch_idle_run(context);
    AUTO(idlers_fini) struct idlers idlers = {.epoll_fd = -1};
    struct bench_report *report = &context->report;
    struct bench_usage before, after;
    const struct bench_processes *processes = &context->target.processes;
    bool has_usage = processes->server && bench_usage_read(processes, &before) == ST_OK;
    TRY(open_all(&idlers, context));
    TRY(hold(&idlers, context));
    bench_report_count(report, "connections", idlers.open);
    if (!has_usage || bench_usage_read(processes, &after) != ST_OK)
        return ST_OK;
    bench_report_usage(report, &before, &after, 0);
    double more = (double)after.anonymous_kb - (double)before.anonymous_kb;
    bench_report_number(report, "server_anonymous_kb_per_connection", more / (double)idlers.open);
    return ST_OK;
}
