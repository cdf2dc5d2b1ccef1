#include "load/load.h"

#include "base/progress.h"
#include "load/message.h"
#include "load/pod.h"
#include "load/worker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SHOW_NS 500000000u

static const char *const paths[] = {
    [BENCH_PUT] = "/etcdserverpb.KV/Put",
    [BENCH_GET] = "/etcdserverpb.KV/Range",
    [BENCH_LIST] = "/etcdserverpb.KV/Range",
};

static enum status fill_value(struct buf *value, size_t bytes)
{
    TRY(buf_reserve(value, bytes));
    uint32_t x = 2463534242u;
    for (; value->len < bytes; value->len++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        value->ptr[value->len] = (uint8_t)('a' + x % 26);
    }
    return ST_OK;
}

/* The request with zeros for the digits of its key; ret_digits_at is their offset. */
static enum status make_message(const struct bench_load *load, struct buf *out,
                                size_t *ret_digits_at)
{
    AUTO(buf_fini) struct buf key = {0};
    AUTO(buf_fini) struct buf rest = {0};
    TRY(buf_append_text(&key, load->prefix));
    *ret_digits_at = 2 + key.len; /* behind the tag and the length */
    if (load->verb == BENCH_LIST) {
        TRY(bench_message_prefix_end(buf_slice(&key), &rest));
        return bench_message_range(out, buf_slice(&key), buf_slice(&rest));
    }
    TRY(buf_append_format(&key, "%0*d", BENCH_KEY_DIGITS, 0));
    if (load->verb == BENCH_GET)
        return bench_message_range(out, buf_slice(&key), SLICE_EMPTY);
    TRY(fill_value(&rest, load->value_bytes));
    return bench_message_put(out, buf_slice(&key), buf_slice(&rest));
}

/* ST_INVALID: the object has no place for its number. */
static enum status append_object(const struct bench_load *load, struct buf *body,
                                 struct bench_pod_places *places)
{
    const uint8_t *at = memmem(load->object.ptr, load->object.len, BENCH_ZEROS, BENCH_KEY_DIGITS);
    if (!at)
        return ST_INVALID;
    places->name = (size_t)(at - load->object.ptr);
    return buf_append(body, load->object);
}

static enum status make_pod_requests(struct bench_shared *shared)
{
    const struct bench_load *load = shared->load;
    bool create = load->verb == BENCH_POD_CREATE, is_pod = !load->object.len;
    AUTO(buf_fini) struct buf body = {0};
    AUTO(buf_fini) struct buf block = {0};
    struct bench_pod_places places = {0};
    if (create && is_pod)
        TRY(bench_pod_append(&body, load->value_bytes, &places));
    else if (create)
        TRY(append_object(load, &body, &places));
    TRY(bench_headers_append_plain(&block, create ? "POST" : "GET",
                                   is_pod ? BENCH_PODS_PATH : load->path, load->target->authority,
                                   create ? "application/json" : NULL, load->target->token));
    TRY(bench_request_init_plain(&shared->first, buf_slice(&block), buf_slice(&body)));
    TRY(bench_request_init_plain(&shared->next, buf_slice(&block), buf_slice(&body)));
    shared->key_at = shared->key_at_next = bench_request_place(&shared->first, places.name);
    if (is_pod)
        shared->node_at = bench_request_place(&shared->first, places.node);
    return ST_OK;
}

static enum status make_requests(struct bench_shared *shared)
{
    const struct bench_load *load = shared->load;
    if (load->verb == BENCH_POD_CREATE || load->verb == BENCH_POD_LIST)
        return make_pod_requests(shared);
    AUTO(buf_fini) struct buf message = {0};
    AUTO(buf_fini) struct buf first = {0};
    AUTO(buf_fini) struct buf next = {0};
    size_t digits_at;
    TRY(make_message(load, &message, &digits_at));
    TRY(bench_headers_append_first(&first, paths[load->verb], load->target->authority,
                                   load->target->token));
    TRY(bench_headers_append_next(&next, load->target->token));
    TRY(bench_request_init(&shared->first, buf_slice(&first), buf_slice(&message), true));
    TRY(bench_request_init(&shared->next, buf_slice(&next), buf_slice(&message), true));
    shared->key_at = bench_request_place(&shared->first, digits_at);
    shared->key_at_next = bench_request_place(&shared->next, digits_at);
    return ST_OK;
}

static size_t shortest_response(const struct bench_load *load)
{
    size_t one = load->value_bytes + BENCH_KEY_DIGITS + strlen(load->prefix);
    if (load->object.len)
        return load->object.len;
    if (load->verb == BENCH_POD_CREATE || load->verb == BENCH_POD_LIST)
        return load->value_bytes * (load->verb == BENCH_POD_LIST ? load->key_space : 1);
    if (load->verb == BENCH_PUT || load->value_bytes == 0)
        return BENCH_GRPC_PREFIX_BYTES;
    return load->verb == BENCH_GET ? one : one * load->key_space;
}

static uint32_t *shuffle(uint64_t count)
{
    uint32_t *order = malloc(count * sizeof(*order));
    if (!order)
        return NULL;
    uint64_t x = 88172645463325252u;
    for (uint64_t i = 0; i < count; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t other = x % (i + 1);
        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
    return order;
}

/* On a terminal it wakes up twice a second, to show how much of the time is over. */
static void sleep_until(struct progress *progress, const struct bench_shared *shared,
                        uint64_t begun_ns, uint64_t at_ns)
{
    uint64_t now_ns;
    while ((now_ns = bench_now_ns()) < at_ns) {
        uint64_t next_ns =
            at_ns - now_ns > SHOW_NS && progress->is_terminal ? now_ns + SHOW_NS : at_ns;
        struct timespec t = {(time_t)(next_ns / 1000000000u), (long)(next_ns % 1000000000u)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        progress_show(progress, (bench_now_ns() - begun_ns) / 1000000000u,
                      (shared->record_until_ns - begun_ns) / 1000000000u);
    }
}

struct run {
    struct bench_shared shared;
    uint32_t *shuffled;
    uint32_t workers_open, threads_running;
    struct bench_worker *workers[BENCH_THREADS_MAX];
    pthread_t threads[BENCH_THREADS_MAX];
};

static void run_fini(struct run *run)
{
    for (uint32_t i = 0; i < run->threads_running; i++)
        pthread_join(run->threads[i], NULL);
    for (uint32_t i = 0; i < run->workers_open; i++)
        bench_worker_free(run->workers[i]);
    bench_request_fini(&run->shared.first);
    bench_request_fini(&run->shared.next);
    free(run->shuffled);
}

static enum status run_open(struct run *run, struct error *error)
{
    const struct bench_load *load = run->shared.load;
    uint32_t threads = load->threads < load->connections ? load->threads : load->connections;
    run->shared.response_bytes_min = shortest_response(load);
    enum status status = make_requests(&run->shared);
    if (status != ST_OK)
        return error_set(error, status, "cannot build the request: %s", status_text(status));
    if (load->order == BENCH_SHUFFLED && !(run->shuffled = shuffle(load->key_space)))
        return error_set(error, ST_NOMEM, "no memory to shuffle the keys");
    run->shared.shuffled = run->shuffled;
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t conns = load->connections * (i + 1) / threads - load->connections * i / threads;
        uint64_t total = load->total * (i + 1) / threads - load->total * i / threads;
        TRY(bench_worker_new(&run->shared, conns, load->key_space * i / threads,
                             load->key_space * (i + 1) / threads, total, &run->workers[i], error));
        run->workers_open++;
    }
    return ST_OK;
}

static void read_usage(const struct bench_load *load, struct bench_usage *usage, bool *has_usage)
{
    if (load->target->processes.server)
        *has_usage = bench_usage_read(&load->target->processes, usage) == ST_OK;
}

static void join_all(struct run *run)
{
    for (; run->threads_running > 0; run->threads_running--)
        pthread_join(run->threads[run->threads_running - 1], NULL);
}

/* By total, on a terminal: shows how many calls were made, until the workers have begun the last.
 */
static void show_total(const struct run *run, struct progress *progress)
{
    struct timespec pause = {.tv_nsec = SHOW_NS / 5};
    uint64_t left = run->shared.load->total;
    while (progress->is_terminal && left) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        left = 0;
        for (uint32_t i = 0; i < run->workers_open; i++)
            left += bench_worker_left(run->workers[i]);
        progress_show(progress, run->shared.load->total - left, run->shared.load->total);
    }
}

/* By time: sleep to both edges of the measured time. By total: all of it is measured. */
static void run_measured(struct run *run, struct bench_outcome *outcome)
{
    const struct bench_load *load = run->shared.load;
    uint64_t begun_ns = bench_now_ns();
    struct progress progress;
    progress_init(&progress, stderr, "load", load->total ? "calls" : "");
    if (!load->total)
        sleep_until(&progress, &run->shared, begun_ns, run->shared.record_from_ns);
    uint64_t own_cpu = bench_usage_own_cpu_ns();
    read_usage(load, &outcome->before, &outcome->has_usage);
    if (load->total) {
        show_total(run, &progress);
        join_all(run);
    } else {
        sleep_until(&progress, &run->shared, begun_ns, run->shared.record_until_ns);
    }
    outcome->own_cpu_ns = bench_usage_own_cpu_ns() - own_cpu;
    read_usage(load, &outcome->after, &outcome->has_usage);
    progress_end(&progress);
    join_all(run);
}

enum status bench_load_run(const struct bench_load *load, struct bench_outcome *ret_outcome,
                           struct error *error)
{
    assert(load->connections > 0 && load->threads > 0 && load->threads <= BENCH_THREADS_MAX);
    AUTO(run_fini) struct run run = {.shared.load = load};
    *ret_outcome = (struct bench_outcome){0};
    TRY(run_open(&run, error));
    uint64_t start = bench_now_ns();
    run.shared.record_from_ns = load->total ? 0 : start + load->warmup_ns;
    run.shared.record_until_ns =
        load->total ? UINT64_MAX : run.shared.record_from_ns + load->duration_ns;
    for (uint32_t i = 0; i < run.workers_open; i++) {
        if (pthread_create(&run.threads[i], NULL, bench_worker_run, run.workers[i]) != 0)
            return error_set(error, ST_NOMEM, "cannot start a thread");
        run.threads_running++;
    }
    run_measured(&run, ret_outcome);
    uint64_t last_end = start + 1;
    for (uint32_t i = 0; i < run.workers_open; i++) {
        uint64_t end;
        bench_worker_collect(run.workers[i], ret_outcome, &end);
        last_end = end > last_end ? end : last_end;
    }
    uint64_t measured_ns = load->total ? last_end - start : load->duration_ns;
    ret_outcome->seconds = (double)measured_ns / 1e9;
    return ST_OK;
}
