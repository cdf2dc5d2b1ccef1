/*
 * Watch.Watch: decodes and checks the requests of the stream. Everything else is done by the watch
 * layer (watch/stream.h), whose output is written directly into DATA frames.
 *
 *     messages ──► create, cancel, progress ──► watch stream ── fill ──► DATA
 *                                                   └── wake ──► grpc_call_wake
 *
 * As in etcd, the stream continues after the client's half-close. A client that sends requests
 * faster than it reads the responses gets no more flow-control window until it has read some.
 */
#include "auth/check.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/authenticator.h"
#include "etcd/service.h"
#include "etcd/service/services.h"
#include "watch/stream.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PAUSE_WAITING = 512,  /* unread control responses at which the client gets no more window … */
    RESUME_WAITING = 128, /* … until only this many are left */
    REFUSAL_BYTES = 256,
    REQUEST_BYTES_FIRST = 512,
    REQUEST_BYTES_MAX = 16 << 20, /* of memory for one decoded request */
    RECHECK_AT_ONCE = 512,        /* calls woken in one turn after permissions have changed */
};

/* One call. In its arena. */
struct watch_call {
    struct grpc_source source; /* first */
    struct grpc_call *call;
    struct etcd_api *api;
    struct watch_stream *stream; /* owned; NULL once the call has failed */
    struct list in_api;          /* links api.watches */
    struct auth_principal *user; /* owned, followed by its name in memory; NULL: not logged in */
    uint32_t rights_seen;        /* api.rights_changes when its permissions were last checked */
    bool paused;
};

_Static_assert(sizeof(struct watch_call) <= GRPC_PARKED_BYTES,
               "an idle watch takes no other block");

/* -- Output -- */

/* The watch stream is freed at once, although the error may have to wait until it can be sent. */
static void fail(struct watch_call *w, enum grpc_code code, struct slice text)
{
    watch_stream_free(w->stream);
    w->stream = NULL;
    grpc_call_fail_text(w->call, code, text);
}

static bool recheck(struct watch_call *w);

static enum grpc_fill fill(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct watch_call *w = CONTAINER_OF(source, struct watch_call, source);
    bool more;
    *ret_len = 0;
    if (UNLIKELY(w->rights_seen != w->api->rights_changes) && !recheck(w))
        return GRPC_FILL_PARKED;
    uint64_t before = watch_stream_responses(w->stream);
    *ret_len = watch_stream_fill(w->stream, dst, room, &more);
    grpc_call_sent(w->call, watch_stream_responses(w->stream) - before);
    if (*ret_len == 0 && watch_stream_status(w->stream) != ST_OK) {
        /* Clients resume after this code, and then learn of the compaction. */
        fail(w, GRPC_UNAVAILABLE,
             SLICE_LITERAL("vigil: the rest of a watch response was compacted before it was read"));
        return GRPC_FILL_PARKED;
    }
    if (w->paused && watch_stream_waiting(w->stream) <= RESUME_WAITING) {
        w->paused = false;
        grpc_call_pause(w->call, false);
    }
    return more ? GRPC_FILL_MORE : GRPC_FILL_PARKED;
}

static void wake(void *ctx)
{
    struct watch_call *w = ctx;
    grpc_call_wake(w->call);
}

static void describe(void *ctx, char text[WATCH_PEER_BYTES])
{
    const struct watch_call *w = ctx;
    char address[GRPC_ADDRESS_BYTES];
    grpc_call_peer_address(w->call, address);
    snprintf(text, WATCH_PEER_BYTES, "%.*s", WATCH_PEER_BYTES - 1, address);
}

/* -- Refusals -- */

/* The reason of a refused watch: like etcd, the text of a whole gRPC error. */
static const char *refusal_text(enum status status, char text[REFUSAL_BYTES])
{
    static const char *const names[] = {
        [GRPC_INVALID_ARGUMENT] = "InvalidArgument",
        [GRPC_PERMISSION_DENIED] = "PermissionDenied",
        [GRPC_UNAUTHENTICATED] = "Unauthenticated",
    };
    enum grpc_code code = status_code(status);
    const char *name = (size_t)code < COUNT_OF(names) && names[code] ? names[code] : "Unknown";
    snprintf(text, REFUSAL_BYTES, "rpc error: code = %s desc = %s", name, status_text(status));
    return text;
}

/* -- Permission -- */

static enum status check(struct watch_call *w, const struct auth_principal *principal,
                         const struct pb_watch_create_request *request)
{
    struct auth_asker asker = {.rights = engine_auth_rights(w->api->shard),
                               .principal = *principal};
    return auth_check_watch(&asker, request);
}

/* Keeps the user for later checks. Not in the call's arena, whose next block would be large. */
static enum status keep_user(struct watch_call *w, const struct auth_principal *principal)
{
    if (w->user && slice_equal(w->user->user, principal->user))
        return ST_OK;
    struct auth_principal *kept = malloc(sizeof(*kept) + principal->user.len);
    if (!kept)
        return ST_NOMEM;
    slice_copy((uint8_t *)(kept + 1), principal->user);
    *kept = (struct auth_principal){.user = slice_of(kept + 1, principal->user.len), .revision = 1};
    free(w->user);
    w->user = kept;
    return ST_OK;
}

/* For a new watch. The user is determined each time, because a token may have expired. */
static enum status permit(struct watch_call *w, const struct pb_watch_create_request *request)
{
    struct auth_principal principal;
    TRY(authenticator_find(w->api->authenticator, w->call, &principal));
    if (principal.revision)
        TRY(keep_user(w, &principal));
    return check(w, &principal, request);
}

/* For a running watch: with the user's current permissions, even if the token has expired. */
static bool still_permitted(void *ctx, struct slice key, struct slice range_end)
{
    struct watch_call *w = ctx;
    struct auth_principal principal = w->user ? *w->user : (struct auth_principal){0};
    struct pb_watch_create_request request = {.key = key, .range_end = range_end};
    if (w->user)
        principal.revision = auth_rights_revision(engine_auth_rights(w->api->shard));
    return check(w, &principal, &request) == ST_OK;
}

/* Called before anything is sent. False: the call has failed. */
static bool recheck(struct watch_call *w)
{
    char text[REFUSAL_BYTES];
    struct slice reason = slice_from_text(refusal_text(ST_PERMISSION_DENIED, text));
    w->rights_seen = w->api->rights_changes;
    if (!auth_rights_enabled(engine_auth_rights(w->api->shard)) ||
        watch_stream_keep(w->stream, still_permitted, w, reason) == ST_OK)
        return true;
    fail(w, GRPC_PERMISSION_DENIED, slice_from_text(status_text(ST_PERMISSION_DENIED)));
    return false;
}

/* A call checks its permissions when it is filled next. Idle calls are woken some at a time. */
static void wake_some(struct deferred *deferred)
{
    struct etcd_api *api = CONTAINER_OF(deferred, struct etcd_api, recheck);
    size_t count = api->loop ? size_min(api->recheck_left, RECHECK_AT_ONCE) : api->recheck_left;
    api->recheck_left -= count;
    for (; count && !list_empty(&api->watches); count--) {
        struct watch_call *w = LIST_ENTRY(list_pop_front(&api->watches), struct watch_call, in_api);
        list_push_back(&api->watches, &w->in_api);
        if (w->stream && w->rights_seen != api->rights_changes)
            grpc_call_wake(w->call);
    }
    if (api->recheck_left && api->loop)
        loop_defer(api->loop, &api->recheck);
}

void watch_service_rights_changed(void *ctx)
{
    struct etcd_api *api = ctx;
    api->rights_changes++;
    api->recheck_left = api->watch_count;
    api->recheck.fn = wake_some;
    if (api->loop)
        loop_defer(api->loop, &api->recheck);
    else
        wake_some(&api->recheck);
}

/* -- Requests -- */

static enum status create(struct watch_call *w, const struct pb_watch_create_request *request)
{
    enum status status = request->start_revision < 0 ? ST_OK : permit(w, request);
    char text[REFUSAL_BYTES];
    if (status != ST_OK)
        return watch_stream_refuse(w->stream, slice_from_text(refusal_text(status, text)));
    struct watch_create made = {
        .key = request->key.len ? request->key : SLICE_LITERAL("\0"),
        .range_end = request->range_end,
        .start_revision = request->start_revision,
        .watch_id = request->watch_id,
        .progress_notify = request->progress_notify,
        .prev_kv = request->prev_kv,
        .fragment = request->fragment,
    };
    for (size_t i = 0; i < request->filters_count; i++) {
        made.no_put |= request->filters[i] == PB_FILTER_TYPE_NOPUT;
        made.no_delete |= request->filters[i] == PB_FILTER_TYPE_NODELETE;
    }
    return watch_stream_create(w->stream, &made);
}

static enum status execute(struct watch_call *w, const struct pb_watch_request *request)
{
    switch (request->request_union_case) {
    case PB_WATCH_REQUEST_CREATE_REQUEST:
        return create(w, request->create_request);
    case PB_WATCH_REQUEST_CANCEL_REQUEST:
        return watch_stream_cancel(w->stream, request->cancel_request->watch_id);
    case PB_WATCH_REQUEST_PROGRESS_REQUEST:
        return watch_stream_progress(w->stream);
    default:
        return ST_OK; /* an unknown request is ignored, as by etcd */
    }
}

static struct watch_call *watch_call_new(struct grpc_call *call, struct etcd_api *api)
{
    struct watch_call *w = arena_calloc(grpc_call_arena(call), 1, sizeof(*w));
    if (!w) {
        grpc_call_fail(call, ST_NOMEM);
        return NULL;
    }
    w->source.fill = fill;
    w->call = call;
    w->api = api;
    w->stream =
        watch_stream_new(engine_watch_hub(api->shard),
                         (struct watch_stream_owner){.wake = wake, .ctx = w, .describe = describe});
    w->rights_seen = api->rights_changes;
    list_push_back(&api->watches, &w->in_api);
    api->watch_count++;
    grpc_call_set_user(call, w);
    grpc_call_set_source(call, &w->source);
    return w;
}

static void on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct watch_call *w = grpc_call_user(call);
    if (!w)
        w = watch_call_new(call, service);
    if (!w || !w->stream)
        return;
    /* A call may live for years and have a million requests, which do not stay in its arena. */
    uint8_t first[REQUEST_BYTES_FIRST];
    struct arena arena;
    struct pb_watch_request request;
    arena_init(&arena, first, sizeof(first), REQUEST_BYTES_MAX);
    if (!etcd_call_decode_in(call, &arena, &pb_watch_request_table, message, &request)) {
        watch_stream_free(w->stream);
        w->stream = NULL;
    } else {
        enum status status = execute(w, &request);
        if (status == ST_LIMIT)
            fail(w, GRPC_RESOURCE_EXHAUSTED,
                 SLICE_LITERAL("vigil: too many watch requests whose answers were not read"));
        else if (status != ST_OK)
            fail(w, status_code(status), slice_from_text(status_text(status)));
    }
    arena_fini(&arena);
    if (w->stream && !w->paused && watch_stream_waiting(w->stream) >= PAUSE_WAITING) {
        w->paused = true;
        grpc_call_pause(call, true);
    }
}

static void on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct watch_call *w = grpc_call_user(call);
    if (!w)
        return; /* it ended before its first request */
    list_remove(&w->in_api);
    w->api->watch_count--;
    free(TAKE(w->user));
    watch_stream_free(w->stream);
    w->stream = NULL;
}

static const struct grpc_method methods[] = {
    {
        .path = PB_WATCH_WATCH_PATH,
        .client_streams = true,
        .server_streams = true,
        .parks = true,
        .on_message = on_message,
        .on_end = on_end,
    },
};

enum status watch_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
