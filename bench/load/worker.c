#include "load/worker.h"

#include "load/message.h"
#include "load/pod.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, POLL_MS = 20 };
#define DRAIN_NS UINT64_C(2000000000)
#define STALL_NS UINT64_C(30000000000)

struct bench_worker {
    const struct bench_shared *shared;
    struct bench_conn *conns;
    uint32_t conn_count, conns_open;
    int epoll_fd;
    uint8_t *scratch;
    uint64_t key_from, key_until, key_next;
    uint64_t random;
    bool by_total;
    bool stopping;               /* no new calls */
    uint64_t left;               /* calls still to make, by total */
    _Atomic uint64_t shown_left; /* the same as others may see it; 0 at the end */
    uint64_t in_flight;          /* on all connections */
    uint64_t now_ns;             /* when the bytes being handled had come */
    uint64_t last_end_ns;
    struct bench_outcome outcome;
};

static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static uint64_t choose_key(struct bench_worker *worker)
{
    const struct bench_shared *shared = worker->shared;
    if (shared->load->order == BENCH_RANDOM)
        return random_next(&worker->random) % shared->load->key_space;
    uint64_t key = worker->key_next++;
    if (worker->key_next == worker->key_until)
        worker->key_next = worker->key_from;
    return shared->shuffled ? shared->shuffled[key] : key;
}

static enum status append_call(struct bench_worker *worker, struct bench_conn *conn,
                               uint32_t stream)
{
    const struct bench_shared *shared = worker->shared;
    bool first = stream == 1;
    uint8_t *at;
    TRY(bench_request_append(first ? &shared->first : &shared->next, stream, &conn->out, &at));
    if (shared->load->verb == BENCH_LIST || shared->load->verb == BENCH_POD_LIST)
        return ST_OK;
    uint64_t key = choose_key(worker);
    bench_digits_write(at + (first ? shared->key_at : shared->key_at_next), BENCH_KEY_DIGITS, key);
    if (shared->node_at)
        bench_digits_write(at + shared->node_at, BENCH_POD_DIGITS, key % shared->load->nodes);
    return ST_OK;
}

/* Begins calls until the connection's share is in flight. */
static enum status fill(struct bench_worker *worker, struct bench_conn *conn)
{
    if (worker->stopping || (worker->by_total && worker->left == 0))
        return ST_OK;
    uint64_t now = bench_now_ns();
    while (!worker->by_total || worker->left > 0) {
        struct bench_call *call = bench_conn_begin(conn, worker->shared->first.body_bytes, now);
        if (!call)
            break;
        worker->in_flight++;
        worker->left -= worker->by_total;
        TRY(append_call(worker, conn, call->stream));
    }
    return ST_OK;
}

static bool measured(const struct bench_worker *worker)
{
    return worker->now_ns >= worker->shared->record_from_ns &&
           worker->now_ns < worker->shared->record_until_ns;
}

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    static const struct bench_verdict too_short = {
        .http_status = -1,
        .grpc_status = -1,
        .message = "the response is shorter than the values that were asked for"};
    struct bench_worker *worker = conn->owner;
    worker->in_flight--;
    worker->last_end_ns = worker->now_ns;
    if (!error && call->data_bytes < worker->shared->response_bytes_min)
        error = &too_short;
    if (UNLIKELY(error != NULL))
        bench_outcome_note(&worker->outcome, error);
    else if (measured(worker))
        bench_histogram_add(&worker->outcome.latency, worker->now_ns - call->start_ns);
}

/* A single put is made to learn the revision; its answer is short and comes in one piece. */
static enum status on_data(struct bench_conn *conn, struct bench_call *call, struct slice bytes)
{
    struct bench_worker *worker = conn->owner;
    if (call->data_bytes == bytes.len && bytes.len > BENCH_GRPC_PREFIX_BYTES)
        worker->outcome.last_revision = bench_message_revision(
            slice_sub(bytes, BENCH_GRPC_PREFIX_BYTES, bytes.len - BENCH_GRPC_PREFIX_BYTES));
    return ST_OK;
}

static const struct bench_conn_handler handler = {.on_end = on_end};
static const struct bench_conn_handler plain_handler = {.plain = true, .on_end = on_end};
static const struct bench_conn_handler single_handler = {.on_data = on_data, .on_end = on_end};

static const struct bench_conn_handler *handler_of(const struct bench_load *load)
{
    if (load->verb == BENCH_POD_CREATE || load->verb == BENCH_POD_LIST)
        return &plain_handler;
    return load->total == 1 ? &single_handler : &handler;
}

static void lose(struct bench_worker *worker, struct bench_conn *conn)
{
    struct bench_verdict verdict = {.http_status = -1, .grpc_status = -1};
    slice_copy(verdict.message, slice_of(conn->failure, strnlen(conn->failure, 159)));
    for (uint32_t i = 0; i < conn->in_flight; i++)
        bench_outcome_note(&worker->outcome, &verdict);
    worker->in_flight -= conn->in_flight;
    worker->outcome.connections_lost++;
    worker->conns_open--;
    bench_conn_close(conn);
}

static enum status watch_socket(struct bench_worker *worker, struct bench_conn *conn, int op)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (conn->want_write)
        event.events |= EPOLLOUT;
    return epoll_ctl(worker->epoll_fd, op, conn->fd, &event) < 0 ? status_from_errno(errno) : ST_OK;
}

/* Sends the started calls, and waits for room when the socket is full. */
static enum status send_out(struct bench_worker *worker, struct bench_conn *conn)
{
    bool wanted = conn->want_write;
    TRY(bench_conn_flush(conn));
    return conn->want_write == wanted ? ST_OK : watch_socket(worker, conn, EPOLL_CTL_MOD);
}

static enum status serve(struct bench_worker *worker, struct bench_conn *conn, uint32_t events)
{
    uint64_t in = conn->bytes_in, out = conn->bytes_out;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        worker->now_ns = bench_now_ns();
        TRY(bench_conn_read(conn, worker->scratch));
        TRY(fill(worker, conn));
    }
    TRY(send_out(worker, conn));
    if (measured(worker)) {
        worker->outcome.bytes_in += conn->bytes_in - in;
        worker->outcome.bytes_out += conn->bytes_out - out;
    }
    return ST_OK;
}

static void turn(struct bench_worker *worker)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, POLL_MS);
    for (int i = 0; i < n; i++) {
        struct bench_conn *conn = events[i].data.ptr;
        if (serve(worker, conn, events[i].events) != ST_OK)
            lose(worker, conn);
    }
}

static bool finished(struct bench_worker *worker)
{
    uint64_t now = bench_now_ns();
    if (worker->conns_open == 0)
        return true;
    if (worker->by_total)
        return (worker->left == 0 && worker->in_flight == 0) ||
               now > worker->last_end_ns + STALL_NS;
    worker->stopping = now >= worker->shared->record_until_ns;
    return worker->stopping &&
           (worker->in_flight == 0 || now >= worker->shared->record_until_ns + DRAIN_NS);
}

void *bench_worker_run(void *argument)
{
    struct bench_worker *worker = argument;
    worker->last_end_ns = bench_now_ns();
    for (uint32_t i = 0; i < worker->conn_count; i++) {
        struct bench_conn *conn = &worker->conns[i];
        if (fill(worker, conn) != ST_OK || send_out(worker, conn) != ST_OK)
            lose(worker, conn);
    }
    while (!finished(worker)) {
        turn(worker);
        atomic_store_explicit(&worker->shown_left, worker->left, memory_order_relaxed);
    }
    atomic_store_explicit(&worker->shown_left, 0, memory_order_relaxed);
    return NULL;
}

uint64_t bench_worker_left(const struct bench_worker *worker)
{
    return atomic_load_explicit(&worker->shown_left, memory_order_relaxed);
}

static enum status open_all(struct bench_worker *worker, uint32_t connections, struct error *error)
{
    const struct bench_load *load = worker->shared->load;
    for (uint32_t i = 0; i < connections; i++) {
        struct bench_conn *conn = &worker->conns[i];
        TRY(bench_conn_open(conn, &load->target->address, load->pipeline, handler_of(load), worker,
                            error));
        worker->conn_count = worker->conns_open = i + 1;
        enum status status = watch_socket(worker, conn, EPOLL_CTL_ADD);
        if (status != ST_OK)
            return error_set(error, status, "cannot watch a socket: %s", status_text(status));
        if ((int64_t)worker->shared->first.body_bytes > conn->stream_window)
            return error_set(error, ST_LIMIT, "a request is larger than the server's window of %d",
                             (int)conn->stream_window);
    }
    return ST_OK;
}

enum status bench_worker_new(const struct bench_shared *shared, uint32_t connections,
                             uint64_t key_from, uint64_t key_until, uint64_t total,
                             struct bench_worker **ret_worker, struct error *error)
{
    AUTO(bench_worker_freep) struct bench_worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return ST_NOMEM;
    worker->shared = shared;
    worker->key_from = worker->key_next = key_from;
    worker->key_until = key_until;
    worker->random = key_from * 2654435761u + 88172645463325252u;
    worker->by_total = shared->load->total > 0;
    worker->left = total;
    worker->shown_left = total;
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    worker->conns = calloc(connections, sizeof(*worker->conns));
    worker->scratch = malloc(BENCH_CONN_SCRATCH_BYTES);
    if (!worker->conns || !worker->scratch || worker->epoll_fd < 0)
        return error_set(error, ST_NOMEM, "no memory for a worker");
    TRY(open_all(worker, connections, error));
    *ret_worker = TAKE(worker);
    return ST_OK;
}

void bench_worker_free(struct bench_worker *worker)
{
    if (!worker)
        return;
    for (uint32_t i = 0; i < worker->conn_count; i++)
        bench_conn_close(&worker->conns[i]);
    if (worker->epoll_fd >= 0)
        close(worker->epoll_fd);
    free(worker->conns);
    free(worker->scratch);
    free(worker);
}

void bench_worker_collect(const struct bench_worker *worker, struct bench_outcome *into,
                          uint64_t *ret_end_ns)
{
    const struct bench_outcome *from = &worker->outcome;
    bench_histogram_merge(&into->latency, &from->latency);
    into->bytes_in += from->bytes_in;
    into->bytes_out += from->bytes_out;
    into->errors += from->errors + worker->left + worker->in_flight;
    into->last_revision = from->last_revision;
    into->connections_lost += from->connections_lost;
    if (!into->first_error[0])
        memcpy(into->first_error, from->first_error, sizeof(into->first_error));
    if (!into->first_error[0] && worker->left + worker->in_flight > 0)
        slice_copy(into->first_error, SLICE_LITERAL("calls were never answered"));
    *ret_end_ns = worker->last_end_ns;
}
