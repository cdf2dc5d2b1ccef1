/*
 * For tests: a collection of a Kubernetes API server on the simulated network, with its history,
 * and everything that such a server may do to a client that lists and watches it. One file of a
 * program includes this.
 *
 * Objects have the names "0" to "9" and so on, in two namespaces. The whole history is kept, so
 * that tests can compare; what is "forgotten" is only refused (410).
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_COLLECTION_SIM_TEST_H
#define VIGIL_KUBECLIENT_INFORMER_COLLECTION_SIM_TEST_H

#include "kubeclient/call/kube_server_sim_test.h"
#include "net/server_private.h"

enum { COLLECTION_NAMES = 12, COLLECTION_CHANGES_MAX = 3000, COLLECTION_WATCHES_MAX = 8000 };

struct collection_change {
    int name;
    bool deletes, creates;
};

/* One watch; belongs to the reply that refers to it, and is never reused. */
struct collection_watch {
    int at;         /* the revision up to which everything was sent */
    bool bookmarks; /* the client understands them */
};

struct collection {
    struct kube_world *world;
    struct random random;
    struct collection_change history[COLLECTION_CHANGES_MAX]; /* by revision, from 1 */
    int revision, forgotten;
    struct collection_watch watches[COLLECTION_WATCHES_MAX];
    size_t watch_count;
    int pad_bytes; /* in every object */
    /* What the server does. */
    bool no_streaming;      /* refuses sendInitialEvents */
    bool ignores_streaming; /* does not know sendInitialEvents, and ignores it */
    bool forgets_as_event;  /* 410 as an ERROR event, and not as a response */
    bool stale;             /* answers from a cache that is behind, where it may */
    int pages_max;          /* objects in a page whatever the client asks for; 0: no limit */
    unsigned throttles;     /* so many requests get a 429 */
    unsigned ends;          /* so many watches are ended as soon as they begin */
    unsigned breaks;        /* so many responses break after some bytes */
    /* What the client did. */
    unsigned lists, pages, watch_requests, streams, refused, too_old;
    char last_list[1024], last_watch[1024]; /* targets */
};

/* -- Objects -- */

/* The revision of the object at this time; 0: it does not exist. */
static inline int collection_version(const struct collection *c, int name, int revision)
{
    for (int r = revision; r > 0; r--) {
        if (c->history[r].name == name)
            return c->history[r].deletes ? 0 : r;
    }
    return 0;
}

static inline void collection_append(struct buf *to, const struct collection *c, int name,
                                     int version)
{
    enum status status =
        buf_append_format(to,
                          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%d\","
                          "\"namespace\":\"%s\",\"resourceVersion\":\"%d\",\"ownerReferences\":[{"
                          "\"uid\":\"o%d\"}]},\"pad\":\"%0*d\"}",
                          name, name % 2 ? "odd" : "even", version, name / 4, c->pad_bytes, 0);
    assert_int_equal(status, ST_OK);
}

static inline void collection_append_event(struct buf *to, const struct collection *c, int revision)
{
    const struct collection_change *change = &c->history[revision];
    assert_int_equal(buf_append_format(to, "{\"type\":\"%s\",\"object\":",
                                       change->deletes   ? "DELETED"
                                       : change->creates ? "ADDED"
                                                         : "MODIFIED"),
                     ST_OK);
    collection_append(to, c, change->name, revision);
    assert_int_equal(buf_append_text(to, "}\n"), ST_OK);
}

static inline void collection_send(struct sim_reply *reply, struct buf *bytes)
{
    sim_reply_write(reply, buf_slice(bytes));
    buf_fini(bytes);
}

/* -- Changes -- */

/* The server notices only in a turn what was written outside of one. */
static inline void collection_written(struct collection *c)
{
    struct net_server *server = c->world->server.server;
    if (server)
        loop_turn(server->shards[0].loop, 0);
}

static inline void collection_send_change(struct collection *c, struct sim_reply *reply)
{
    struct collection_watch *watch = reply->later_ctx;
    struct buf bytes = {0};
    if (!watch || reply->ends || reply->breaks)
        return;
    while (watch->at < c->revision)
        collection_append_event(&bytes, c, ++watch->at);
    collection_send(reply, &bytes);
}

static inline void collection_send_changes(struct collection *c)
{
    struct sim_reply *reply;
    LIST_FOREACH (reply, &c->world->server.replies, in_server)
        collection_send_change(c, reply);
    collection_written(c);
}

static inline void collection_put(struct collection *c, int name)
{
    assert_true(c->revision + 1 < COLLECTION_CHANGES_MAX);
    bool exists = collection_version(c, name, c->revision) > 0;
    c->history[++c->revision] = (struct collection_change){.name = name, .creates = !exists};
    collection_send_changes(c);
}

static inline void collection_delete(struct collection *c, int name)
{
    if (collection_version(c, name, c->revision) == 0)
        return;
    c->history[++c->revision] = (struct collection_change){.name = name, .deletes = true};
    collection_send_changes(c);
}

static inline void collection_change_one(struct collection *c)
{
    int name = (int)random_below(&c->random, COLLECTION_NAMES);
    if (random_chance(&c->random, 1, 4))
        collection_delete(c, name);
    else
        collection_put(c, name);
}

/* A bookmark to every watch that wants them. */
static inline void collection_bookmark(struct collection *c)
{
    struct sim_reply *reply;
    LIST_FOREACH (reply, &c->world->server.replies, in_server) {
        struct collection_watch *watch = reply->later_ctx;
        char text[256];
        if (!watch || !watch->bookmarks || reply->ends || reply->breaks)
            continue;
        snprintf(text, sizeof(text),
                 "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
                 "\"metadata\":{\"resourceVersion\":\"%d\"}}}\n",
                 watch->at);
        sim_reply_text(reply, text);
    }
    collection_written(c);
}

/* Ends, breaks or fails every watch. The replies may be gone afterwards. */
enum collection_end { COLLECTION_ENDS, COLLECTION_BREAKS, COLLECTION_FORGETS, COLLECTION_FAILS };

static inline void collection_end_watches(struct collection *c, enum collection_end how)
{
    struct sim_reply *reply, *next;
    LIST_FOREACH_SAFE (reply, next, &c->world->server.replies, in_server) {
        if (!reply->later_ctx || reply->ends || reply->breaks)
            continue;
        if (how == COLLECTION_FORGETS)
            sim_reply_text(reply, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":"
                                  "\"Failure\",\"reason\":\"Expired\",\"code\":410,\"message\":"
                                  "\"too old resource version\"}}\n");
        if (how == COLLECTION_FAILS)
            sim_reply_text(reply, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":"
                                  "\"Failure\",\"reason\":\"InternalError\",\"code\":500}}\n");
        reply->later_ctx = NULL;
        if (how == COLLECTION_BREAKS)
            sim_reply_break(reply);
        else
            sim_reply_end(reply);
    }
    collection_written(c);
}

/* -- Requests -- */

/* The value of a parameter; "" without it. */
static inline const char *collection_parameter(const char *target, const char *name, char to[256])
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

static inline int collection_number(const char *target, const char *name)
{
    char value[256];
    return (int)strtol(collection_parameter(target, name, value), NULL, 10);
}

/* A state that is at least as new as the client wants; 0: there is none. */
static inline int collection_state_for(struct collection *c, const char *target)
{
    char text[256];
    int wanted = collection_number(target, "resourceVersion");
    bool any = strcmp(collection_parameter(target, "resourceVersion", text), "0") == 0;
    int oldest = any ? 0 : wanted;
    if (wanted > c->revision)
        return 0;
    if (!c->stale || !text[0] || oldest == c->revision)
        return c->revision;
    return (int)random_between(&c->random, oldest ? oldest : 1, c->revision);
}

static inline void collection_refuse_too_large(struct sim_reply *reply)
{
    sim_reply_json(reply, 504,
                   "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"Too large resource "
                   "version\",\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                   "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}],"
                   "\"retryAfterSeconds\":1},\"code\":504}");
}

static inline void collection_refuse_expired(struct collection *c, struct sim_reply *reply)
{
    c->too_old++;
    sim_reply_status(reply, 410, "Expired", "too old resource version");
}

/* True: the request was answered. */
static inline bool collection_fails(struct collection *c, struct sim_reply *reply)
{
    if (c->throttles) {
        c->throttles--;
        c->refused++;
        sim_reply_field(reply, "Retry-After", "1");
        sim_reply_status(reply, 429, "TooManyRequests", "try again later");
        return true;
    }
    if (c->breaks) {
        c->breaks--;
        reply->break_at = (size_t)random_below(&c->random, 400);
    }
    return false;
}

/* "revision.name" */
static inline void collection_read_token(const char *token, int *ret_at, int *ret_from)
{
    char *rest;
    *ret_at = (int)strtol(token, &rest, 10);
    *ret_from = (int)strtol(rest + 1, NULL, 10);
}

static inline void collection_list(struct sim_reply *reply, const struct sim_request *request,
                                   void *ctx)
{
    struct collection *c = ctx;
    char token[256];
    int at, from = 0, name, count = 0, limit = collection_number(request->target, "limit");
    snprintf(c->last_list, sizeof(c->last_list), "%s", request->target);
    c->world->server.request_count = 0;
    c->pages++;
    if (collection_fails(c, reply))
        return;
    at = collection_state_for(c, request->target);
    if (*collection_parameter(request->target, "continue", token))
        collection_read_token(token, &at, &from);
    else
        c->lists++;
    if (at == 0 && c->revision > 0) {
        collection_refuse_too_large(reply);
        return;
    }
    if (token[0] && at < c->forgotten) {
        collection_refuse_expired(c, reply);
        return;
    }
    if (c->pages_max && (!limit || limit > c->pages_max))
        limit = c->pages_max;
    struct buf items = {0}, all = {0};
    for (name = from; name < COLLECTION_NAMES && (!limit || count < limit); name++) {
        int version = collection_version(c, name, at);
        if (!version)
            continue;
        if (count++)
            assert_int_equal(buf_append_text(&items, ","), ST_OK);
        collection_append(&items, c, name, version);
    }
    if (name < COLLECTION_NAMES)
        snprintf(token, sizeof(token), "\"continue\":\"%d.%d\",", at, name);
    else
        token[0] = 0;
    assert_int_equal(buf_append_format(&all,
                                       "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                                       "%s\"resourceVersion\":\"%d\"},\"items\":[%.*s]}",
                                       token, at, SLICE_ARGS(buf_slice(&items))),
                     ST_OK);
    buf_fini(&items);
    sim_reply_begin(reply, 200, "application/json");
    collection_send(reply, &all);
    sim_reply_end(reply);
}

static inline void collection_send_state(struct collection *c, struct sim_reply *reply, int at,
                                         bool marked)
{
    struct buf bytes = {0};
    for (int name = 0; name < COLLECTION_NAMES; name++) {
        int version = collection_version(c, name, at);
        if (!version)
            continue;
        assert_int_equal(buf_append_text(&bytes, "{\"type\":\"ADDED\",\"object\":"), ST_OK);
        collection_append(&bytes, c, name, version);
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
    collection_send(reply, &bytes);
}

static inline bool collection_begins_watch(struct collection *c, struct sim_reply *reply, int at)
{
    if (at >= c->forgotten || at == 0) {
        sim_reply_begin(reply, 200, "application/json");
        return true;
    }
    if (c->forgets_as_event) {
        c->too_old++;
        sim_reply_begin(reply, 200, "application/json");
        sim_reply_text(reply, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":"
                              "\"Failure\",\"reason\":\"Expired\",\"code\":410,\"message\":"
                              "\"too old resource version\"}}\n");
        sim_reply_end(reply);
    } else {
        collection_refuse_expired(c, reply);
    }
    return false;
}

static inline void collection_watch(struct sim_reply *reply, const struct sim_request *request,
                                    void *ctx)
{
    struct collection *c = ctx;
    char text[256];
    bool streams = strstr(request->target, "sendInitialEvents=true") != NULL;
    snprintf(c->last_watch, sizeof(c->last_watch), "%s", request->target);
    c->world->server.request_count = 0;
    c->watch_requests += !streams;
    c->streams += streams;
    if (collection_fails(c, reply))
        return;
    if (streams && c->no_streaming) {
        c->refused++;
        sim_reply_status(reply, 422, "Invalid",
                         "sendInitialEvents is forbidden for watch unless the WatchList feature "
                         "gate is enabled");
        return;
    }
    bool state = streams || !*collection_parameter(request->target, "resourceVersion", text);
    int at = state ? collection_state_for(c, request->target)
                   : collection_number(request->target, "resourceVersion");
    if ((at == 0 && c->revision > 0) || at > c->revision) {
        collection_refuse_too_large(reply);
        return;
    }
    if (!collection_begins_watch(c, reply, at))
        return;
    if (state)
        collection_send_state(c, reply, at, streams && !c->ignores_streaming);
    assert_true(c->watch_count < COLLECTION_WATCHES_MAX);
    struct collection_watch *watch = &c->watches[c->watch_count++];
    *watch = (struct collection_watch){
        .at = at, .bookmarks = strstr(request->target, "allowWatchBookmarks=true") != NULL};
    reply->later_ctx = watch;
    collection_send_change(c, reply);
    if (c->ends) {
        c->ends--;
        reply->later_ctx = NULL;
        sim_reply_end(reply);
    }
}

static inline void collection_answer(struct sim_reply *reply, const struct sim_request *request,
                                     void *ctx)
{
    if (strstr(request->target, "watch=true"))
        collection_watch(reply, request, ctx);
    else
        collection_list(reply, request, ctx);
}

/* Before the world is started. The collection is large: not for the stack. */
static inline void collection_init(struct collection *c, struct kube_world *world, uint64_t seed)
{
    memset(c, 0, sizeof(*c));
    c->world = world;
    c->pad_bytes = 1;
    random_init(&c->random, seed);
    kube_server_route(&world->server, "GET", "/api/v1/pods", collection_answer, c);
}

#endif
