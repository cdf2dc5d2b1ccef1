#include "load/watch_client.h"

#include "load/message.h"
#include "load/reassembly.h"
#include "load/request.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    OUT_ENOUGH = 64 * 1024, /* creates wait while so much is unsent */
};

/* One Watch call. Owned by the client, in the order of its connections. */
struct stream {
    uint32_t id; /* 0: not opened yet */
    uint32_t asked;
    struct bench_reassembly incoming;
};

struct bench_watch_client {
    struct bench_watch_config config;
    struct bench_conn *conns; /* the watching ones, then the putting one */
    uint32_t conns_open;
    struct stream *streams;
    struct bench_request open_stream; /* HEADERS and the first create, for a connection's first */
    struct bench_request open_next;
    struct buf create; /* the message of every create */
    struct buf create_behind;
    size_t create_key_at; /* offset of the digits of a separate key */
    uint64_t create_key;  /* key of the next watcher with an own key */
    struct bench_request put_first, put_next;
    size_t put_key_at[2], put_value_at[2]; /* in put_first, in put_next */
    uint64_t put_key;
    uint64_t random; /* state of the generator of keys */
    int epoll_fd;
    uint8_t *scratch;
    uint64_t now_ns;
    bool record;
    struct bench_watch_counts counts;
};

static struct bench_conn *put_conn(struct bench_watch_client *client)
{
    return &client->conns[client->config.connections];
}

static void on_event(void *argument, struct slice value)
{
    struct bench_watch_client *client = argument;
    uint64_t sent_ns;
    if (!client->record || value.len < sizeof(sent_ns))
        return;
    memcpy(&sent_ns, value.ptr, sizeof(sent_ns));
    if (sent_ns <= client->now_ns)
        bench_histogram_add(&client->counts.event_latency, client->now_ns - sent_ns);
}

static enum status on_message(void *argument, struct slice message)
{
    struct bench_watch_client *client = argument;
    static const struct bench_verdict canceled = {
        .http_status = -1, .grpc_status = -1, .message = "a watch was canceled"};
    struct bench_watch_answer answer;
    TRY(bench_message_watch_answer(message, on_event, client, &answer));
    client->counts.created += answer.created;
    if (client->create_behind.len && answer.watch_id == client->config.watchers) {
        client->counts.behind_events += answer.events;
        client->counts.behind_bytes += message.len;
        return ST_OK;
    }
    client->counts.events += answer.events;
    if (answer.events)
        client->counts.last_event_ns = client->now_ns;
    if (answer.canceled)
        bench_outcome_note(&client->counts.trouble, &canceled);
    return ST_OK;
}

static enum status on_data(struct bench_conn *conn, struct bench_call *call, struct slice bytes)
{
    struct bench_watch_client *client = conn->owner;
    if (conn == put_conn(client))
        return ST_OK;
    struct stream *stream = &client->streams[call->tag];
    return bench_reassembly_take(&stream->incoming, bytes, on_message, client);
}

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    static const struct bench_verdict early = {
        .http_status = -1, .grpc_status = -1, .message = "a watch stream ended"};
    struct bench_watch_client *client = conn->owner;
    if (error || conn != put_conn(client)) {
        bench_outcome_note(&client->counts.trouble, error ? error : &early);
        return;
    }
    client->counts.puts_done++;
    if (client->record)
        bench_histogram_add(&client->counts.put_latency, client->now_ns - call->start_ns);
}

static const struct bench_conn_handler handler = {.on_data = on_data, .on_end = on_end};

static void write_digits(uint8_t *at, uint64_t number)
{
    for (int i = BENCH_KEY_DIGITS - 1; i >= 0; i--, number /= 10)
        at[i] = (uint8_t)('0' + number % 10);
}

/* The create that was appended last gets its own key. */
static void write_own_key(struct bench_watch_client *client, struct buf *out)
{
    uint8_t *create = out->ptr + out->len - client->create.len;
    if (client->config.keys == BENCH_WATCH_OWN_KEYS)
        write_digits(create + client->create_key_at, client->create_key++);
}

static enum status open_stream(struct bench_watch_client *client, struct bench_conn *conn,
                               uint32_t index)
{
    const struct bench_request *request =
        conn->next_stream == 1 ? &client->open_stream : &client->open_next;
    struct bench_call *call = bench_conn_begin(conn, request->body_bytes, client->now_ns);
    uint8_t *at;
    if (!call)
        return ST_AGAIN;
    call->tag = index;
    client->streams[index].id = call->stream;
    client->streams[index].asked = 1;
    TRY(bench_request_append(request, call->stream, &conn->out, &at));
    write_own_key(client, &conn->out);
    return ST_OK;
}

static uint32_t watchers_of(const struct bench_watch_client *client)
{
    return client->config.watchers + (client->create_behind.len ? 1 : 0);
}

/* The one that is behind comes last, so that its id is known. */
static enum status append_create(struct bench_watch_client *client, const struct stream *stream,
                                 struct buf *out)
{
    if (stream->asked == client->config.watchers)
        return bench_request_append_message(stream->id, buf_slice(&client->create_behind), out);
    TRY(bench_request_append_message(stream->id, buf_slice(&client->create), out));
    write_own_key(client, out);
    return ST_OK;
}

/* Asks for the watchers of one stream that were not asked for; ST_AGAIN when windows are full. */
static enum status ask(struct bench_watch_client *client, struct bench_conn *conn, uint32_t index)
{
    struct stream *stream = &client->streams[index];
    if (!stream->id)
        TRY(open_stream(client, conn, index));
    struct bench_call *call = bench_conn_call(conn, stream->id);
    for (; call && stream->asked < watchers_of(client); stream->asked++) {
        size_t bytes =
            BENCH_GRPC_PREFIX_BYTES + size_max(client->create.len, client->create_behind.len);
        if (conn->out.len > OUT_ENOUGH || !bench_conn_take_window(conn, call, bytes))
            return ST_AGAIN;
        TRY(append_create(client, stream, &conn->out));
    }
    return ST_OK;
}

static enum status ask_all(struct bench_watch_client *client, struct bench_conn *conn)
{
    uint32_t first = (uint32_t)(conn - client->conns) * client->config.streams;
    for (uint32_t i = 0; conn != put_conn(client) && i < client->config.streams; i++) {
        if (client->streams[first + i].asked == watchers_of(client))
            continue;
        enum status status = ask(client, conn, first + i);
        if (status == ST_AGAIN)
            break;
        TRY(status);
    }
    return ST_OK;
}

static uint64_t next_put_key(struct bench_watch_client *client)
{
    if (!client->config.random_puts)
        return client->put_key++ % client->config.key_space;
    uint64_t x = client->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    client->random = x;
    return x % client->config.key_space;
}

bool bench_watch_client_put(struct bench_watch_client *client, uint64_t at_ns)
{
    struct bench_conn *conn = put_conn(client);
    bool next = conn->next_stream > 1;
    const struct bench_request *request = next ? &client->put_next : &client->put_first;
    struct bench_call *call = bench_conn_begin(conn, request->body_bytes, at_ns);
    uint8_t *at;
    if (!call || bench_request_append(request, call->stream, &conn->out, &at) != ST_OK)
        return false;
    write_digits(at + client->put_key_at[next], next_put_key(client));
    memcpy(at + client->put_value_at[next], &at_ns, sizeof(at_ns));
    client->counts.puts_sent++;
    return true;
}

static enum status watch_socket(struct bench_watch_client *client, struct bench_conn *conn, int op)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (conn->want_write)
        event.events |= EPOLLOUT;
    return epoll_ctl(client->epoll_fd, op, conn->fd, &event) < 0 ? ST_IO : ST_OK;
}

static enum status send_out(struct bench_watch_client *client, struct bench_conn *conn)
{
    bool wanted = conn->want_write;
    TRY(bench_conn_flush(conn));
    return wanted == conn->want_write ? ST_OK : watch_socket(client, conn, EPOLL_CTL_MOD);
}

static enum status serve(struct bench_watch_client *client, struct bench_conn *conn)
{
    uint64_t before = conn->bytes_in;
    client->now_ns = bench_now_ns();
    TRY(bench_conn_read(conn, client->scratch));
    client->counts.bytes_in += conn->bytes_in - before;
    TRY(ask_all(client, conn));
    return send_out(client, conn);
}

enum status bench_watch_client_turn(struct bench_watch_client *client, uint64_t wait_ns,
                                    struct error *error)
{
    struct epoll_event events[EVENTS_MAX];
    const struct timespec wait = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    enum status status = send_out(client, put_conn(client));
    if (status != ST_OK)
        return error_set(error, status, "putting: %s", put_conn(client)->failure);
    int n = epoll_pwait2(client->epoll_fd, events, EVENTS_MAX, &wait, NULL);
    for (int i = 0; i < n; i++) {
        struct bench_conn *conn = events[i].data.ptr;
        status = serve(client, conn);
        if (status != ST_OK)
            return error_set(error, status, "a connection was lost: %s", conn->failure);
    }
    return ST_OK;
}

static enum status make_create(struct bench_watch_client *client)
{
    const struct bench_watch_config *config = &client->config;
    struct slice prefix = slice_from_text(config->prefix);
    AUTO(buf_fini) struct buf end = {0};
    AUTO(buf_fini) struct buf key = {0};
    if (config->keys == BENCH_WATCH_PREFIX) {
        TRY(bench_message_prefix_end(prefix, &end));
        return bench_message_watch(&client->create, prefix, buf_slice(&end),
                                   config->start_revision);
    }
    TRY(buf_append_format(&key, "%s%0*d", config->prefix, BENCH_KEY_DIGITS, 0));
    /* Behind the tags and lengths of the create request and its key, of one byte each. */
    client->create_key_at = 4 + prefix.len;
    return bench_message_watch(&client->create, buf_slice(&key), SLICE_EMPTY,
                               config->start_revision);
}

static enum status make_create_behind(struct bench_watch_client *client)
{
    const struct bench_watch_config *config = &client->config;
    struct slice prefix = slice_from_text(config->behind);
    AUTO(buf_fini) struct buf end = {0};
    if (!prefix.len)
        return ST_OK;
    TRY(bench_message_prefix_end(prefix, &end));
    return bench_message_watch(&client->create_behind, prefix, buf_slice(&end),
                               config->behind_start);
}

static enum status make_watch_requests(struct bench_watch_client *client)
{
    const struct bench_watch_config *config = &client->config;
    AUTO(buf_fini) struct buf first = {0};
    AUTO(buf_fini) struct buf next = {0};
    TRY(make_create(client));
    TRY(make_create_behind(client));
    TRY(bench_headers_append_first(&first, "/etcdserverpb.Watch/Watch", config->target->authority,
                                   config->target->token));
    TRY(bench_headers_append_next(&next, config->target->token));
    struct slice message = buf_slice(&client->create);
    TRY(bench_request_init(&client->open_stream, buf_slice(&first), message, false));
    return bench_request_init(&client->open_next, buf_slice(&next), message, false);
}

static enum status make_put_requests(struct bench_watch_client *client)
{
    const struct bench_watch_config *config = &client->config;
    AUTO(buf_fini) struct buf first = {0};
    AUTO(buf_fini) struct buf next = {0};
    AUTO(buf_fini) struct buf key = {0};
    AUTO(buf_fini) struct buf value = {0};
    AUTO(buf_fini) struct buf message = {0};
    TRY(buf_append_format(&key, "%s%0*d", config->prefix, BENCH_KEY_DIGITS, 0));
    TRY(buf_reserve(&value, config->value_bytes));
    memset(value.ptr, 'v', config->value_bytes);
    value.len = config->value_bytes;
    TRY(bench_message_put(&message, buf_slice(&key), buf_slice(&value)));
    TRY(bench_headers_append_first(&first, "/etcdserverpb.KV/Put", config->target->authority,
                                   config->target->token));
    TRY(bench_headers_append_next(&next, config->target->token));
    TRY(bench_request_init(&client->put_first, buf_slice(&first), buf_slice(&message), true));
    TRY(bench_request_init(&client->put_next, buf_slice(&next), buf_slice(&message), true));
    const struct bench_request *both[] = {&client->put_first, &client->put_next};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        client->put_key_at[i] = bench_request_place(both[i], 2 + strlen(config->prefix));
        client->put_value_at[i] = bench_request_place(both[i], message.len - value.len);
    }
    return ST_OK;
}

static enum status open_all(struct bench_watch_client *client, struct error *error)
{
    const struct bench_watch_config *config = &client->config;
    for (uint32_t i = 0; i <= config->connections; i++) {
        struct bench_conn *conn = &client->conns[i];
        uint32_t calls = i == config->connections ? config->pipeline : config->streams;
        TRY(bench_conn_open(conn, &config->target->address, calls, &handler, client, error));
        client->conns_open++;
    }
    for (uint32_t i = 0; i <= config->connections; i++) {
        struct bench_conn *conn = &client->conns[i];
        enum status status = watch_socket(client, conn, EPOLL_CTL_ADD);
        if (status == ST_OK)
            status = ask_all(client, conn);
        if (status == ST_OK)
            status = send_out(client, conn);
        if (status != ST_OK)
            return error_set(error, status, "cannot begin to watch: %s", status_text(status));
    }
    return ST_OK;
}

enum status bench_watch_client_new(const struct bench_watch_config *config,
                                   struct bench_watch_client **ret_client, struct error *error)
{
    assert(config->value_bytes >= sizeof(uint64_t));
    AUTO(bench_watch_client_freep)
    struct bench_watch_client *client = calloc(1, sizeof(*client));
    if (!client)
        return ST_NOMEM;
    client->config = *config;
    client->random = 88172645463325252u;
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->conns = calloc(config->connections + 1, sizeof(*client->conns));
    client->streams =
        calloc((size_t)config->connections * config->streams, sizeof(*client->streams));
    client->scratch = malloc(BENCH_CONN_SCRATCH_BYTES);
    if (!client->conns || !client->streams || !client->scratch || client->epoll_fd < 0)
        return error_set(error, ST_NOMEM, "no memory for so many streams");
    enum status status = make_watch_requests(client);
    if (status == ST_OK)
        status = make_put_requests(client);
    if (status != ST_OK)
        return error_set(error, status, "cannot build the requests: %s", status_text(status));
    TRY(open_all(client, error));
    *ret_client = TAKE(client);
    return ST_OK;
}

void bench_watch_client_free(struct bench_watch_client *client)
{
    if (!client)
        return;
    for (uint32_t i = 0; i < client->conns_open; i++)
        bench_conn_close(&client->conns[i]);
    size_t streams = (size_t)client->config.connections * client->config.streams;
    for (size_t i = 0; client->streams && i < streams; i++)
        bench_reassembly_fini(&client->streams[i].incoming);
    if (client->epoll_fd >= 0)
        close(client->epoll_fd);
    bench_request_fini(&client->open_stream);
    bench_request_fini(&client->open_next);
    bench_request_fini(&client->put_first);
    bench_request_fini(&client->put_next);
    buf_fini(&client->create);
    buf_fini(&client->create_behind);
    free(client->conns);
    free(client->streams);
    free(client->scratch);
    free(client);
}

void bench_watch_client_record(struct bench_watch_client *client, bool record)
{
    client->record = record;
}

const struct bench_watch_counts *bench_watch_client_counts(const struct bench_watch_client *client)
{
    return &client->counts;
}
