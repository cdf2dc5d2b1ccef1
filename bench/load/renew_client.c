#include "load/renew_client.h"

#include "load/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, PATH_BYTES = 200, MICRO_DIGITS = 6 };

#define NS_PER_S UINT64_C(1000000000)
/* In a Lease that a kubelet has written: "2026-11-19T20:00:00.123456Z". */
#define RENEW_TIME "\"renewTime\":\""
#define MICRO_AT (sizeof(RENEW_TIME) - 1 + sizeof("2026-11-19T20:00:00.") - 1)

/* reading ──► renewing ──► stopping */
enum phase { READING, RENEWING, STOPPING };

struct node {
    struct buf answer; /* to the request in flight, or the last one */
    struct buf body;   /* what the next renewal sends */
    size_t micro_at;   /* where the digits of the time are in body */
    uint64_t due_ns;   /* when the request in flight was due */
    bool in_flight;
};

/* A request whose path and type are those of one node. */
struct link {
    struct bench_conn conn; /* first */
    struct buf *blocks;     /* owned: header block of each node's renewal */
    struct node *nodes;     /* owned */
};

struct bench_renew_client {
    struct bench_renew_config config;
    struct link *links;
    uint32_t links_open;
    enum phase phase;
    uint64_t in_flight;
    uint64_t next_due_ns; /* with a rate */
    uint64_t next;        /* the node whose turn it is */
    uint64_t number;      /* renewals begun: makes each differ from the one before */
    int epoll_fd;
    uint8_t *scratch;
    uint64_t now_ns;
    bool record;
    struct bench_renew_counts counts;
};

static void note(struct bench_renew_client *client, const char *text)
{
    struct bench_verdict verdict = {.http_status = -1, .grpc_status = -1};
    snprintf(verdict.message, sizeof(verdict.message), "%s", text);
    bench_outcome_note(&client->counts.trouble, &verdict);
}

/* -- What comes -- */

static enum status on_data(struct bench_conn *conn, struct bench_call *call, struct slice bytes)
{
    struct link *link = CONTAINER_OF(conn, struct link, conn);
    return buf_append(&link->nodes[call->tag].answer, bytes);
}

/* The Lease as it was answered, with place for another time. */
static enum status take_lease(struct bench_renew_client *client, struct node *node)
{
    struct buf before = node->body;
    const uint8_t *at =
        memmem(node->answer.ptr, node->answer.len, RENEW_TIME, sizeof(RENEW_TIME) - 1);
    if (!at || (size_t)(node->answer.ptr + node->answer.len - at) < MICRO_AT + MICRO_DIGITS + 2) {
        note(client, "a Lease has no renewTime");
        return ST_OK;
    }
    node->micro_at = (size_t)(at - node->answer.ptr) + MICRO_AT;
    node->body = node->answer;
    node->answer = before;
    return ST_OK;
}

static void on_end(struct bench_conn *conn, struct bench_call *call,
                   const struct bench_verdict *error)
{
    struct link *link = CONTAINER_OF(conn, struct link, conn);
    struct bench_renew_client *client = conn->owner;
    struct node *node = &link->nodes[call->tag];
    node->in_flight = false;
    client->in_flight--;
    if (error) {
        bench_outcome_note(&client->counts.trouble, error);
        return;
    }
    if (!client->config.pods && take_lease(client, node) != ST_OK)
        note(client, "no memory");
    if (client->phase == READING) {
        client->counts.read++;
        return;
    }
    client->counts.renewed++;
    if (client->record)
        bench_histogram_add(&client->counts.latency, client->now_ns - node->due_ns);
}

static const struct bench_conn_handler handler = {
    .plain = true, .on_data = on_data, .on_end = on_end};

/* -- Requests -- */

static enum status append_request(struct bench_conn *conn, uint32_t stream, struct slice block,
                                  struct slice body)
{
    unsigned end = body.len ? 0 : BENCH_FRAME_END_STREAM;
    TRY(bench_frame_append(&conn->out, BENCH_FRAME_HEADERS, BENCH_FRAME_END_HEADERS | end, stream,
                           block));
    return body.len ? bench_frame_append(&conn->out, BENCH_FRAME_DATA, BENCH_FRAME_END_STREAM,
                                         stream, body)
                    : ST_OK;
}

/* ST_AGAIN: the server takes no more now. */
static enum status begin(struct bench_renew_client *client, struct link *link, uint32_t index,
                         struct slice block, struct slice body, uint64_t due_ns)
{
    struct node *node = &link->nodes[index];
    struct bench_call *call = bench_conn_begin(&link->conn, body.len, client->now_ns);
    if (!call)
        return ST_AGAIN;
    call->tag = index;
    buf_reset(&node->answer, SIZE_MAX);
    node->due_ns = due_ns;
    node->in_flight = true;
    client->in_flight++;
    return append_request(&link->conn, call->stream, block, body);
}

static enum status renew(struct bench_renew_client *client, struct link *link, uint32_t index,
                         uint64_t due_ns)
{
    struct node *node = &link->nodes[index];
    bench_digits_write(node->body.ptr + node->micro_at, MICRO_DIGITS, ++client->number % 1000000);
    return begin(client, link, index, buf_slice(&link->blocks[index]), buf_slice(&node->body),
                 due_ns);
}

/* Without a rate: the nodes whose last request was answered. */
static enum status renew_answered(struct bench_renew_client *client, struct link *link)
{
    if (client->config.rate || client->phase != RENEWING)
        return ST_OK;
    for (uint32_t i = 0; i < client->config.nodes; i++) {
        enum status status =
            link->nodes[i].in_flight ? ST_OK : renew(client, link, i, client->now_ns);
        if (status != ST_OK)
            return status == ST_AGAIN ? ST_OK : status;
    }
    return ST_OK;
}

static enum status watch_socket(struct bench_renew_client *client, struct link *link, int op)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    if (link->conn.want_write)
        event.events |= EPOLLOUT;
    return epoll_ctl(client->epoll_fd, op, link->conn.fd, &event) < 0 ? ST_IO : ST_OK;
}

static enum status send_out(struct bench_renew_client *client, struct link *link)
{
    bool wanted = link->conn.want_write;
    TRY(bench_conn_flush(&link->conn));
    return wanted == link->conn.want_write ? ST_OK : watch_socket(client, link, EPOLL_CTL_MOD);
}

/* With a rate: those whose time has come, one node after the other. */
static enum status renew_due(struct bench_renew_client *client)
{
    const struct bench_renew_config *config = &client->config;
    uint64_t all = (uint64_t)config->connections * config->nodes;
    if (!config->rate || client->phase != RENEWING)
        return ST_OK;
    for (; client->next_due_ns <= client->now_ns; client->next_due_ns += NS_PER_S / config->rate) {
        uint64_t number = client->next++ % all;
        struct link *link = &client->links[number % config->connections];
        uint32_t index = (uint32_t)(number / config->connections);
        enum status status = link->nodes[index].in_flight
                                 ? ST_AGAIN
                                 : renew(client, link, index, client->next_due_ns);
        if (status == ST_AGAIN)
            client->counts.missed++;
        else if (status != ST_OK)
            return status;
        TRY(send_out(client, link));
    }
    return ST_OK;
}

static uint64_t wait_of(const struct bench_renew_client *client, uint64_t wait_ns)
{
    if (!client->config.rate || client->phase != RENEWING)
        return wait_ns;
    uint64_t now = bench_now_ns();
    uint64_t until = client->next_due_ns > now ? client->next_due_ns - now : 0;
    return until < wait_ns ? until : wait_ns;
}

enum status bench_renew_client_turn(struct bench_renew_client *client, uint64_t wait_ns,
                                    struct error *error)
{
    struct epoll_event events[EVENTS_MAX];
    client->now_ns = bench_now_ns();
    enum status status = renew_due(client);
    if (status != ST_OK)
        return error_set(error, status, "cannot renew: %s", status_text(status));
    wait_ns = wait_of(client, wait_ns);
    const struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    int n = epoll_pwait2(client->epoll_fd, events, EVENTS_MAX, &wait, NULL);
    for (int i = 0; i < n; i++) {
        struct link *link = events[i].data.ptr;
        client->now_ns = bench_now_ns();
        status = bench_conn_read(&link->conn, client->scratch);
        if (status == ST_OK)
            status = renew_answered(client, link);
        if (status == ST_OK)
            status = send_out(client, link);
        if (status != ST_OK)
            return error_set(error, status, "a connection was lost: %s", link->conn.failure);
    }
    return ST_OK;
}

/* -- Life -- */

static uint64_t number_of(const struct bench_renew_client *client, const struct link *link,
                          uint32_t index)
{
    return (uint64_t)index * client->config.connections + (uint64_t)(link - client->links);
}

static void write_path(const struct bench_renew_client *client, const struct link *link,
                       uint32_t index, bool renews, char *path)
{
    unsigned long long number = number_of(client, link, index);
    if (client->config.pods)
        snprintf(path, PATH_BYTES, BENCH_PODS_PATH "/" BENCH_POD_NAME "%0*llu%s", BENCH_POD_DIGITS,
                 number, renews ? "/status" : "");
    else
        snprintf(path, PATH_BYTES, BENCH_LEASES_PATH "/" BENCH_NODE_NAME "%0*llu", BENCH_POD_DIGITS,
                 number);
}

/* The patch that a kubelet sends when a container has become ready. */
static enum status make_patch(struct node *node)
{
    static const char before[] =
        "{\"status\":{\"$setElementOrder/conditions\":[{\"type\":\"Initialized\"},{\"type\":"
        "\"Ready\"},{\"type\":\"ContainersReady\"},{\"type\":\"PodScheduled\"}],\"conditions\":["
        "{\"lastTransitionTime\":\"2026-11-19T20:00:00Z\",\"status\":\"True\",\"type\":\"Ready\"},"
        "{\"lastTransitionTime\":\"2026-11-19T20:00:00Z\",\"status\":\"True\",\"type\":"
        "\"ContainersReady\"}],\"containerStatuses\":[{\"containerID\":\"containerd://";
    static const char after[] =
        "\",\"image\":\"bench:1\",\"imageID\":\"bench@sha256:1\",\"lastState\":{},\"name\":"
        "\"bench\",\"ready\":true,\"restartCount\":0,\"started\":true,\"state\":{\"running\":{"
        "\"startedAt\":\"2026-11-19T20:00:00Z\"}}}],\"phase\":\"Running\",\"podIP\":\"10.1.2.3\","
        "\"podIPs\":[{\"ip\":\"10.1.2.3\"}]}}";
    TRY(buf_append_text(&node->body, before));
    node->micro_at = node->body.len;
    TRY(buf_append_format(&node->body, "%0*d", MICRO_DIGITS, 0));
    return buf_append_text(&node->body, after);
}

static enum status read_all(struct bench_renew_client *client, struct link *link)
{
    const struct bench_renew_config *config = &client->config;
    const char *method = config->pods ? "PATCH" : "PUT";
    const char *type = config->pods ? "application/strategic-merge-patch+json" : "application/json";
    for (uint32_t i = 0; i < config->nodes; i++) {
        AUTO(buf_fini) struct buf block = {0};
        char path[PATH_BYTES];
        write_path(client, link, i, true, path);
        TRY(bench_headers_append_plain(&link->blocks[i], method, path, config->target->authority,
                                       type, config->target->token));
        if (config->pods)
            TRY(make_patch(&link->nodes[i]));
        write_path(client, link, i, false, path);
        TRY(bench_headers_append_plain(&block, "GET", path, config->target->authority, NULL,
                                       config->target->token));
        TRY(begin(client, link, i, buf_slice(&block), SLICE_EMPTY, client->now_ns));
    }
    return send_out(client, link);
}

static enum status open_all(struct bench_renew_client *client, struct error *error)
{
    const struct bench_renew_config *config = &client->config;
    for (; client->links_open < config->connections; client->links_open++) {
        struct link *link = &client->links[client->links_open];
        link->nodes = calloc(config->nodes, sizeof(*link->nodes));
        link->blocks = calloc(config->nodes, sizeof(*link->blocks));
        if (!link->nodes || !link->blocks)
            return error_set(error, ST_NOMEM, "no memory for so many nodes");
        TRY(bench_conn_open(&link->conn, &config->target->address, config->nodes, &handler, client,
                            error));
        enum status status = watch_socket(client, link, EPOLL_CTL_ADD);
        if (status == ST_OK)
            status = read_all(client, link);
        if (status != ST_OK)
            return error_set(error, status, "cannot read the objects: %s", status_text(status));
    }
    return ST_OK;
}

enum status bench_renew_client_new(const struct bench_renew_config *config,
                                   struct bench_renew_client **ret_client, struct error *error)
{
    AUTO(bench_renew_client_freep)
    struct bench_renew_client *client = calloc(1, sizeof(*client));
    if (!client)
        return ST_NOMEM;
    client->config = *config;
    client->now_ns = bench_now_ns();
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->links = calloc(config->connections, sizeof(*client->links));
    client->scratch = malloc(BENCH_CONN_SCRATCH_BYTES);
    if (!client->links || !client->scratch || client->epoll_fd < 0)
        return error_set(error, ST_NOMEM, "no memory for so many connections");
    TRY(open_all(client, error));
    *ret_client = TAKE(client);
    return ST_OK;
}

static void free_link(struct bench_renew_client *client, struct link *link)
{
    for (uint32_t i = 0; i < client->config.nodes; i++) {
        buf_fini(&link->nodes[i].answer);
        buf_fini(&link->nodes[i].body);
        buf_fini(&link->blocks[i]);
    }
    bench_conn_close(&link->conn);
    free(link->nodes);
    free(link->blocks);
}

void bench_renew_client_free(struct bench_renew_client *client)
{
    if (!client)
        return;
    for (uint32_t i = 0; i < client->links_open; i++)
        free_link(client, &client->links[i]);
    if (client->epoll_fd >= 0)
        close(client->epoll_fd);
    free(client->links);
    free(client->scratch);
    free(client);
}

enum status bench_renew_client_renew(struct bench_renew_client *client, struct error *error)
{
    client->phase = RENEWING;
    client->now_ns = client->next_due_ns = bench_now_ns();
    for (uint32_t i = 0; i < client->links_open; i++) {
        enum status status = renew_answered(client, &client->links[i]);
        if (status == ST_OK)
            status = send_out(client, &client->links[i]);
        if (status != ST_OK)
            return error_set(error, status, "cannot renew: %s", status_text(status));
    }
    return ST_OK;
}

void bench_renew_client_record(struct bench_renew_client *client)
{
    client->record = true;
}

void bench_renew_client_stop(struct bench_renew_client *client)
{
    client->phase = STOPPING;
}

bool bench_renew_client_idle(const struct bench_renew_client *client)
{
    return client->in_flight == 0;
}

const struct bench_renew_counts *bench_renew_client_counts(const struct bench_renew_client *client)
{
    return &client->counts;
}
