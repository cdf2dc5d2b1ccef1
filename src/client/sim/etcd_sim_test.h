/*
 * For tests: a small etcd on a simulated network. The gRPC server is our own; the services are a
 * few lines each, over a history of revisions that all members of the cluster share. It counts what
 * it executes, so that tests can compare it with what a client reports.
 */
#ifndef VIGIL_CLIENT_SIM_ETCD_SIM_TEST_H
#define VIGIL_CLIENT_SIM_ETCD_SIM_TEST_H

#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "net/server.h"
#include "net/shard.h"
#include "net/wire.h"
#include "simulated/sim.h"
#include "wire/grpc/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    ETCD_REVISIONS_MAX = 64,
    ETCD_WATCHES_MAX = 8,
    ETCD_PUTS_MAX = 64,
    ETCD_TEXT_BYTES = 24,
    ETCD_PAIRS_MAX = 16,
    ETCD_MEMBER_ID = 77
};

/* One revision: a put of this key, or of this many keys that begin with it; or their deletion. */
struct etcd_revision {
    char key[ETCD_TEXT_BYTES], value[ETCD_TEXT_BYTES];
    unsigned keys;
    bool deleted;
};

/* A key at some revision. */
struct etcd_pair {
    char key[ETCD_TEXT_BYTES];
    const char *value;
    int64_t created, changed;
};

enum etcd_answer {
    ETCD_ANSWERS,
    ETCD_IS_SILENT,         /* accepts requests and does not answer */
    ETCD_CALLS_FAIL,        /* only streams work: other calls are refused as unavailable */
    ETCD_IS_UNAVAILABLE,    /* refuses every request except for Authenticate */
    ETCD_IS_EMPTY,          /* ends calls with OK and without a response */
    ETCD_ANSWERS_TWICE,     /* sends two responses to one request */
    ETCD_ANSWERS_MALFORMED, /* sends a response that is not protobuf */
    ETCD_IS_LEARNER,        /* refuses every request, because only voters can do it */
    ETCD_HAS_NO_LEADER,     /* answers serializable reads, and refuses streams */
    ETCD_ANSWERS_EXHAUSTED, /* fails calls with RESOURCE_EXHAUSTED */
};

/* What the members share. */
struct etcd_cluster {
    struct etcd_revision history[ETCD_REVISIONS_MAX]; /* from revision 2 on */
    int64_t revision, compacted;
    unsigned executed[ETCD_PUTS_MAX]; /* puts of clients, by the number that is their value */
    unsigned token;                   /* the number of the valid token; 0: no authentication */
    unsigned authentications;
    unsigned outdated; /* this many calls are refused because users were changed meanwhile */
    bool lease_lives;
    int64_t lease_ttl;
    unsigned renewals;
    unsigned progress;        /* how often progress was wanted for all watches */
    bool forgets_previous;    /* events have no previous values */
    struct slice range_bytes; /* unless empty: the encoded answer to every range request */
    struct slice watch_bytes; /* unless empty: sent instead of a created response */
    unsigned ranges;          /* range requests */
    const char *version;      /* version of all members */
    struct list streams;      /* etcd_stream.in_cluster */
};

struct etcd_member {
    struct etcd_cluster *cluster;
    enum etcd_answer answer;
    struct grpc_services *services;
    struct grpc_guard guard;
    struct net_wire wire;      /* its limits may be changed before the start */
    struct protocol_kind kind; /* protocol of its connections; may be replaced before the start */
    bool secure;               /* that kind is TLS */
    struct net_server *server; /* NULL: down */
    struct loop *loop;         /* loop of the server; NULL: down */
    struct deferred publish;   /* sends events to its watches */
    struct url bound;
    unsigned watch_requests;
};

struct etcd_watch {
    int64_t id, next;
    char key[ETCD_TEXT_BYTES], end[ETCD_TEXT_BYTES];
    bool fragment, prev_kv;
};

/* A stream of watches. */
struct etcd_stream {
    struct list in_cluster;
    struct etcd_cluster *cluster;
    struct etcd_member *member;
    struct grpc_call *call;
    struct etcd_watch watches[ETCD_WATCHES_MAX];
    size_t count;
    int64_t next_id;
    unsigned progress; /* how much of the cluster's was sent */
};

static inline void etcd_send(struct grpc_call *call, const struct pb_message *type,
                             const void *message)
{
    size_t size = pb_size(type, message);
    uint8_t *to = grpc_call_message(call, size);
    if (to)
        pb_encode(type, message, to, size);
}

static inline void etcd_send_bytes(struct grpc_call *call, struct slice message)
{
    uint8_t *to = grpc_call_message(call, message.len);
    assert_non_null(to);
    slice_copy(to, message);
}

static inline void etcd_text(char text[ETCD_TEXT_BYTES], struct slice from)
{
    assert_true(from.len < ETCD_TEXT_BYTES);
    slice_copy(text, from);
    text[from.len] = '\0';
}

/* True: the member misbehaves, and the call has been dealt with. */
static inline bool etcd_misbehaves(struct etcd_member *member, struct grpc_call *call)
{
    switch (member->answer) {
    case ETCD_IS_SILENT:
    case ETCD_HAS_NO_LEADER:
        return true;
    case ETCD_IS_LEARNER:
        grpc_call_fail(call, ST_NOT_SUPPORTED_FOR_LEARNER);
        return true;
    case ETCD_IS_UNAVAILABLE:
        grpc_call_fail_text(call, GRPC_UNAVAILABLE, SLICE_LITERAL("etcdserver: server stopped"));
        return true;
    case ETCD_ANSWERS_EXHAUSTED:
        grpc_call_fail_text(call, GRPC_RESOURCE_EXHAUSTED, SLICE_LITERAL("too busy"));
        return true;
    case ETCD_IS_EMPTY:
        grpc_call_finish(call);
        return true;
    case ETCD_ANSWERS_MALFORMED:
        etcd_send(call, &pb_authenticate_response_table,
                  &(struct pb_authenticate_response){.token = SLICE_LITERAL("\x07\x07")});
        grpc_call_finish(call);
        return true;
    default:
        return false;
    }
}

/* -- KV -- */

static inline void etcd_key(const struct etcd_revision *at, unsigned i, char key[ETCD_TEXT_BYTES])
{
    snprintf(key, ETCD_TEXT_BYTES, at->keys == 1 ? "%.20s" : "%.20s/%u", at->key, i);
}

/* Puts or deletes one key in a sorted array. */
static inline size_t etcd_set_pair(struct etcd_pair *pairs, size_t count, const char *key,
                                   const struct etcd_revision *change, int64_t revision)
{
    size_t i = 0;
    while (i < count && strcmp(pairs[i].key, key) < 0)
        i++;
    bool exists = i < count && strcmp(pairs[i].key, key) == 0;
    if (change->deleted && exists)
        memmove(&pairs[i], &pairs[i + 1], (count - i - 1) * sizeof(*pairs));
    if (change->deleted)
        return count - exists;
    assert_true(exists || count < ETCD_PAIRS_MAX);
    if (!exists)
        memmove(&pairs[i + 1], &pairs[i], (count - i) * sizeof(*pairs));
    int64_t created = exists ? pairs[i].created : revision;
    pairs[i] = (struct etcd_pair){.value = change->value, .created = created, .changed = revision};
    snprintf(pairs[i].key, ETCD_TEXT_BYTES, "%s", key);
    return count + !exists;
}

/* The keys of a range at a revision, in their order. */
static inline size_t etcd_pairs(const struct etcd_cluster *cluster, int64_t revision,
                                struct slice key, struct slice end,
                                struct etcd_pair pairs[ETCD_PAIRS_MAX])
{
    size_t count = 0;
    for (int64_t r = 2; r <= revision; r++) {
        const struct etcd_revision *at = &cluster->history[r];
        for (unsigned i = 0; i < at->keys; i++) {
            char name[ETCD_TEXT_BYTES];
            etcd_key(at, i, name);
            struct slice found = slice_from_text(name);
            if (end.len ? slice_compare(key, found) <= 0 && slice_compare(found, end) < 0
                        : slice_equal(key, found))
                count = etcd_set_pair(pairs, count, name, at, r);
        }
    }
    return count;
}

static inline struct pb_key_value etcd_kv(const struct etcd_pair *pair)
{
    return (struct pb_key_value){
        .key = slice_from_text(pair->key),
        .value = slice_from_text(pair->value),
        .create_revision = pair->created,
        .mod_revision = pair->changed,
    };
}

static inline void etcd_answer_range(struct etcd_member *member, struct grpc_call *call,
                                     const struct pb_range_request *request)
{
    const struct etcd_cluster *cluster = member->cluster;
    struct etcd_pair pairs[ETCD_PAIRS_MAX];
    struct pb_key_value kvs[ETCD_PAIRS_MAX];
    struct pb_response_header header = {.revision = cluster->revision};
    struct pb_range_response response = {.header = &header, .kvs = kvs};
    size_t count = etcd_pairs(cluster, request->revision ? request->revision : cluster->revision,
                              request->key, request->range_end, pairs);
    response.count = (int64_t)count;
    response.kvs_count = request->limit ? size_min(count, (size_t)request->limit) : count;
    response.more = response.kvs_count < count;
    for (size_t i = 0; i < response.kvs_count; i++)
        kvs[i] = etcd_kv(&pairs[i]);
    etcd_send(call, &pb_range_response_table, &response);
    if (member->answer == ETCD_ANSWERS_TWICE)
        etcd_send(call, &pb_range_response_table, &response);
    grpc_call_finish(call);
}

static inline void etcd_range(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_member *member = service;
    struct etcd_cluster *cluster = member->cluster;
    struct pb_range_request request;
    cluster->ranges++;
    if (member->answer == ETCD_CALLS_FAIL)
        grpc_call_fail_text(call, GRPC_UNAVAILABLE, SLICE_LITERAL("no quorum"));
    assert_int_equal(pb_decode(&pb_range_request_table, message, grpc_call_arena(call), &request),
                     ST_OK);
    bool alone = member->answer == ETCD_HAS_NO_LEADER && request.serializable;
    if (member->answer == ETCD_CALLS_FAIL || (!alone && etcd_misbehaves(member, call)))
        return;
    if (cluster->range_bytes.len) {
        etcd_send_bytes(call, cluster->range_bytes);
        grpc_call_finish(call);
        return;
    }
    if (request.revision && request.revision < cluster->compacted)
        grpc_call_fail(call, ST_COMPACTED);
    else if (request.revision > cluster->revision)
        grpc_call_fail(call, ST_FUTURE_REV);
    else
        etcd_answer_range(member, call, &request);
}

static inline void etcd_publish(struct etcd_cluster *cluster);

static inline void etcd_change(struct etcd_cluster *cluster, struct slice key, struct slice value,
                               unsigned keys)
{
    assert_true(cluster->revision + 1 < ETCD_REVISIONS_MAX);
    struct etcd_revision *at = &cluster->history[++cluster->revision];
    etcd_text(at->key, key);
    etcd_text(at->value, value);
    at->keys = keys;
    etcd_publish(cluster);
}

static inline void etcd_progress(struct etcd_cluster *cluster)
{
    cluster->progress++;
    etcd_publish(cluster);
}

static inline void etcd_delete(struct etcd_cluster *cluster, struct slice key, unsigned keys)
{
    assert_true(cluster->revision + 1 < ETCD_REVISIONS_MAX);
    struct etcd_revision *at = &cluster->history[++cluster->revision];
    etcd_text(at->key, key);
    at->keys = keys;
    at->deleted = true;
    etcd_publish(cluster);
}

static inline void etcd_put(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_member *member = service;
    struct etcd_cluster *cluster = member->cluster;
    struct pb_put_request request;
    struct pb_response_header header = {0};
    struct pb_put_response response = {.header = &header};
    char value[ETCD_TEXT_BYTES];
    assert_int_equal(pb_decode(&pb_put_request_table, message, grpc_call_arena(call), &request),
                     ST_OK);
    bool executes = member->answer != ETCD_IS_UNAVAILABLE && member->answer != ETCD_IS_LEARNER &&
                    member->answer != ETCD_HAS_NO_LEADER;
    if (!executes && etcd_misbehaves(member, call))
        return;
    etcd_text(value, request.value);
    unsigned long number = strtoul(value, NULL, 10);
    assert_true(number < ETCD_PUTS_MAX);
    cluster->executed[number]++;
    etcd_change(cluster, request.key, request.value, 1);
    if (etcd_misbehaves(member, call))
        return;
    header.revision = cluster->revision;
    etcd_send(call, &pb_put_response_table, &response);
    grpc_call_finish(call);
}

static inline void etcd_status(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_member *member = service;
    struct pb_response_header header = {.revision = member->cluster->revision,
                                        .member_id = ETCD_MEMBER_ID};
    struct pb_status_response response = {.header = &header,
                                          .version = slice_from_text(member->cluster->version)};
    (void)message;
    if (etcd_misbehaves(member, call))
        return;
    etcd_send(call, &pb_status_response_table, &response);
    grpc_call_finish(call);
}

/* -- Watch -- */

static inline bool etcd_matches(const struct etcd_watch *watch, const char *key)
{
    if (!*watch->end)
        return strcmp(watch->key, key) == 0;
    return strcmp(watch->key, key) <= 0 && strcmp(key, watch->end) < 0;
}

/* Sends the events of one revision; as fragments with one event each, if there are several. */
static inline void etcd_send_revision(struct etcd_stream *stream, const struct etcd_watch *watch,
                                      int64_t revision)
{
    const struct etcd_revision *at = &stream->cluster->history[revision];
    struct pb_response_header header = {.revision = revision};
    for (unsigned i = 0; i < at->keys; i++) {
        struct etcd_pair before[ETCD_PAIRS_MAX], after = {.value = at->value, .changed = revision};
        etcd_key(at, i, after.key);
        bool existed = etcd_pairs(stream->cluster, revision - 1, slice_from_text(after.key),
                                  SLICE_EMPTY, before);
        if (watch->prev_kv && !at->deleted) /* others do not need it */
            after.created = existed ? before[0].created : revision;
        struct pb_key_value kv = etcd_kv(&after), prev_kv = {0};
        struct pb_event event = {.kv = &kv, .type = at->deleted ? PB_EVENT_TYPE_DELETE : 0};
        if (existed && watch->prev_kv && !stream->cluster->forgets_previous) {
            prev_kv = etcd_kv(&before[0]);
            event.prev_kv = &prev_kv;
        }
        struct pb_watch_response response = {
            .header = &header,
            .watch_id = watch->id,
            .events = &event,
            .events_count = 1,
            .fragment = watch->fragment && i + 1 < at->keys,
        };
        etcd_send(stream->call, &pb_watch_response_table, &response);
    }
}

static inline void etcd_send_mark(struct etcd_stream *stream, struct pb_watch_response response)
{
    struct pb_response_header header = {.revision = stream->cluster->revision,
                                        .member_id = ETCD_MEMBER_ID};
    response.header = &header;
    etcd_send(stream->call, &pb_watch_response_table, &response);
}

/* Sends progress to each watch for which it was requested since the last time. */
static inline void etcd_send_progress(struct etcd_stream *stream)
{
    for (size_t i = 0; i < stream->count && stream->progress != stream->cluster->progress; i++)
        etcd_send_mark(stream, (struct pb_watch_response){.watch_id = stream->watches[i].id});
    stream->progress = stream->cluster->progress;
}

static inline void etcd_send_events(struct etcd_stream *stream)
{
    for (size_t i = 0; i < stream->count; i++) {
        struct etcd_watch *watch = &stream->watches[i];
        for (; watch->next <= stream->cluster->revision; watch->next++)
            if (etcd_matches(watch, stream->cluster->history[watch->next].key))
                etcd_send_revision(stream, watch, watch->next);
    }
}

/* Output is sent at the end of a turn, so events are made in one. */
static inline void etcd_publish(struct etcd_cluster *cluster)
{
    struct etcd_stream *stream;
    LIST_FOREACH (stream, &cluster->streams, in_cluster)
        if (stream->member->loop)
            loop_defer(stream->member->loop, &stream->member->publish);
}

static inline void etcd_on_publish(struct deferred *deferred)
{
    struct etcd_member *member = CONTAINER_OF(deferred, struct etcd_member, publish);
    struct etcd_stream *stream;
    LIST_FOREACH (stream, &member->cluster->streams, in_cluster) {
        if (stream->member != member)
            continue;
        etcd_send_events(stream);
        etcd_send_progress(stream);
    }
}

static inline void etcd_create_watch(struct etcd_stream *stream,
                                     const struct pb_watch_create_request *create)
{
    struct etcd_cluster *cluster = stream->cluster;
    int64_t id = stream->next_id++, start = create->start_revision;
    if (cluster->watch_bytes.len) {
        etcd_send_bytes(stream->call, cluster->watch_bytes);
        return;
    }
    etcd_send_mark(stream, (struct pb_watch_response){.watch_id = id, .created = true});
    if (start && start < cluster->compacted) {
        etcd_send_mark(stream, (struct pb_watch_response){.watch_id = id,
                                                          .canceled = true,
                                                          .compact_revision = cluster->compacted});
        return;
    }
    assert_true(stream->count < ETCD_WATCHES_MAX);
    struct etcd_watch *watch = &stream->watches[stream->count++];
    *watch =
        (struct etcd_watch){.id = id, .fragment = create->fragment, .prev_kv = create->prev_kv};
    watch->next = start ? (start < 2 ? 2 : start) : cluster->revision + 1;
    etcd_text(watch->key, create->key);
    etcd_text(watch->end, create->range_end);
    etcd_send_events(stream);
}

static inline void etcd_cancel_watch(struct etcd_stream *stream, int64_t id)
{
    for (size_t i = 0; i < stream->count; i++) {
        if (stream->watches[i].id != id)
            continue;
        stream->watches[i] = stream->watches[--stream->count];
        etcd_send_mark(stream, (struct pb_watch_response){.watch_id = id, .canceled = true});
    }
}

static inline struct etcd_stream *etcd_stream_of(struct grpc_call *call, struct etcd_member *member)
{
    struct etcd_stream *stream = grpc_call_user(call);
    if (stream)
        return stream;
    stream = calloc(1, sizeof(*stream));
    assert_non_null(stream);
    stream->cluster = member->cluster;
    stream->member = member;
    stream->call = call;
    stream->progress = stream->cluster->progress;
    list_push_back(&member->cluster->streams, &stream->in_cluster);
    grpc_call_set_user(call, stream);
    return stream;
}

static inline void etcd_watch(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_member *member = service;
    struct pb_watch_request request;
    struct arena arena;
    member->watch_requests++;
    if (member->answer == ETCD_HAS_NO_LEADER)
        grpc_call_fail(call, ST_NO_LEADER);
    if (etcd_misbehaves(member, call))
        return;
    struct etcd_stream *stream = etcd_stream_of(call, member);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_int_equal(pb_decode(&pb_watch_request_table, message, &arena, &request), ST_OK);
    if (request.request_union_case == PB_WATCH_REQUEST_CREATE_REQUEST)
        etcd_create_watch(stream, request.create_request);
    else if (request.request_union_case == PB_WATCH_REQUEST_CANCEL_REQUEST)
        etcd_cancel_watch(stream, request.cancel_request->watch_id);
    else
        etcd_send_mark(stream, (struct pb_watch_response){.watch_id = -1});
    arena_fini(&arena);
}

static inline void etcd_watch_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct etcd_stream *stream = grpc_call_user(call);
    if (stream)
        list_remove(&stream->in_cluster);
    free(stream);
}

/* -- Lease and Auth -- */

static inline void etcd_keep_alive(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_member *member = service;
    struct etcd_cluster *cluster = member->cluster;
    struct pb_lease_keep_alive_request request;
    if (etcd_misbehaves(member, call))
        return;
    assert_int_equal(
        pb_decode(&pb_lease_keep_alive_request_table, message, grpc_call_arena(call), &request),
        ST_OK);
    cluster->renewals += cluster->lease_lives;
    struct pb_lease_keep_alive_response response = {
        .id = request.id, .ttl = cluster->lease_lives ? cluster->lease_ttl : 0};
    etcd_send(call, &pb_lease_keep_alive_response_table, &response);
}

static inline void etcd_authenticate(struct grpc_call *call, void *service, struct slice message)
{
    struct etcd_cluster *cluster = ((struct etcd_member *)service)->cluster;
    char token[ETCD_TEXT_BYTES];
    (void)message;
    if (cluster->token == 0) {
        grpc_call_fail(call, ST_AUTH_NOT_ENABLED);
        return;
    }
    cluster->authentications++;
    snprintf(token, sizeof(token), "token.%u", cluster->token);
    etcd_send(call, &pb_authenticate_response_table,
              &(struct pb_authenticate_response){.token = slice_from_text(token)});
    grpc_call_finish(call);
}

static inline enum status etcd_admit(void *ctx, struct grpc_call *call, const struct grpc_row *row)
{
    struct etcd_cluster *cluster = ((struct etcd_member *)ctx)->cluster;
    char valid[ETCD_TEXT_BYTES];
    struct slice token;
    if (cluster->outdated) {
        cluster->outdated--;
        return ST_AUTH_OLD_REVISION;
    }
    if (cluster->token == 0 || row->method->on_message == etcd_authenticate)
        return ST_OK;
    snprintf(valid, sizeof(valid), "token.%u", cluster->token);
    if (!grpc_call_metadata(call, SLICE_LITERAL("token"), &token))
        return ST_USER_EMPTY;
    return slice_equal(token, slice_from_text(valid)) ? ST_OK : ST_INVALID_AUTH_TOKEN;
}

static const struct grpc_method etcd_methods[] = {
    {.path = "/etcdserverpb.KV/Range", .on_message = etcd_range},
    {.path = "/etcdserverpb.KV/Put", .on_message = etcd_put},
    {.path = "/etcdserverpb.Maintenance/Status", .on_message = etcd_status},
    {.path = "/etcdserverpb.Auth/Authenticate", .on_message = etcd_authenticate},
    {.path = "/etcdserverpb.Watch/Watch",
     .client_streams = true,
     .server_streams = true,
     .parks = true,
     .on_message = etcd_watch,
     .on_end = etcd_watch_end},
    {.path = "/etcdserverpb.Lease/LeaseKeepAlive",
     .client_streams = true,
     .server_streams = true,
     .parks = true,
     .on_message = etcd_keep_alive},
};

/* -- Life -- */

static inline void etcd_cluster_init(struct etcd_cluster *cluster)
{
    *cluster = (struct etcd_cluster){
        .revision = 1, .lease_lives = true, .lease_ttl = 3, .version = "3.7.0"};
    list_init(&cluster->streams);
}

static inline void etcd_member_init(struct etcd_member *member, struct etcd_cluster *cluster)
{
    *member = (struct etcd_member){.cluster = cluster, .wire.limits = WIRE_LIMITS_DEFAULT};
    member->guard = (struct grpc_guard){etcd_admit, member};
    member->publish.fn = etcd_on_publish;
    assert_int_equal(grpc_services_new(&member->services), ST_OK);
    assert_int_equal(
        grpc_services_add(member->services, etcd_methods, COUNT_OF(etcd_methods), member), ST_OK);
    grpc_services_guard(member->services, &member->guard);
    member->wire.services = member->services;
    member->kind = net_wire_kind(&member->wire);
}

static inline enum status etcd_shard_start(void *ctx, struct net_shard *shard)
{
    ((struct etcd_member *)ctx)->loop = net_shard_loop(shard);
    return ST_OK;
}

static inline void etcd_shard_stop(void *ctx, struct net_shard *shard)
{
    struct etcd_member *member = ctx;
    (void)shard;
    loop_defer_cancel(&member->publish);
    member->loop = NULL;
}

/* The first start chooses the address. */
static inline void etcd_member_start(struct etcd_member *member, struct network *network)
{
    struct net_options options = NET_OPTIONS_DEFAULT;
    struct net_app app = {
        .shard_start = etcd_shard_start, .shard_stop = etcd_shard_stop, .ctx = member};
    struct error error;
    struct url url = member->bound;
    options.shards = 1;
    options.linger_ns = 0;
    const char *any = member->secure ? "https://127.0.0.1:0" : "http://127.0.0.1:0";
    if (!address_port(&url.address) && url_parse(slice_from_text(any), &url, &error) != ST_OK)
        fail_msg("%s", error.text);
    assert_int_equal(net_server_new(network, &options, &app, &member->server), ST_OK);
    if (net_server_listen(member->server, &url, &member->kind, &member->bound, &error) != ST_OK)
        fail_msg("%s", error.text);
    assert_int_equal(net_server_start(member->server), ST_OK);
}

static inline void etcd_member_stop(struct etcd_member *member)
{
    if (!member->server)
        return;
    net_server_stop(member->server);
    net_server_free(member->server);
    member->server = NULL;
}

static inline void etcd_member_fini(struct etcd_member *member)
{
    etcd_member_stop(member);
    grpc_services_free(member->services);
}

#endif
