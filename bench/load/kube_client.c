#include "load/kube_client.h"

#include "load/pod.h"
#include "load/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND UINT64_C(1000000000)

enum { EVENTS_MAX = 256, LINE_BYTES_MAX = 1 << 20, PATH_BYTES = 200, TOKEN_BYTES = 240 };

#define WATCH_PATH "/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=false"
#define INITIAL_PATH                                                                \
    "/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true" \
    "&allowWatchBookmarks=true"
#define CONFIG_PATH                                                      \
    BENCH_CONFIGS_PATH                                                   \
    "?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=false" \
    "&fieldSelector=metadata.name%3D" BENCH_CONFIG_NAME
#define OF_A_NODE "&fieldSelector=spec.nodeName%3D" BENCH_NODE_NAME

/* A request and where its digits stand. */
struct template
{
    struct bench_request request;
    size_t number;           /* number of the node or pod in the path */
    size_t user;             /* number of the user in its token */
    size_t name, node, time; /* node: 0 if there is none */
};

struct watch {
    struct buf line;       /* the start of an event whose rest has not come */
    uint64_t ask_again_ns; /* 0: it does not wait */
    bool failed;           /* an ERROR has come, and the end of the answer will */
};

struct bench_kube_client {
    struct bench_kube_config config;
    /* The watching ones, those that stop, the changing one if there are changes. */
    struct bench_conn *conns;
    uint32_t conns_open;
    struct watch *watches;
    uint32_t waiting; /* watches that wait to ask again */
    char token[TOKEN_BYTES];
    struct template watch, watch_all, change;
    uint64_t begun_ns;
    uint64_t next_pod;
    int epoll_fd;
    uint8_t *scratch;
    uint64_t now_ns;
    bool record;
    struct bench_kube_counts counts;
};

static bool has_changes(const struct bench_kube_config *config)
{
    return !config->initial;
}

static uint32_t conns_of(const struct bench_kube_config *config)
{
    return config->connections + config->stopped + has_changes(config);
}

static struct bench_conn *change_conn(struct bench_kube_client *client)
{
    return &client->conns[client->config.connections + client->config.stopped];
}

static bool is_stopped(const struct bench_kube_client *client, const struct bench_conn *conn)
{
    return conn >= client->conns + client->config.connections;
}

/* -- Answers -- */

static void on_bookmark(struct bench_kube_client *client, struct slice line)
{
    static const char end[] = "k8s.io/initial-events-end";
    if (!memmem(line.ptr, line.len, end, sizeof(end) - 1))
        return;
    client->counts.synced++;
    bench_histogram_add(&client->counts.sync_latency, client->now_ns - client->begun_ns);
}

/* A server that is too busy may say so when the answer has begun. A client begins again then. */
static void on_error(struct bench_kube_client *client, struct watch *watch, struct slice line)
{
    struct bench_verdict wrong = {.http_status = -1, .grpc_status = -1};
    watch->failed = client->config.initial;
    if (watch->failed)
        return;
    snprintf(wrong.message, sizeof(wrong.message), "a watch received %.*s",
             (int)size_min(line.len, 120), (const char *)line.ptr);
    bench_outcome_note(&client->counts.trouble, &wrong);
}

static enum status on_line(struct bench_kube_client *client, struct watch *watch, struct slice line)
{
    struct slice kind = slice_sub(line, 0, size_min(line.len, 16));
    uint64_t sent_ns;
    if (slice_equal(kind, SLICE_LITERAL("{\"type\":\"BOOKMAR"))) {
        on_bookmark(client, line);
        return ST_OK;
    }
    if (!bench_pod_time(line, &sent_ns)) {
        on_error(client, watch, line);
        return ST_OK;
    }
    client->counts.events++;
    client->counts.last_event_ns = client->now_ns;
    if (client->record && sent_ns <= client->now_ns)
        bench_histogram_add(&client->counts.event_latency, client->now_ns - sent_ns);
    return ST_OK;
}

/* Takes whole lines off the front; leaves what is incomplete. */
static enum status take_lines(struct bench_kube_client *client, struct watch *watch,
                              struct slice *bytes, size_t looked)
{
    for (;;) {
        const uint8_t *end = memchr(bytes->ptr + looked, '\n', bytes->len - looked);
        if (!end)
            return bytes->len > LINE_BYTES_MAX ? ST_MALFORMED : ST_OK;
        size_t len = (size_t)(end - bytes->ptr) + 1;
        TRY(on_line(client, watch, slice_sub(*bytes, 0, len)));
        *bytes = slice_sub(*bytes, len, bytes->len - len);
        looked = 0;
        if (!bytes->len)
            return ST_OK;
    }
}

static enum status on_data(struct bench_conn *conn, struct bench_call *call, struct slice bytes)
{
    struct bench_kube_client *client = conn->owner;
    if (is_stopped(client, conn))
        return ST_OK;
    struct watch *watch = &client->watches[call->tag];
    struct buf *partial = &watch->line;
    size_t looked = partial->len;
    struct slice rest = bytes;
    if (looked) {
        TRY(buf_append(partial, bytes));
        rest = buf_slice(partial);
    }
    size_t before = rest.len;
    TRY(take_lines(client, watch, &rest, looked));
    if (looked) {
        buf_consume(partial, before - rest.len);
        return ST_OK;
    }
    return buf_append(partial, rest);
}

static void on_head(struct bench_conn *conn, struct bench_call *call)
{
    struct bench_kube_client *client = conn->owner;
    (void)call;
    client->counts.opened += conn != change_conn(client);
}

/* In how many seconds a watch that has ended asks again; 0: it does not. As client-go does: a
 * server that is too busy says when. */
static int retry_in(const struct watch *watch, const struct bench_verdict *error)
{
    if (!error)
        return watch->failed ? 1 : 0;
    bool busy = error->http_status == 429 || error->http_status / 100 == 5;
    return busy && error->retry_after_s > 0 ? error->retry_after_s : 0;
}

static void retry(struct bench_kube_client *client, struct watch *watch, int seconds)
{
    watch->ask_again_ns = client->now_ns + (uint64_t)seconds * NS_PER_SECOND;
    watch->failed = false;
    buf_fini(&watch->line);
    client->waiting++;
    client->counts.retries++;
}

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    static const struct bench_verdict early = {
        .http_status = -1, .grpc_status = -1, .message = "a watch ended"};
    struct bench_kube_client *client = conn->owner;
    const struct bench_kube_config *config = &client->config;
    bool watches = conn < client->conns + config->connections;
    int seconds = watches ? retry_in(&client->watches[call->tag], error) : 0;
    if (seconds) {
        retry(client, &client->watches[call->tag], seconds);
        return;
    }
    if (error || conn != change_conn(client)) {
        bench_outcome_note(&client->counts.trouble, error ? error : &early);
        return;
    }
    client->counts.changes_done++;
    client->counts.expected += (uint64_t)config->connections * config->streams / config->nodes;
    if (client->record)
        bench_histogram_add(&client->counts.change_latency, client->now_ns - call->start_ns);
}

static const struct bench_conn_handler handler = {
    .plain = true, .on_head = on_head, .on_data = on_data, .on_end = on_end};

/* -- Requests -- */

static uint32_t node_of(const struct bench_kube_config *config, uint32_t watch)
{
    uint32_t of_a_node = config->connections * config->streams / config->nodes;
    return config->spread ? watch % config->nodes : watch / of_a_node;
}

static enum status open_watch(struct bench_kube_client *client, struct bench_conn *conn,
                              uint32_t index)
{
    bool all = client->config.initial || is_stopped(client, conn);
    const struct template *template = all ? &client->watch_all : &client->watch;
    struct bench_call *call = bench_conn_begin(conn, 0, client->now_ns);
    uint8_t *at;
    if (!call)
        return ST_LIMIT;
    call->tag = index;
    TRY(bench_request_append(&template->request, call->stream, &conn->out, &at));
    if (!all)
        bench_digits_write(at + template->number, BENCH_POD_DIGITS,
                           node_of(&client->config, index));
    if (client->config.users)
        bench_digits_write(at + template->user, BENCH_POD_DIGITS,
                           (uint64_t)(conn - client->conns) % client->config.users);
    return ST_OK;
}

bool bench_kube_client_change(struct bench_kube_client *client, uint64_t at_ns)
{
    struct bench_conn *conn = change_conn(client);
    const struct template *template = &client->change;
    struct bench_call *call = bench_conn_begin(conn, template->request.body_bytes, at_ns);
    uint8_t *at;
    if (!call || bench_request_append(&template->request, call->stream, &conn->out, &at) != ST_OK)
        return false;
    uint64_t pod = client->next_pod++ % client->config.pods;
    bench_digits_write(at + template->number, BENCH_POD_DIGITS, pod);
    bench_digits_write(at + template->name, BENCH_POD_DIGITS, pod);
    if (template->node)
        bench_digits_write(at + template->node, BENCH_POD_DIGITS, pod % client->config.nodes);
    bench_digits_write(at + template->time, BENCH_POD_TIME_DIGITS, at_ns);
    client->counts.changes_sent++;
    return true;
}

static enum status make_request(const struct bench_kube_client *client, struct template *template,
                                const char *method, const char *path, struct slice body)
{
    const char *authority = client->config.target->authority;
    AUTO(buf_fini) struct buf block = {0};
    TRY(bench_headers_append_plain(&block, method, path, authority,
                                   body.len ? "application/json" : NULL, client->token));
    TRY(bench_request_init_plain(&template->request, buf_slice(&block), body));
    /* The digits are at the end of the path, which is in the block as plain text. */
    const uint8_t *at = memmem(block.ptr, block.len, path, strlen(path));
    assert(at);
    template->number =
        BENCH_FRAME_HEAD_BYTES + (size_t)(at - block.ptr) + strlen(path) - BENCH_POD_DIGITS;
    template->user = BENCH_FRAME_HEAD_BYTES + block.len - BENCH_POD_DIGITS; /* at its end */
    return ST_OK;
}

/* The digits of an object are at the end of the path. */
static enum status make_change(struct bench_kube_client *client)
{
    const struct bench_kube_config *config = &client->config;
    AUTO(buf_fini) struct buf object = {0};
    struct bench_pod_places places;
    char path[PATH_BYTES];
    TRY(config->configs ? bench_config_append(&object, config->pod_bytes, &places)
                        : bench_pod_append(&object, config->pod_bytes, &places));
    snprintf(path, sizeof(path), "%s" BENCH_ZEROS,
             config->configs ? BENCH_CONFIGS_PATH "/" BENCH_CONFIG_NAME
                             : BENCH_PODS_PATH "/" BENCH_POD_NAME);
    TRY(make_request(client, &client->change, "PUT", path, buf_slice(&object)));
    client->change.name = bench_request_place(&client->change.request, places.name);
    client->change.time = bench_request_place(&client->change.request, places.time);
    if (places.node)
        client->change.node = bench_request_place(&client->change.request, places.node);
    return ST_OK;
}

static enum status make_requests(struct bench_kube_client *client)
{
    const struct bench_kube_config *config = &client->config;
    char path[PATH_BYTES];
    if (snprintf(client->token, sizeof(client->token), "%s%s", config->target->token,
                 config->users ? BENCH_ZEROS : "") >= (int)sizeof(client->token))
        return ST_LIMIT;
    snprintf(path, sizeof(path), "%s" BENCH_ZEROS,
             config->configs ? CONFIG_PATH : WATCH_PATH OF_A_NODE);
    TRY(make_request(client, &client->watch, "GET", path, SLICE_EMPTY));
    TRY(make_request(client, &client->watch_all, "GET", config->initial ? INITIAL_PATH : WATCH_PATH,
                     SLICE_EMPTY));
    return make_change(client);
}

/* -- Sockets -- */

static enum status watch_socket(struct bench_kube_client *client, struct bench_conn *conn, int op)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (conn->want_write)
        event.events |= EPOLLOUT;
    return epoll_ctl(client->epoll_fd, op, conn->fd, &event) < 0 ? ST_IO : ST_OK;
}

static enum status send_out(struct bench_kube_client *client, struct bench_conn *conn)
{
    bool wanted = conn->want_write;
    TRY(bench_conn_flush(conn));
    return wanted == conn->want_write ? ST_OK : watch_socket(client, conn, EPOLL_CTL_MOD);
}

/* Watches whose time has come ask again. */
static enum status ask_again(struct bench_kube_client *client)
{
    uint32_t streams = client->config.streams;
    client->now_ns = bench_now_ns();
    for (uint32_t i = 0; client->waiting && i < client->config.connections * streams; i++) {
        struct bench_conn *conn = &client->conns[i / streams];
        struct watch *watch = &client->watches[i];
        if (!watch->ask_again_ns || watch->ask_again_ns > client->now_ns)
            continue;
        watch->ask_again_ns = 0;
        client->waiting--;
        TRY(open_watch(client, conn, i));
        TRY(send_out(client, conn));
    }
    return ST_OK;
}

enum status bench_kube_client_turn(struct bench_kube_client *client, uint64_t wait_ns,
                                   struct error *error)
{
    struct epoll_event events[EVENTS_MAX];
    const struct timespec wait = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    enum status status =
        has_changes(&client->config) ? send_out(client, change_conn(client)) : ST_OK;
    if (status != ST_OK)
        return error_set(error, status, "changing: %s", change_conn(client)->failure);
    status = ask_again(client);
    if (status != ST_OK)
        return error_set(error, status, "cannot ask again: %s", status_text(status));
    int n = epoll_pwait2(client->epoll_fd, events, EVENTS_MAX, &wait, NULL);
    for (int i = 0; i < n; i++) {
        struct bench_conn *conn = events[i].data.ptr;
        client->now_ns = bench_now_ns();
        status = bench_conn_read(conn, client->scratch);
        if (status == ST_OK)
            status = send_out(client, conn);
        if (status != ST_OK)
            return error_set(error, status, "a connection was lost: %s", conn->failure);
    }
    return ST_OK;
}

enum status bench_kube_client_stop(struct bench_kube_client *client)
{
    for (uint32_t i = 0; i < client->config.stopped; i++) {
        struct bench_conn *conn = &client->conns[client->config.connections + i];
        if (epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL) < 0)
            return ST_IO;
    }
    return ST_OK;
}

static enum status open_watches(struct bench_kube_client *client, struct bench_conn *conn)
{
    uint32_t index = (uint32_t)(conn - client->conns);
    uint32_t count = is_stopped(client, conn) ? 1 : client->config.streams;
    if (conn == change_conn(client))
        return ST_OK;
    for (uint32_t i = 0; i < count; i++)
        TRY(open_watch(client, conn, index * client->config.streams + i));
    return ST_OK;
}

/* All of them begin at once: a server that is busy with the first would keep the others waiting. */
static enum status ask_all(struct bench_kube_client *client)
{
    for (uint32_t i = 0; i < client->conns_open; i++) {
        TRY(open_watches(client, &client->conns[i]));
        TRY(send_out(client, &client->conns[i]));
    }
    return ST_OK;
}

static enum status open_all(struct bench_kube_client *client, struct error *error)
{
    const struct bench_kube_config *config = &client->config;
    enum status status = ST_OK;
    client->begun_ns = bench_now_ns();
    for (uint32_t i = 0; i < conns_of(config) && status == ST_OK; i++) {
        struct bench_conn *conn = &client->conns[i];
        uint32_t calls = conn == change_conn(client) ? config->pipeline : config->streams;
        TRY(bench_conn_open(conn, &config->target->address, calls, &handler, client, error));
        client->conns_open++;
        status = watch_socket(client, conn, EPOLL_CTL_ADD);
    }
    if (status == ST_OK)
        status = ask_all(client);
    return status == ST_OK
               ? ST_OK
               : error_set(error, status, "cannot begin to watch: %s", status_text(status));
}

enum status bench_kube_client_new(const struct bench_kube_config *config,
                                  struct bench_kube_client **ret_client, struct error *error)
{
    AUTO(bench_kube_client_freep)
    struct bench_kube_client *client = calloc(1, sizeof(*client));
    if (!client)
        return ST_NOMEM;
    client->config = *config;
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->conns = calloc(conns_of(config), sizeof(*client->conns));
    client->watches = calloc((size_t)config->connections * config->streams, sizeof(struct watch));
    client->scratch = malloc(BENCH_CONN_SCRATCH_BYTES);
    if (!client->conns || !client->watches || !client->scratch || client->epoll_fd < 0)
        return error_set(error, ST_NOMEM, "no memory for so many watches");
    enum status status = make_requests(client);
    if (status != ST_OK)
        return error_set(error, status, "cannot build the requests: %s", status_text(status));
    TRY(open_all(client, error));
    *ret_client = TAKE(client);
    return ST_OK;
}

void bench_kube_client_free(struct bench_kube_client *client)
{
    if (!client)
        return;
    for (uint32_t i = 0; i < client->conns_open; i++)
        bench_conn_close(&client->conns[i]);
    size_t watches = (size_t)client->config.connections * client->config.streams;
    for (size_t i = 0; client->watches && i < watches; i++)
        buf_fini(&client->watches[i].line);
    if (client->epoll_fd >= 0)
        close(client->epoll_fd);
    bench_request_fini(&client->watch.request);
    bench_request_fini(&client->watch_all.request);
    bench_request_fini(&client->change.request);
    free(client->conns);
    free(client->watches);
    free(client->scratch);
    free(client);
}

void bench_kube_client_record(struct bench_kube_client *client)
{
    client->record = true;
}

const struct bench_kube_counts *bench_kube_client_counts(const struct bench_kube_client *client)
{
    return &client->counts;
}
