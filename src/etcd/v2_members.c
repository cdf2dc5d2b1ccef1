/* What v2 says about the cluster, which is one member and stays so; and its statistics. */
#include "base/clock.h"
#include "codec/json/writer.h"
#include "etcd/v2.h"

#include <inttypes.h>
#include <stdio.h>

static void write_urls(struct json_writer *w, const char *name, const struct slice *urls,
                       size_t count)
{
    json_key(w, name);
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        json_string(w, urls[i]);
    json_end_array(w);
}

static void write_id(struct json_writer *w, const char *name, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIx64, id);
    json_key(w, name);
    json_text(w, text);
}

static void write_member(struct json_writer *w, const struct etcd_face *face)
{
    const struct etcd_config *config = face->config;
    json_begin_object(w);
    write_id(w, "id", face->identity.member_id);
    json_key(w, "name");
    json_text(w, config->member_name);
    write_urls(w, "peerURLs", config->peer_urls, config->peer_url_count);
    write_urls(w, "clientURLs", config->client_urls, config->client_url_count);
    json_end_object(w);
}

/* Ends the text and answers with it. */
static void reply(struct http_exchange *x, const struct etcd_face *face, struct json_writer *w,
                  const char *ending)
{
    if (json_writer_finish(w) == ST_OK && buf_append_text(w->out, ending) == ST_OK)
        v2_reply_json(x, face, 200, buf_slice(w->out));
    else
        http_abort(x);
}

static void members(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct etcd_face *face = service;
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    if (!v2_admits(x, face, request, "GET,POST,DELETE,PUT"))
        return;
    if (!slice_equal(request->method, SLICE_LITERAL("GET"))) {
        v2_reply_message(x, face, 501, "a single node has no members to add, change or remove");
        return;
    }
    json_writer_init(&w, &body);
    if (slice_equal(request->path, SLICE_LITERAL("/v2/members/leader"))) {
        write_member(&w, face);
    } else if (slice_equal(request->path, SLICE_LITERAL("/v2/members")) ||
               slice_equal(request->path, SLICE_LITERAL("/v2/members/"))) {
        json_begin_object(&w);
        json_key(&w, "members");
        json_begin_array(&w);
        write_member(&w, face);
        json_end_array(&w);
        json_end_object(&w);
    } else {
        v2_reply_message(x, face, 404, "Not found");
        return;
    }
    reply(x, face, &w, "\n");
}

static void machines(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct etcd_config *config = ((struct etcd_face *)service)->config;
    AUTO(buf_fini) struct buf body = {0};
    enum status status = ST_OK;
    if (!v2_admits(x, service, request, "GET,HEAD"))
        return;
    for (size_t i = 0; i < config->client_url_count && status == ST_OK; i++)
        status =
            buf_append_format(&body, "%s%.*s", i ? ", " : "", SLICE_ARGS(config->client_urls[i]));
    if (status == ST_OK)
        http_respond(x, 200, HTTP_TEXT_PLAIN, buf_slice(&body));
    else
        http_abort(x);
}

/* One member is its own leader; there are no messages between members to count. */
static void stats_self(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct etcd_face *face = service;
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    if (!v2_admits(x, face, request, "GET"))
        return;
    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key(&w, "name");
    json_text(&w, face->config->member_name);
    write_id(&w, "id", face->identity.member_id);
    json_key(&w, "state");
    json_text(&w, "StateLeader");
    json_key(&w, "leaderInfo");
    json_begin_object(&w);
    write_id(&w, "leader", face->identity.member_id);
    json_end_object(&w);
    json_key(&w, "recvAppendRequestCnt");
    json_i64(&w, 0);
    json_key(&w, "sendAppendRequestCnt");
    json_i64(&w, 0);
    json_end_object(&w);
    reply(x, face, &w, "");
}

static void stats_leader(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct etcd_face *face = service;
    AUTO(buf_fini) struct buf body = {0};
    struct json_writer w;
    if (!v2_admits(x, face, request, "GET"))
        return;
    json_writer_init(&w, &body);
    json_begin_object(&w);
    write_id(&w, "leader", face->identity.member_id);
    json_key(&w, "followers");
    json_begin_object(&w);
    json_end_object(&w);
    json_end_object(&w);
    reply(x, face, &w, "");
}

/* The store counts by methods of v3 (/metrics); by actions of v2 nobody does. */
static void stats_store(struct http_exchange *x, void *service, const struct http_request *request)
{
    if (v2_admits(x, service, request, "GET"))
        v2_reply_message(x, service, 501, "operations are counted in /metrics");
}

static const struct http_route routes[] = {
    {.path = "/v2/members", .on_request = members},
    {.path = "/v2/members/", .on_request = members},
    {.path = "/v2/machines", .on_request = machines},
    {.path = "/v2/stats/self", .on_request = stats_self},
    {.path = "/v2/stats/leader", .on_request = stats_leader},
    {.path = "/v2/stats/store", .on_request = stats_store},
};

enum status v2_members_add(struct etcd_face *face)
{
    return http_routes_add(face->routes, routes, COUNT_OF(routes), face);
}
