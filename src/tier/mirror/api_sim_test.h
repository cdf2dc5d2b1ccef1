/*
 * For tests: a kube-apiserver with one resource, v1 pods, on the simulated network. Its history is
 * that of etcd: other resources use versions, too. It may be restored from a backup, and then has
 * another history; all of them are kept, so that tests can compare. One file of a program includes
 * this.
 */
#ifndef VIGIL_TIER_MIRROR_API_SIM_TEST_H
#define VIGIL_TIER_MIRROR_API_SIM_TEST_H

#include "kubeclient/call/kube_server_sim_test.h"
#include "net/server_private.h"

enum { API_NAMES = 12, API_CHANGES_MAX = 4000, API_WATCHES_MAX = 4000, API_HISTORIES_MAX = 24 };

struct api_change {
    int name; /* -1: of another resource */
    bool deletes, creates;
};

struct api_history {
    struct api_change changes[API_CHANGES_MAX]; /* by version, from 1 */
    int version;
};

/* One watch; belongs to the reply that refers to it, and is never reused. */
struct api_watch {
    int at; /* the version up to which everything was sent */
    bool is_mute;
};

struct api {
    struct kube_world *world;
    struct random random;
    struct api_history histories[API_HISTORIES_MAX];
    int history; /* the current one */
    int forgotten;
    struct api_watch watches[API_WATCHES_MAX];
    size_t watch_count;
    int pad_bytes;
    int lag;     /* watches are so many versions behind */
    int replays; /* watches begin so many versions too early */
    bool has_kinds;
    /* What the server does. */
    int refuses;         /* every request, with this code */
    int refuses_watches; /* … */
    int refuses_streams;
    int refuses_metadata;
    bool has_metadata;        /* lists of metadata say that they are */
    const char *version_text; /* instead of versions of lists, for servers without numbers */
    int states_behind;        /* so many answers with a state are … */
    int old_version;          /* … of this version, if this says so */
    bool (*is_known)(int version);
    bool forgets_as_event; /* 410 as an ERROR event, and not as a response */
    bool ignores_streaming;
    int page_max; /* objects in a page whatever is requested, unless everything is; 0: no limit */
    bool forgets_pages; /* every token has expired */
    unsigned throttles; /* so many requests get a 429 */
    unsigned breaks;    /* so many responses break after some bytes */
    /* What the client did. */
    unsigned probes, lists, pages, metadata_lists, watch_requests, streams;
    char last_target[1024], last_watch[1024], last_accept[128];
};

static inline struct api_history *api_history(struct api *a)
{
    return &a->histories[a->history];
}

static inline int api_version(struct api *a)
{
    return api_history(a)->version;
}

/* -- Objects -- */

/* The version of the object in the state of a version; 0: it does not exist. */
static inline int api_object(const struct api_history *h, int name, int version)
{
    for (int v = version; v > 0; v--)
        if (h->changes[v].name == name)
            return h->changes[v].deletes ? 0 : v;
    return 0;
}

static inline const char *api_key(int name, char to[32])
{
    snprintf(to, 32, "%s/%d", name % 2 ? "odd" : "even", name);
    return to;
}

static inline void api_append_object(struct buf *to, const struct api *a, int name, int version,
                                     bool kinds)
{
    enum status status = buf_append_format(
        to,
        "{%s\"metadata\":{\"name\":\"%d\",\"namespace\":\"%s\",\"resourceVersion\":\"%d\"},"
        "\"pad\":\"%0*d\"}",
        kinds ? "\"kind\":\"Pod\",\"apiVersion\":\"v1\"," : "", name, name % 2 ? "odd" : "even",
        version, a->pad_bytes, 0);
    assert_int_equal(status, ST_OK);
}

static inline void api_append_event(struct buf *to, struct api *a, int version)
{
    const struct api_change *change = &api_history(a)->changes[version];
    if (change->name < 0)
        return;
    assert_int_equal(buf_append_format(to, "{\"type\":\"%s\",\"object\":",
                                       change->deletes   ? "DELETED"
                                       : change->creates ? "ADDED"
                                                         : "MODIFIED"),
                     ST_OK);
    api_append_object(to, a, change->name, version, true);
    assert_int_equal(buf_append_text(to, "}\n"), ST_OK);
}

static inline void api_send(struct sim_reply *reply, struct buf *bytes)
{
    sim_reply_write(reply, buf_slice(bytes));
    buf_fini(bytes);
}

/* -- Changes -- */

/* The server notices only in a turn what was written outside of one. */
static inline void api_written(struct api *a)
{
    struct net_server *server = a->world->server.server;
    if (server)
        loop_turn(server->shards[0].loop, 0);
}

static inline struct api_watch *api_watch_of(struct sim_reply *reply)
{
    return reply->ends || reply->breaks ? NULL : reply->later_ctx;
}

static inline void api_send_changes_to(struct api *a, struct sim_reply *reply)
{
    struct api_watch *watch = api_watch_of(reply);
    struct buf bytes = {0};
    if (!watch || watch->is_mute)
        return;
    while (watch->at < api_version(a) - a->lag)
        api_append_event(&bytes, a, ++watch->at);
    api_send(reply, &bytes);
}

static inline void api_send_changes(struct api *a)
{
    struct sim_reply *reply;
    LIST_FOREACH (reply, &a->world->server.replies, in_server)
        api_send_changes_to(a, reply);
    api_written(a);
}

static inline void api_add(struct api *a, struct api_change change)
{
    struct api_history *h = api_history(a);
    assert_true(h->version + 1 < API_CHANGES_MAX);
    h->changes[++h->version] = change;
    api_send_changes(a);
}

static inline void api_put(struct api *a, int name)
{
    bool exists = api_object(api_history(a), name, api_version(a)) > 0;
    api_add(a, (struct api_change){.name = name, .creates = !exists});
}

static inline void api_delete(struct api *a, int name)
{
    if (api_object(api_history(a), name, api_version(a)))
        api_add(a, (struct api_change){.name = name, .deletes = true});
}

static inline void api_other(struct api *a)
{
    api_add(a, (struct api_change){.name = -1});
}

static inline void api_change_one(struct api *a)
{
    int name = (int)random_below(&a->random, API_NAMES);
    if (random_chance(&a->random, 1, 5))
        api_other(a);
    else if (random_chance(&a->random, 1, 3))
        api_delete(a, name);
    else
        api_put(a, name);
}

/* A bookmark to every watch. */
static inline void api_bookmark(struct api *a)
{
    struct sim_reply *reply;
    LIST_FOREACH (reply, &a->world->server.replies, in_server) {
        struct api_watch *watch = api_watch_of(reply);
        char text[256];
        if (!watch || watch->is_mute)
            continue;
        snprintf(text, sizeof(text),
                 "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
                 "\"metadata\":{\"resourceVersion\":\"%d\"}}}\n",
                 watch->at);
        sim_reply_text(reply, text);
    }
    api_written(a);
}

static inline const char *api_error_event(int code, const char *reason, char to[256])
{
    snprintf(to, 256,
             "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
             "\"status\":\"Failure\",\"reason\":\"%s\",\"code\":%d,\"message\":\"%s\"}}\n",
             reason, code, reason);
    return to;
}

enum api_end { API_ENDS, API_BREAKS, API_FORGETS, API_FAILS };

/* Ends, breaks or fails every watch. The replies may be gone afterwards. */
static inline void api_end_watches(struct api *a, enum api_end how)
{
    struct sim_reply *reply, *next;
    char text[256];
    LIST_FOREACH_SAFE (reply, next, &a->world->server.replies, in_server) {
        if (!api_watch_of(reply))
            continue;
        if (how == API_FORGETS)
            sim_reply_text(reply, api_error_event(410, "Expired", text));
        if (how == API_FAILS)
            sim_reply_text(reply, api_error_event(500, "InternalError", text));
        reply->later_ctx = NULL;
        if (how == API_BREAKS)
            sim_reply_break(reply);
        else
            sim_reply_end(reply);
    }
    api_written(a);
}

/* Watches continue without sending anything. */
static inline void api_mute_watches(struct api *a)
{
    struct sim_reply *reply;
    LIST_FOREACH (reply, &a->world->server.replies, in_server)
        if (api_watch_of(reply))
            api_watch_of(reply)->is_mute = true;
}

/* From a backup of this version: what was after it never happened. */
static inline void api_restore(struct api *a, int version)
{
    assert_true(a->history + 1 < API_HISTORIES_MAX);
    const struct api_history *before = api_history(a);
    struct api_history *h = &a->histories[++a->history];
    *h = *before;
    h->version = version;
    if (a->forgotten > version)
        a->forgotten = version;
    api_end_watches(a, API_BREAKS);
}

/* -- Requests -- */

/* The value of a parameter; "" without it. */
static inline const char *api_parameter(const char *target, const char *name, char to[256])
{
    char with[64];
    snprintf(with, sizeof(with), "%s=", name);
    to[0] = 0;
    for (const char *at = strchr(target, '?'); at; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, with, strlen(with)) == 0) {
            snprintf(to, 256, "%.*s", (int)strcspn(at + strlen(with), "&"), at + strlen(with));
            break;
        }
    }
    return to;
}

static inline int api_number(const char *target, const char *name)
{
    char value[256];
    return (int)strtol(api_parameter(target, name, value), NULL, 10);
}

static inline void api_refuse(struct sim_reply *reply, int code)
{
    const char *reason = code == 404   ? "NotFound"
                         : code == 403 ? "Forbidden"
                         : code == 405 ? "MethodNotAllowed"
                         : code == 406 ? "NotAcceptable"
                         : code == 410 ? "Expired"
                                       : "InternalError";
    sim_reply_status(reply, (unsigned)code, reason, "refused by the test");
}

/* True: the request was answered. */
static inline bool api_fails(struct api *a, struct sim_reply *reply)
{
    if (a->refuses) {
        api_refuse(reply, a->refuses);
        return true;
    }
    if (a->throttles) {
        a->throttles--;
        sim_reply_field(reply, "Retry-After", "1");
        sim_reply_status(reply, 429, "TooManyRequests", "try again later");
        return true;
    }
    if (a->breaks) {
        a->breaks--;
        reply->break_at = (size_t)random_below(&a->random, 400);
    }
    return false;
}

/* The version of a state that is answered: the newest, unless this server is behind. */
static inline int api_state_version(struct api *a)
{
    if (!a->states_behind || a->old_version >= api_version(a) ||
        (a->is_known && !a->is_known(a->old_version))) {
        return api_version(a);
    }
    a->states_behind--;
    return a->old_version;
}

static inline void api_write_list(struct api *a, struct sim_reply *reply, int at, int from,
                                  int limit, const char *kind)
{
    struct buf items = {0}, all = {0};
    int name, count = 0;
    char token[64] = "", version[32];
    for (name = from; name < API_NAMES && (!limit || count < limit); name++) {
        int object = api_object(api_history(a), name, at);
        if (!object)
            continue;
        if (count++)
            assert_int_equal(buf_append_text(&items, ","), ST_OK);
        api_append_object(&items, a, name, object, a->has_kinds);
    }
    if (name < API_NAMES)
        snprintf(token, sizeof(token), "\"continue\":\"%d.%d.%d\",", at, name, a->history);
    snprintf(version, sizeof(version), "%d", at);
    assert_int_equal(buf_append_format(&all,
                                       "{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{"
                                       "%s\"resourceVersion\":\"%s\"},\"items\":[%.*s]}",
                                       kind, token, a->version_text ? a->version_text : version,
                                       SLICE_ARGS(buf_slice(&items))),
                     ST_OK);
    buf_fini(&items);
    sim_reply_begin(reply, 200, "application/json");
    api_send(reply, &all);
    sim_reply_end(reply);
}

/* "version.name.history" */
static inline bool api_read_token(const struct api *a, const char *token, int *ret_at,
                                  int *ret_from)
{
    char *rest;
    *ret_at = (int)strtol(token, &rest, 10);
    *ret_from = (int)strtol(rest + 1, &rest, 10);
    return *ret_at >= a->forgotten && strtol(rest + 1, NULL, 10) == a->history;
}

static inline void api_answer_list(struct api *a, struct sim_reply *reply,
                                   const struct sim_request *request)
{
    char token[256];
    int at = 0, from = 0, limit = api_number(request->target, "limit");
    bool metadata = strstr(request->accept, "PartialObjectMetadataList") != NULL;
    if (*api_parameter(request->target, "continue", token) &&
        (a->forgets_pages || !api_read_token(a, token, &at, &from))) {
        api_refuse(reply, 410);
        return;
    }
    if (limit && a->page_max && limit > a->page_max)
        limit = a->page_max;
    if (!at)
        at = metadata || limit == 1 ? api_version(a) : api_state_version(a);
    api_write_list(a, reply, at, from, limit,
                   metadata && a->has_metadata ? "PartialObjectMetadataList" : "PodList");
}

static inline void api_list(struct api *a, struct sim_reply *reply,
                            const struct sim_request *request)
{
    char token[256];
    bool metadata = strstr(request->accept, "PartialObjectMetadataList") != NULL;
    int limit = api_number(request->target, "limit");
    if (metadata && !(limit && a->has_metadata)) /* then it may be a probe */
        a->metadata_lists++;
    else if (limit == 1)
        a->probes++;
    else if (*api_parameter(request->target, "continue", token))
        a->pages++;
    else
        a->lists++;
    if (metadata && a->refuses_metadata) {
        api_refuse(reply, a->refuses_metadata);
        return;
    }
    if (api_fails(a, reply))
        return;
    api_answer_list(a, reply, request);
}

static inline void api_send_state(struct api *a, struct sim_reply *reply, int at, bool marked)
{
    struct buf bytes = {0};
    for (int name = 0; name < API_NAMES; name++) {
        int version = api_object(api_history(a), name, at);
        if (!version)
            continue;
        assert_int_equal(buf_append_text(&bytes, "{\"type\":\"ADDED\",\"object\":"), ST_OK);
        api_append_object(&bytes, a, name, version, true);
        assert_int_equal(buf_append_text(&bytes, "}\n"), ST_OK);
    }
    if (marked)
        assert_int_equal(buf_append_format(&bytes,
                                           "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\","
                                           "\"metadata\":{\"resourceVersion\":\"%d\","
                                           "\"annotations\":{\"k8s.io/initial-events-end\":\"true\""
                                           "}}}}\n",
                                           at),
                         ST_OK);
    api_send(reply, &bytes);
}

/* The history from there on is known. */
static inline bool api_begin_watch(struct api *a, struct sim_reply *reply, int at)
{
    char text[256];
    if (at >= a->forgotten || at == 0) {
        sim_reply_begin(reply, 200, "application/json");
        return true;
    }
    if (a->forgets_as_event) {
        sim_reply_begin(reply, 200, "application/json");
        sim_reply_text(reply, api_error_event(410, "Expired", text));
        sim_reply_end(reply);
    } else {
        api_refuse(reply, 410);
    }
    return false;
}

static inline void api_watch(struct api *a, struct sim_reply *reply,
                             const struct sim_request *request)
{
    bool streams = strstr(request->target, "sendInitialEvents=true") != NULL;
    int refuses = streams && a->refuses_streams ? a->refuses_streams : a->refuses_watches;
    snprintf(a->last_watch, sizeof(a->last_watch), "%s", request->target);
    a->watch_requests += !streams;
    a->streams += streams;
    if (api_fails(a, reply))
        return;
    if (refuses) {
        api_refuse(reply, refuses);
        return;
    }
    int at = streams ? api_state_version(a) : api_number(request->target, "resourceVersion");
    if (!api_begin_watch(a, reply, at))
        return;
    if (streams)
        api_send_state(a, reply, at, !a->ignores_streaming);
    assert_true(a->watch_count < API_WATCHES_MAX);
    struct api_watch *watch = &a->watches[a->watch_count++];
    *watch = (struct api_watch){.at = at};
    if (!streams && a->replays)
        watch->at = at > a->replays ? at - a->replays : 0;
    reply->later_ctx = watch;
    api_send_changes_to(a, reply);
}

static inline void api_answer(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct api *a = ctx;
    snprintf(a->last_target, sizeof(a->last_target), "%s", request->target);
    snprintf(a->last_accept, sizeof(a->last_accept), "%s", request->accept);
    a->world->server.request_count = 0;
    if (strstr(request->target, "watch=true"))
        api_watch(a, reply, request);
    else
        api_list(a, reply, request);
}

/* Before the world is started. It is large: not for the stack. */
static inline void api_init(struct api *a, struct kube_world *world, uint64_t seed)
{
    memset(a, 0, sizeof(*a));
    a->world = world;
    a->pad_bytes = 1;
    random_init(&a->random, seed);
    kube_server_route(&world->server, "GET", "/api/v1/pods", api_answer, a);
}

#endif
