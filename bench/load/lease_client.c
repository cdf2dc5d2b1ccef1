#include "load/lease_client.h"

#include "load/message.h"
#include "load/reassembly.h"
#include "load/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    ID_BYTES = 5,
    TTL_S = 3600,
    OUT_ENOUGH = 64 * 1024, /* nothing is begun while so much is unsent */
};

/* granting ──► renewing ──► stopping */
enum phase { GRANTING, RENEWING, STOPPING };

/* One connection, and the stream that renews on it. */
struct link {
    struct bench_conn conn; /* first */
    uint32_t stream;        /* 0: not opened */
    uint64_t *sent_ns;      /* owned ring: when each unanswered renewal was sent */
    uint64_t sent, answered;
    struct bench_reassembly incoming;
};

struct bench_lease_client {
    struct bench_lease_config config;
    struct link *links;
    uint32_t links_open;
    enum phase phase;
    uint64_t next; /* the lease to be granted, or renewed, next */
    struct bench_request grant_first, grant_next, open_first, open_next;
    uint8_t renewal[1 + ID_BYTES];
    int epoll_fd;
    uint8_t *scratch;
    uint64_t now_ns;
    struct bench_lease_counts counts;
};

static void note(struct bench_lease_client *client, const char *text)
{
    struct bench_verdict verdict = {.http_status = -1, .grpc_status = -1};
    snprintf(verdict.message, sizeof(verdict.message), "%s", text);
    bench_outcome_note(&client->counts.trouble, &verdict);
}

/* -- What comes -- */

static enum status on_renewed(void *argument, struct slice message)
{
    struct link *link = argument;
    struct bench_lease_client *client = link->conn.owner;
    struct bench_field field;
    uint64_t ttl = 0;
    enum status status;
    while ((status = bench_message_next(&message, &field)) == ST_OK) {
        if (field.number == 3)
            ttl = field.value;
    }
    if (status != ST_END || link->answered == link->sent)
        return ST_MALFORMED;
    if (ttl != TTL_S)
        note(client, "a lease is gone");
    uint64_t sent_ns = link->sent_ns[link->answered++ % client->config.pipeline];
    bench_histogram_add(&client->counts.renew_latency, client->now_ns - sent_ns);
    client->counts.renewed++;
    return ST_OK;
}

static enum status on_data(struct bench_conn *conn, struct bench_call *call, struct slice bytes)
{
    struct link *link = CONTAINER_OF(conn, struct link, conn);
    if (call->stream != link->stream)
        return ST_OK; /* a grant: its status says enough */
    return bench_reassembly_take(&link->incoming, bytes, on_renewed, link);
}

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    struct bench_lease_client *client = conn->owner;
    if (error) {
        bench_outcome_note(&client->counts.trouble, error);
    } else if (call->stream == CONTAINER_OF(conn, struct link, conn)->stream) {
        note(client, "a stream ended");
    } else {
        client->counts.granted++;
        bench_histogram_add(&client->counts.grant_latency, client->now_ns - call->start_ns);
    }
}

static const struct bench_conn_handler handler = {.on_data = on_data, .on_end = on_end};

/* -- Requests -- */

static void write_id(uint8_t *at, uint64_t lease)
{
    uint64_t id = BENCH_LEASE_FIRST_ID + lease;
    for (int i = 0; i < ID_BYTES - 1; i++, id >>= 7)
        at[i] = (uint8_t)(id | 0x80);
    at[ID_BYTES - 1] = (uint8_t)id;
}

/* The ids end the messages, and the messages end what was appended. */
static void write_last_id(struct buf *out, uint64_t lease)
{
    write_id(out->ptr + out->len - ID_BYTES, lease);
}

static enum status begin_grants(struct bench_lease_client *client, struct link *link)
{
    struct bench_conn *conn = &link->conn;
    while (client->next < client->config.leases && conn->in_flight < client->config.pipeline &&
           conn->out.len < OUT_ENOUGH) {
        bool first = conn->next_stream == 1;
        const struct bench_request *request = first ? &client->grant_first : &client->grant_next;
        struct bench_call *call = bench_conn_begin(conn, request->body_bytes, client->now_ns);
        uint8_t *at;
        if (!call)
            break;
        TRY(bench_request_append(request, call->stream, &conn->out, &at));
        write_last_id(&conn->out, client->next++);
    }
    return ST_OK;
}

static void note_sent(struct bench_lease_client *client, struct link *link)
{
    write_last_id(&link->conn.out, client->next++ % client->config.leases);
    link->sent_ns[link->sent++ % client->config.pipeline] = client->now_ns;
}

static enum status open_stream(struct bench_lease_client *client, struct link *link)
{
    struct bench_conn *conn = &link->conn;
    const struct bench_request *request =
        conn->next_stream == 1 ? &client->open_first : &client->open_next;
    struct bench_call *call = bench_conn_begin(conn, request->body_bytes, client->now_ns);
    uint8_t *at;
    if (!call)
        return ST_AGAIN;
    link->stream = call->stream;
    TRY(bench_request_append(request, call->stream, &conn->out, &at));
    note_sent(client, link);
    return ST_OK;
}

static enum status begin_renewals(struct bench_lease_client *client, struct link *link)
{
    struct bench_conn *conn = &link->conn;
    if (!link->stream) {
        enum status status = open_stream(client, link);
        return status == ST_AGAIN ? ST_OK : status;
    }
    struct bench_call *call = bench_conn_call(conn, link->stream);
    size_t bytes = BENCH_GRPC_PREFIX_BYTES + sizeof(client->renewal);
    while (call && link->sent - link->answered < client->config.pipeline &&
           conn->out.len < OUT_ENOUGH && bench_conn_take_window(conn, call, bytes)) {
        TRY(bench_request_append_message(
            link->stream, slice_of(client->renewal, sizeof(client->renewal)), &conn->out));
        note_sent(client, link);
    }
    return ST_OK;
}

static enum status watch_socket(struct bench_lease_client *client, struct link *link, int op)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    if (link->conn.want_write)
        event.events |= EPOLLOUT;
    return epoll_ctl(client->epoll_fd, op, link->conn.fd, &event) < 0 ? ST_IO : ST_OK;
}

static enum status go_on(struct bench_lease_client *client, struct link *link)
{
    if (client->phase == GRANTING)
        TRY(begin_grants(client, link));
    else if (client->phase == RENEWING)
        TRY(begin_renewals(client, link));
    bool wanted = link->conn.want_write;
    TRY(bench_conn_flush(&link->conn));
    return wanted == link->conn.want_write ? ST_OK : watch_socket(client, link, EPOLL_CTL_MOD);
}

enum status bench_lease_client_turn(struct bench_lease_client *client, uint64_t wait_ns,
                                    struct error *error)
{
    struct epoll_event events[EVENTS_MAX];
    const struct timespec wait = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    int n = epoll_pwait2(client->epoll_fd, events, EVENTS_MAX, &wait, NULL);
    client->now_ns = bench_now_ns();
    for (int i = 0; i < n; i++) {
        struct link *link = events[i].data.ptr;
        enum status status = bench_conn_read(&link->conn, client->scratch);
        if (status == ST_OK)
            status = go_on(client, link);
        if (status != ST_OK)
            return error_set(error, status, "a connection was lost: %s", link->conn.failure);
    }
    return ST_OK;
}

/* -- Life -- */

static enum status make_requests(struct bench_lease_client *client)
{
    static const uint8_t grant[] = {0x08, 0x90, 0x1c, 0x10, 0, 0, 0, 0, 0}; /* 3600 s */
    const char *authority = client->config.target->authority;
    const char *token = client->config.target->token;
    struct slice renewal = slice_of(client->renewal, sizeof(client->renewal));
    AUTO(buf_fini) struct buf first = {0};
    AUTO(buf_fini) struct buf next = {0};
    AUTO(buf_fini) struct buf open = {0};
    client->renewal[0] = 0x08;
    TRY(bench_headers_append_first(&first, "/etcdserverpb.Lease/LeaseGrant", authority, token));
    TRY(bench_headers_append_next(&next, token));
    TRY(bench_request_init(&client->grant_first, buf_slice(&first), slice_of(grant, sizeof(grant)),
                           true));
    TRY(bench_request_init(&client->grant_next, buf_slice(&next), slice_of(grant, sizeof(grant)),
                           true));
    TRY(bench_headers_append_first(&open, "/etcdserverpb.Lease/LeaseKeepAlive", authority, token));
    TRY(bench_request_init(&client->open_first, buf_slice(&open), renewal, false));
    return bench_request_init(&client->open_next, buf_slice(&open), renewal, false);
}

static enum status open_all(struct bench_lease_client *client, struct error *error)
{
    for (; client->links_open < client->config.connections; client->links_open++) {
        struct link *link = &client->links[client->links_open];
        link->sent_ns = calloc(client->config.pipeline, sizeof(*link->sent_ns));
        if (!link->sent_ns)
            return error_set(error, ST_NOMEM, "no memory for so many connections");
        TRY(bench_conn_open(&link->conn, &client->config.target->address,
                            client->config.pipeline + 1, &handler, client, error));
        enum status status = watch_socket(client, link, EPOLL_CTL_ADD);
        if (status != ST_OK)
            return error_set(error, status, "cannot wait for a connection");
    }
    return ST_OK;
}

/* Sends the first requests; later ones follow the answers. */
static enum status go_on_all(struct bench_lease_client *client)
{
    client->now_ns = bench_now_ns();
    for (uint32_t i = 0; i < client->links_open; i++)
        TRY(go_on(client, &client->links[i]));
    return ST_OK;
}

enum status bench_lease_client_new(const struct bench_lease_config *config,
                                   struct bench_lease_client **ret_client, struct error *error)
{
    AUTO(bench_lease_client_freep)
    struct bench_lease_client *client = calloc(1, sizeof(*client));
    if (!client)
        return ST_NOMEM;
    client->config = *config;
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->links = calloc(config->connections, sizeof(*client->links));
    client->scratch = malloc(BENCH_CONN_SCRATCH_BYTES);
    if (!client->links || !client->scratch || client->epoll_fd < 0)
        return error_set(error, ST_NOMEM, "no memory for so many connections");
    TRY(make_requests(client));
    TRY(open_all(client, error));
    enum status status = go_on_all(client);
    if (status != ST_OK)
        return error_set(error, status, "cannot begin to grant: %s", status_text(status));
    *ret_client = TAKE(client);
    return ST_OK;
}

void bench_lease_client_free(struct bench_lease_client *client)
{
    if (!client)
        return;
    for (uint32_t i = 0; client->links && i < client->config.connections; i++) {
        if (i < client->links_open)
            bench_conn_close(&client->links[i].conn);
        bench_reassembly_fini(&client->links[i].incoming);
        free(client->links[i].sent_ns);
    }
    if (client->epoll_fd >= 0)
        close(client->epoll_fd);
    bench_request_fini(&client->grant_first);
    bench_request_fini(&client->grant_next);
    bench_request_fini(&client->open_first);
    bench_request_fini(&client->open_next);
    free(client->links);
    free(client->scratch);
    free(client);
}

static void phase_move(struct bench_lease_client *client, enum phase next)
{
    assert(next > client->phase);
    client->phase = next;
}

void bench_lease_client_renew(struct bench_lease_client *client)
{
    phase_move(client, RENEWING);
    client->next = 0;
    enum status status = go_on_all(client);
    if (status != ST_OK)
        note(client, "the streams could not be opened");
}

void bench_lease_client_stop(struct bench_lease_client *client)
{
    phase_move(client, STOPPING);
}

bool bench_lease_client_idle(const struct bench_lease_client *client)
{
    for (uint32_t i = 0; i < client->links_open; i++) {
        const struct link *link = &client->links[i];
        if (link->sent != link->answered || link->conn.in_flight > (link->stream != 0))
            return false;
    }
    return true;
}

const struct bench_lease_counts *bench_lease_client_counts(const struct bench_lease_client *client)
{
    return &client->counts;
}
