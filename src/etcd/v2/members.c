/* Members and statistics of the v2 API. Only one member, this server, is ever running. */
#include "base/clock.h"
#include "base/xalloc.h"
#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "etcd/service/member_change.h"
#include "etcd/shared/member_id.h"
#include "etcd/v2/call.h"
#include "etcd/v2/guard.h"
#include "etcd/v2/handlers.h"
#include "net/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void write_id(struct json_writer *w, const char *name, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIx64, id);
    json_member_text(w, name, text);
}

/* Members that have never started have no name and no client URLs. */
static void write_member(struct json_writer *w, const struct etcd_api *api,
                         const struct engine_member *member)
{
    const struct etcd_config *config = api->config;
    bool self = member->id == api->identity.member_id;
    json_begin_object(w);
    write_id(w, "id", member->id);
    json_member_text(w, "name", self ? config->member_name : "");
    json_key(w, "peerURLs");
    json_strings(w, member->peer_urls, member->peer_url_count);
    json_key(w, "clientURLs");
    json_strings(w, config->client_urls, self ? config->client_url_count : 0);
    json_end_object(w);
}

/* Ends the JSON text and answers with it. */
static void reply(struct http_exchange *x, const struct etcd_api *api, struct json_writer *w,
                  unsigned status, const char *ending)
{
    if (json_writer_finish(w) == ST_OK && buf_append_text(w->out, ending) == ST_OK)
        v2_reply_json(x, api, status, buf_slice(w->out));
    else
        http_abort(x);
}

/* -- Members -- */

struct v2_members {
    struct v2_call call; /* first */
    struct engine_members members;
    bool leader; /* the request is for the leader only */
};

static void members_fini(struct v2_call *call)
{
    (void)call;
}

static void reply_list(struct v2_members *m)
{
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    const struct etcd_api *api = m->call.api;
    json_writer_init(&w, &body);
    if (!m->leader) {
        json_begin_object(&w);
        json_member_array(&w, "members");
    }
    for (size_t i = 0; i < m->members.count; i++) {
        if (!m->leader || m->members.list[i].id == api->identity.member_id)
            write_member(&w, api, &m->members.list[i]);
    }
    if (!m->leader) {
        json_end_array(&w);
        json_end_object(&w);
    }
    reply(m->call.exchange, api, &w, 200, "\n");
}

static void reply_added(struct v2_members *m)
{
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    write_member(&w, m->call.api, &m->members.member);
    reply(m->call.exchange, m->call.api, &w, 201, "\n");
}

static void reply_no_such(struct http_exchange *x, const struct etcd_api *api, struct slice id)
{
    char text[128];
    snprintf(text, sizeof(text), "No such member: %.*s", (int)size_min(id.len, 64), id.ptr);
    v2_reply_message(x, api, 404, text);
}

/* Like etcd 3.4, which distinguishes the errors that a client can correct. */
static void reply_failed(struct v2_members *m, enum status status)
{
    struct http_exchange *x = m->call.exchange;
    const struct etcd_api *api = m->call.api;
    char id[24];
    snprintf(id, sizeof(id), "%" PRIx64, m->members.member.id);
    if (status == ST_PEER_URL_EXIST)
        v2_reply_message(x, api, 409, "membership: peerURL exists");
    else if (status == ST_MEMBER_EXIST)
        v2_reply_message(x, api, 409, "membership: ID exists");
    else if (status == ST_MEMBER_NOT_FOUND)
        reply_no_such(x, api, slice_from_text(id));
    else
        v2_reply_message(x, api, 500, "Internal Server Error");
}

static void members_done(struct engine_op *op)
{
    struct v2_members *m = CONTAINER_OF(op, struct v2_members, members.op);
    enum status status = op->status;
    member_change_log(m->call.api, &m->members);
    if (!v2_call_done(&m->call))
        return;
    if (status != ST_OK)
        reply_failed(m, status);
    else if (m->members.call == ENGINE_MEMBER_LIST)
        reply_list(m);
    else if (m->members.call == ENGINE_MEMBER_ADD)
        reply_added(m);
    else
        v2_reply_json(m->call.exchange, m->call.api, 204, SLICE_EMPTY);
}

/* {"peerURLs": […]}. ST_INVALID: error has the text. */
static enum status read_urls(struct v2_members *m, struct slice body, struct error *error)
{
    struct json_node *root;
    TRY(json_tree_read(&m->call.arena, body, &root, error));
    struct json_node *array = json_node_named(root, "peerURLs");
    size_t count = 0;
    struct slice *urls = arena_calloc(&m->call.arena, ENGINE_PEER_URLS_MAX, sizeof(*urls));
    if (!urls)
        return error_set(error, ST_NOMEM, "out of memory");
    for (struct json_node *item; (item = json_node_item(array, count)) != NULL; count++) {
        if (count == ENGINE_PEER_URLS_MAX)
            return error_set(error, ST_INVALID, "too many URLs");
        TRY(json_node_text(item, &m->call.arena, &urls[count]));
        TRY(url_check(urls[count], error));
    }
    if (count == 0)
        return error_set(error, ST_INVALID, "no valid URLs given");
    return member_change_urls(urls, count, true, &m->members.member);
}

static bool is_json(const struct http_request *request)
{
    struct slice type;
    if (!http_request_get(request, SLICE_LITERAL("content-type"), &type))
        return false;
    const uint8_t *end = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    if (end)
        type.len = (size_t)(end - type.ptr);
    return slice_is(type, "application/json");
}

/* False: the request was answered with an error. */
static bool read_body(struct v2_members *m, const struct http_request *request)
{
    struct error error = {0};
    if (!is_json(request)) {
        v2_reply_message(m->call.exchange, m->call.api, 415,
                         "Bad Content-Type, accept application/json");
        return false;
    }
    enum status status = read_urls(m, request->body, &error);
    if (status == ST_OK)
        return true;
    v2_reply_message(m->call.exchange, m->call.api, 400,
                     error.text[0] ? error.text : status_text(status));
    return false;
}

/* "/v2/members/8e9e05c52164694d". False: the request was answered with an error. */
static bool read_id(struct v2_members *m, struct slice text)
{
    char digits[17] = "", *end;
    if (text.len == 0) {
        http_reply_text(m->call.exchange, 405, SLICE_LITERAL("Method Not Allowed\n"));
        return false;
    }
    if (text.len < sizeof(digits))
        slice_copy((uint8_t *)digits, text);
    m->members.member.id = strtoull(digits, &end, 16);
    if (*end == '\0' && end != digits && strspn(digits, "0123456789abcdefABCDEF") == text.len)
        return true;
    reply_no_such(m->call.exchange, m->call.api, text);
    return false;
}

/* False: the request was answered with an error. */
static bool read_request(struct v2_members *m, const struct http_request *request)
{
    size_t prefix = size_min(request->path.len, strlen("/v2/members/"));
    struct slice rest = slice_sub(request->path, prefix, request->path.len - prefix);
    struct engine_members *members = &m->members;
    if (slice_is(request->method, "POST")) {
        members->call = ENGINE_MEMBER_ADD;
        return read_body(m, request);
    }
    if (slice_is(request->method, "DELETE")) {
        members->call = ENGINE_MEMBER_REMOVE;
        return read_id(m, rest);
    }
    if (slice_is(request->method, "PUT")) {
        members->call = ENGINE_MEMBER_UPDATE;
        return read_id(m, rest) && read_body(m, request);
    }
    members->call = ENGINE_MEMBER_LIST;
    m->leader = slice_is(rest, "leader");
    if (rest.len == 0 || m->leader)
        return true;
    v2_reply_message(m->call.exchange, m->call.api, 404, "Not found");
    return false;
}

static void run_members(struct v2_call *call)
{
    struct v2_members *m = CONTAINER_OF(call, struct v2_members, call);
    if (!read_request(m, http_exchange_request(call->exchange)))
        return;
    if (m->members.call == ENGINE_MEMBER_ADD)
        m->members.member.id =
            member_id_make_at(m->members.member.peer_urls, m->members.member.peer_url_count,
                              clock_real_ns(clock_system()) / NS_PER_S);
    m->members.op.done = members_done;
    m->members.op.arena = &call->arena;
    v2_call_start(call);
    engine_members(call->api->shard, &m->members);
}

static bool admit_members(struct http_exchange *x, void *service,
                          const struct http_request *request)
{
    return v2_admits(x, service, request, "GET,POST,DELETE,PUT");
}

static void authorize_members(struct http_exchange *x, void *service,
                              const struct http_request *request)
{
    struct etcd_api *api = service;
    struct v2_members *m = xcalloc(1, sizeof(*m));
    m->call = (struct v2_call){.exchange = x, .api = api, .fini = members_fini};
    arena_init(&m->call.arena, NULL, 0, V2_CALL_BYTES_MAX);
    arena_charge(&m->call.arena, http_exchange_account(x));
    http_exchange_set_user(x, &m->call);
    bool looks = slice_is(request->method, "GET");
    v2_guard_admit(&m->call, looks ? V2_NEED_NOTHING : V2_NEED_ROOT);
}

static void members(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    (void)request;
    v2_guard_confirm(http_exchange_user(x), run_members);
}

/* -- Machines and statistics -- */

static bool admit_machines(struct http_exchange *x, void *service,
                           const struct http_request *request)
{
    return v2_admits(x, service, request, "GET,HEAD");
}

static bool admit_stats(struct http_exchange *x, void *service, const struct http_request *request)
{
    return v2_admits(x, service, request, "GET");
}

static void machines(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)request;
    const struct etcd_config *config = ((struct etcd_api *)service)->config;
    AUTO(buf_fini) struct buf body = {0};
    enum status status = ST_OK;
    for (size_t i = 0; i < config->client_url_count && status == ST_OK; i++)
        status =
            buf_append_format(&body, "%s%.*s", i ? ", " : "", SLICE_ARGS(config->client_urls[i]));
    if (status == ST_OK)
        http_respond(x, 200, HTTP_TEXT_PLAIN, buf_slice(&body));
    else
        http_abort(x);
}

/* The only member is its own leader, and there are no messages between members to count. */
static void stats_self(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct etcd_api *api = service;
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    (void)request;
    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_member_text(&w, "name", api->config->member_name);
    write_id(&w, "id", api->identity.member_id);
    json_member_text(&w, "state", "StateLeader");
    json_member_object(&w, "leaderInfo");
    write_id(&w, "leader", api->identity.member_id);
    json_end_object(&w);
    json_member_i64(&w, "recvAppendRequestCnt", 0);
    json_member_i64(&w, "sendAppendRequestCnt", 0);
    json_end_object(&w);
    reply(x, api, &w, 200, "");
}

static void stats_leader(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct etcd_api *api = service;
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    (void)request;
    json_writer_init(&w, &body);
    json_begin_object(&w);
    write_id(&w, "leader", api->identity.member_id);
    json_member_object(&w, "followers");
    json_end_object(&w);
    json_end_object(&w);
    reply(x, api, &w, 200, "");
}

/* Operations are counted by methods of v3 (/metrics), not by actions of v2. */
static void stats_store(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)request;
    v2_reply_message(x, service, 501, "operations are counted in /metrics");
}

static const struct http_route routes[] = {
    {.path = "/v2/members",
     .admit = admit_members,
     .authorize = authorize_members,
     .on_request = members,
     .on_end = v2_call_on_end},
    {.path = "/v2/members/",
     .admit = admit_members,
     .authorize = authorize_members,
     .on_request = members,
     .on_end = v2_call_on_end},
    {.path = "/v2/machines", .admit = admit_machines, .on_request = machines},
    {.path = "/v2/stats/self", .admit = admit_stats, .on_request = stats_self},
    {.path = "/v2/stats/leader", .admit = admit_stats, .on_request = stats_leader},
    {.path = "/v2/stats/store", .admit = admit_stats, .on_request = stats_store},
};

enum status v2_members_add(struct etcd_api *api)
{
    return http_routes_add(api->routes, routes, COUNT_OF(routes), api);
}
