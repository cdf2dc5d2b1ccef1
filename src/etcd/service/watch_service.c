/*
 * Watch.Watch: decodes and checks the requests of the stream. Everything else is done by the watch
 * layer (watch/stream/stream.h), whose output is written directly into DATA frames.
 *
 *     messages ──► create, cancel, progress ──► watch stream ── fill ──► DATA
 *                                                   └── wake ──► grpc_call_wake
 *
 * As in etcd, the stream continues after the client's half-close. A client that sends requests
 * faster than it reads the responses gets no more flow-control window until it has read some.
 *
 * With an engine in front of a cluster, the cluster decides whether a watch may be created
 * (watch_admission.h), and the requests behind it wait. Watches of ranges that are not mirrored are
 * made at the cluster (watch_foreign.h), and their responses are written between those of the watch
 * stream.
 */
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "engine/forward.h"
#include "etcd/cluster/forward.h"
#include "etcd/cluster/watch_admission.h"
#include "etcd/cluster/watch_foreign.h"
#include "etcd/service/services.h"
#include "etcd/shared/authenticator.h"
#include "etcd/shared/service.h"
#include "watch/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PAUSE_WAITING = 512,  /* unread control responses at which the client gets no more window … */
    RESUME_WAITING = 128, /* … until only this many are left */
    REFUSAL_BYTES = 256,
    REQUEST_BYTES_FIRST = 512,
    REQUEST_BYTES_MAX = 16 << 20, /* limit on the memory for one decoded request */
    RECHECK_CALLS = 512, /* calls examined in one turn after permissions have changed … */
    RECHECK_WATCHES =
        1024,          /* … and watches of them, 3 ms in front of a cluster; as many by fills */
    UNCONFIRMED_S = 5, /* a call is ended whose permissions were not confirmed for this long */
    FOREIGN_TURN_BYTES =
        64 << 10, /* written for foreign watches before the others get their turn */
};

/* Ids that are chosen for foreign watches begin here, far from those that a stream chooses. */
static const int64_t foreign_id_first = INT64_C(1) << 32;

/* What a call has at the cluster. Freed when it has nothing. */
struct watch_cluster {
    struct watch_admission *admission; /* owned; NULL: nothing waits */
    struct watch_foreign *foreign;     /* owned; NULL: it has no foreign watches */
    int64_t next_id;
};

/* One call. In its arena. */
struct watch_call {
    struct grpc_source source; /* first */
    struct grpc_call *call;
    struct etcd_api *api;
    struct watch_stream *stream; /* owned; NULL once the call has failed */
    struct list in_api;          /* links api.watches */
    union {
        /* Owned, followed by its name in memory; NULL: not logged in. */
        struct auth_principal *user;
        /* What an engine in front of a cluster keeps for the watch: owned; NULL: nothing. */
        struct watch_cluster *cluster;
    };
    uint32_t rights_seen;   /* api.rights_changes when its permissions were last checked */
    uint16_t unconfirmed_s; /* since when, of the loop's seconds */
    bool unconfirmed : 1;   /* a permission was not confirmed when it was last checked */
    bool paused : 1;
};

_Static_assert(sizeof(struct watch_call) <= GRPC_PARKED_BYTES,
               "an idle watch takes no other block");

static bool forwards(const struct watch_call *w)
{
    return engine_forwards(w->api->engine);
}

static struct watch_foreign *foreign_of(const struct watch_call *w)
{
    return forwards(w) && w->cluster ? w->cluster->foreign : NULL;
}

static bool is_pending(const struct watch_call *w)
{
    return forwards(w) && w->cluster &&
           (watch_admission_is_pending(w->cluster->admission) ||
            watch_foreign_is_pending(w->cluster->foreign));
}

static void cluster_end(struct watch_call *w)
{
    if (!w->cluster)
        return;
    watch_admission_free(w->cluster->admission);
    watch_foreign_free(w->cluster->foreign);
    free(TAKE(w->cluster));
}

/* -- Output -- */

static void pause(struct watch_call *w, bool paused)
{
    if (w->paused != paused)
        grpc_call_pause(w->call, paused);
    w->paused = paused;
}

/* The watch stream is freed at once, although the error may have to wait until it can be sent. */
static void fail(struct watch_call *w, enum grpc_code code, struct slice text)
{
    watch_stream_free(w->stream);
    w->stream = NULL;
    grpc_call_fail_text(w->call, code, text);
}

static bool recheck_now(struct watch_call *w);
static void take_waiting(struct watch_call *w);
static void control_flow(struct watch_call *w);

/* Once the cluster has answered a request for progress, and everything before that is written.
 * Returns whether it is so. A failure for lack of memory leaves the answer out. */
static bool answer_progress(struct watch_call *w, struct watch_foreign *foreign)
{
    int64_t revision = watch_foreign_take_progress(foreign);
    enum status status = ST_OK;
    if (revision && watch_stream_watchers(w->stream))
        status = watch_stream_progress(w->stream, revision);
    else if (revision)
        status = watch_foreign_pass_progress(foreign);
    (void)status;
    return revision;
}

/* Foreign watches and the stream take turns, between responses. Answers of requests that were made
 * before a foreign watch go first. */
static size_t fill_both(struct watch_call *w, uint8_t *dst, size_t room, bool *ret_more)
{
    struct watch_foreign *foreign = foreign_of(w);
    size_t len = 0;
    uint64_t responses = 0;
    bool more = false;
    bool first = !watch_stream_is_within(w->stream) &&
                 (watch_foreign_is_within(foreign) || !watch_stream_waiting(w->stream));
    if (first)
        len = watch_foreign_fill(foreign, dst, size_min(room, FOREIGN_TURN_BYTES), &responses);
    if (!watch_foreign_is_within(foreign)) {
        bool answers = answer_progress(w, foreign);
        (void)answers; /* by one of the next two */
        len += watch_stream_fill(w->stream, dst + len, room - len, &more);
    }
    if (!watch_stream_is_within(w->stream)) /* the answer, or what had to wait */
        len += watch_foreign_fill(foreign, dst + len, size_min(room - len, FOREIGN_TURN_BYTES),
                                  &responses);
    more |= answer_progress(w, foreign);
    grpc_call_sent(w->call, responses);
    *ret_more =
        len && (more || (watch_foreign_has_more(foreign) && !watch_stream_is_within(w->stream)));
    return len;
}

static size_t fill_any(struct watch_call *w, uint8_t *dst, size_t room, bool *ret_more)
{
    bool was_pending = is_pending(w);
    size_t len = foreign_of(w) ? fill_both(w, dst, room, ret_more)
                               : watch_stream_fill(w->stream, dst, room, ret_more);
    if (!was_pending || is_pending(w))
        return len;
    /* The answer of a create is written: what waited behind it follows. */
    take_waiting(w);
    control_flow(w);
    *ret_more = len > 0;
    return len;
}

static enum grpc_fill fill(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct watch_call *w = CONTAINER_OF(source, struct watch_call, source);
    bool more;
    *ret_len = 0;
    if (UNLIKELY(w->rights_seen != w->api->rights_changes) && !recheck_now(w))
        return GRPC_FILL_PARKED;
    uint64_t before = watch_stream_responses(w->stream);
    *ret_len = fill_any(w, dst, room, &more);
    if (!w->stream)
        return GRPC_FILL_PARKED; /* the call has failed */
    grpc_call_sent(w->call, watch_stream_responses(w->stream) - before);
    if (*ret_len == 0 && watch_stream_status(w->stream) != ST_OK) {
        /* Clients resume after this code, and then learn of the compaction. */
        fail(w, GRPC_UNAVAILABLE,
             SLICE_LITERAL("vigil: the rest of a watch response was compacted before it was read"));
        return GRPC_FILL_PARKED;
    }
    if (w->paused && !is_pending(w) && watch_stream_waiting(w->stream) <= RESUME_WAITING)
        pause(w, false);
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
static struct slice refusal(enum grpc_code code, struct slice reason, char text[REFUSAL_BYTES])
{
    static const char *const names[] = {
        [GRPC_INVALID_ARGUMENT] = "InvalidArgument",
        [GRPC_PERMISSION_DENIED] = "PermissionDenied",
        [GRPC_UNAUTHENTICATED] = "Unauthenticated",
    };
    const char *name = (size_t)code < COUNT_OF(names) && names[code] ? names[code] : "Unknown";
    snprintf(text, REFUSAL_BYTES, "rpc error: code = %s desc = %.*s", name, SLICE_ARGS(reason));
    return slice_from_text(text);
}

static struct slice refusal_of(enum status status, char text[REFUSAL_BYTES])
{
    return refusal(status_code(status), slice_from_text(status_text(status)), text);
}

/* -- Permission -- */

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
    return engine_watch_recheck(w->api->shard, &principal, request->key, request->range_end);
}

/* The caller of running watches: with the user's current permissions, even if the token has
 * expired. */
static struct auth_principal caller_of(struct watch_call *w)
{
    struct auth_principal principal = {0};
    if (forwards(w)) {
        principal.token = etcd_call_token(w->call);
    } else if (w->user) {
        principal = *w->user;
        principal.revision = auth_rights_revision(engine_auth_rights(w->api->shard));
    }
    return principal;
}

struct check {
    struct watch_call *w;
    struct auth_principal caller;
    struct watch_recheck *state;
};

static bool still_permitted(void *ctx, struct slice key, struct slice range_end)
{
    const struct check *check = ctx;
    const struct watch_call *w = check->w;
    enum status status = engine_watch_recheck(w->api->shard, &check->caller, key, range_end);
    bool is_old = forwards(w) && check->caller.token.len &&
                  (status == ST_INVALID_AUTH_TOKEN || status == ST_AUTH_OLD_REVISION);
    check->state->is_old |= is_old;
    check->state->unconfirmed |= status == ST_AGAIN;
    return status == ST_OK || status == ST_AGAIN || is_old;
}

/* Returns whether it has been so for too long. */
static bool note_unconfirmed(struct watch_call *w, bool unconfirmed)
{
    int64_t now_ns = w->api->loop ? loop_now_ns(w->api->loop) : 0;
    uint16_t now_s = (uint16_t)(now_ns / NS_PER_S);
    if (!w->unconfirmed)
        w->unconfirmed_s = now_s;
    w->unconfirmed = unconfirmed;
    return unconfirmed && (uint16_t)(now_s - w->unconfirmed_s) >= UNCONFIRMED_S;
}

/* All were checked. ST_CLOSED: the call has failed. */
static enum status recheck_end(struct watch_call *w, const struct watch_recheck *state,
                               enum status status)
{
    bool too_long = note_unconfirmed(w, state->unconfirmed);
    w->rights_seen = w->api->rights_changes;
    if (status == ST_OK && !state->is_old && !too_long)
        return ST_OK;
    if (status == ST_OK && !state->is_old)
        fail(w, GRPC_UNAVAILABLE,
             SLICE_LITERAL("vigil: the cluster has not confirmed the permissions of all watches"));
    else if (status == ST_OK)
        /* Clients log in again after this code, and resume if they may. */
        fail(w, GRPC_UNAVAILABLE, slice_from_text(status_text(ST_INVALID_AUTH_TOKEN)));
    else
        fail(w, GRPC_PERMISSION_DENIED, slice_from_text(status_text(ST_PERMISSION_DENIED)));
    return ST_CLOSED;
}

/*
 * Continues to check the permissions of the call's watches. ST_AGAIN: there are more, and the call
 * must not send anything. ST_CLOSED: the call has failed.
 *
 * Permissions that change meanwhile begin a new check of all. In front of a cluster every second
 * counts as a change; there the check continues, because what it has found is not older than that.
 */
static enum status recheck(struct watch_call *w, struct watch_recheck *state, size_t *units)
{
    char text[REFUSAL_BYTES];
    struct slice reason = refusal_of(ST_PERMISSION_DENIED, text);
    uint32_t changes = w->api->rights_changes;
    if (!forwards(w) && !auth_rights_enabled(engine_auth_rights(w->api->shard))) {
        w->rights_seen = changes;
        return ST_OK;
    }
    if (state->call != w || (state->changes != changes && !forwards(w)))
        *state = (struct watch_recheck){.call = w, .changes = changes};
    struct check check = {.w = w, .caller = caller_of(w), .state = state};
    enum status status =
        watch_stream_keep(w->stream, still_permitted, &check, reason, &state->at, units);
    if (status == ST_AGAIN)
        return ST_AGAIN;
    state->call = NULL;
    if (status == ST_OK && foreign_of(w))
        status = watch_foreign_keep(foreign_of(w), still_permitted, &check, reason);
    return recheck_end(w, state, status);
}

/* Called before anything is sent. Returns whether it may be: a call with more watches than this
 * turn may check waits until recheck_some has come to it. */
static bool recheck_now(struct watch_call *w)
{
    struct etcd_api *api = w->api;
    struct watch_recheck state = {0};
    if (watch_stream_watchers(w->stream) >= api->recheck_units)
        return false;
    if (api->checks.call == w)
        api->checks.call = NULL;
    return recheck(w, &state, &api->recheck_units) == ST_OK;
}

/* Examines the next call. False: it has more watches than may be checked in this turn. */
static bool recheck_next(struct etcd_api *api, size_t *units)
{
    struct watch_call *w = LIST_ENTRY(api->watches.next, struct watch_call, in_api);
    if (w->stream && w->rights_seen != api->rights_changes) {
        list_remove(&w->in_api); /* it may be freed */
        list_push_back(&api->watches, &w->in_api);
        enum status status = recheck(w, &api->checks, units);
        if (status == ST_AGAIN) {
            list_remove(&w->in_api);
            list_push_front(&api->watches, &w->in_api);
            return false;
        }
        if (status == ST_OK)
            grpc_call_wake(w->call);
    } else {
        list_remove(&w->in_api);
        list_push_back(&api->watches, &w->in_api);
    }
    api->recheck_left--;
    return true;
}

/* Checks the calls of this shard in turn, some of them, or a part of one, in each turn. */
static void recheck_some(struct deferred *deferred)
{
    struct etcd_api *api = CONTAINER_OF(deferred, struct etcd_api, recheck);
    size_t calls = api->loop ? RECHECK_CALLS : SIZE_MAX;
    size_t units = api->loop ? RECHECK_WATCHES : SIZE_MAX;
    api->recheck_units = units;
    while (api->recheck_left && calls-- && !list_empty(&api->watches) && recheck_next(api, &units))
        ;
    if (api->recheck_left && !list_empty(&api->watches) && api->loop)
        loop_defer(api->loop, &api->recheck);
}

void watch_service_rights_changed(void *ctx)
{
    struct etcd_api *api = ctx;
    api->rights_changes++;
    api->recheck_left = api->watch_count;
    api->recheck_units = api->loop ? RECHECK_WATCHES : SIZE_MAX;
    api->recheck.fn = recheck_some;
    if (api->loop)
        loop_defer(api->loop, &api->recheck);
    else
        recheck_some(&api->recheck);
}

/* -- Requests -- */

static enum status make(struct watch_call *w, const struct pb_watch_create_request *request)
{
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

/* -- Foreign watches -- */

static const struct slice duplicate_id =
    SLICE_LITERAL("mvcc: duplicate watch ID provided on the WatchStream");

static void foreign_failed(void *ctx, enum grpc_code code, struct slice text)
{
    struct watch_call *w = ctx;
    if (w->stream)
        fail(w, code, forward_text(w->call, w->api, text));
}

static bool id_is_used(const struct watch_call *w, int64_t id)
{
    return watch_stream_has(w->stream, id) || watch_foreign_has(foreign_of(w), id);
}

static int64_t choose_id(struct watch_call *w)
{
    int64_t id;
    do {
        id = foreign_id_first + w->cluster->next_id++;
    } while (id_is_used(w, id));
    return id;
}

static enum status make_foreign(struct watch_call *w, const struct pb_watch_create_request *request)
{
    struct watch_foreign_owner owner = {.wake = wake, .failed = foreign_failed, .ctx = w};
    if (request->watch_id && id_is_used(w, request->watch_id))
        return watch_stream_refuse(w->stream, duplicate_id);
    if (!w->cluster->foreign)
        w->cluster->foreign = watch_foreign_new(w->api, w->call, owner);
    if (!w->cluster->foreign)
        return ST_NOMEM;
    if (watch_foreign_count(w->cluster->foreign) == WATCH_FOREIGN_MAX)
        return watch_stream_refuse(
            w->stream, SLICE_LITERAL("vigil: too many watches outside of the mirrored prefixes"));
    return watch_foreign_create(w->cluster->foreign, request,
                                request->watch_id ? request->watch_id : choose_id(w));
}

static enum status cancel(struct watch_call *w, int64_t id)
{
    struct watch_foreign *foreign = foreign_of(w);
    return watch_foreign_has(foreign, id) ? watch_foreign_cancel(foreign, id)
                                          : watch_stream_cancel(w->stream, id);
}

static enum status make_asked(struct watch_call *w, const struct pb_watch_request *request)
{
    const struct pb_watch_create_request *create = request->create_request;
    if (request->request_union_case != PB_WATCH_REQUEST_CREATE_REQUEST) {
        /* A request for progress. Only the cluster knows how far the foreign watches are, so it
         * answers first, and the stream afterwards. */
        struct watch_foreign *foreign = foreign_of(w);
        return watch_foreign_count(foreign) ? watch_foreign_progress(foreign)
                                            : watch_stream_progress(w->stream, INT64_MAX);
    }
    if (watch_admission_is_foreign(w->cluster->admission))
        return make_foreign(w, create);
    if (create->watch_id && watch_foreign_has(foreign_of(w), create->watch_id))
        return watch_stream_refuse(w->stream, duplicate_id);
    return make(w, create);
}

/*
 * The cluster has decided. If it could not, the call fails, so that the client tries again; only a
 * question for progress stays without an answer, as it does in etcd while a watch is behind.
 */
static enum status make_admitted(struct watch_call *w)
{
    struct watch_admission *admission = w->cluster->admission;
    const struct pb_watch_request *request = watch_admission_request(admission);
    enum status status = watch_admission_status(admission);
    if (status == ST_AGAIN && request->request_union_case == PB_WATCH_REQUEST_PROGRESS_REQUEST)
        return ST_OK;
    enum grpc_code code = status_code(status);
    char text[REFUSAL_BYTES];
    if (status == ST_OK)
        return make_asked(w, request);
    struct slice reason = forward_text(w->call, w->api, watch_admission_text(admission));
    if (code == GRPC_INVALID_ARGUMENT || code == GRPC_PERMISSION_DENIED ||
        code == GRPC_UNAUTHENTICATED)
        return watch_stream_refuse(w->stream, refusal(code, reason, text));
    fail(w, code, reason);
    return ST_OK;
}

static void answered(void *ctx);

static bool admission_begin(struct watch_call *w)
{
    struct watch_admission_owner owner = {.answered = answered, .ctx = w};
    if (!w->cluster)
        w->cluster = calloc(1, sizeof(*w->cluster));
    if (!w->cluster)
        return false;
    if (!w->cluster->admission)
        w->cluster->admission =
            watch_admission_new(w->api, grpc_call_arena(w->call)->account, owner);
    return w->cluster->admission;
}

/* Frees what an idle call does not need. */
static void admission_end(struct watch_call *w)
{
    if (!w->cluster || is_pending(w))
        return;
    watch_admission_free(TAKE(w->cluster->admission));
    if (!w->cluster->foreign)
        cluster_end(w);
}

/* The cluster decides whether the watch may be created, and when. */
static enum status ask_cluster(struct watch_call *w, struct slice message)
{
    if (!admission_begin(w))
        return ST_NOMEM;
    enum status status =
        watch_admission_start(w->cluster->admission, etcd_call_token(w->call), message);
    if (status == ST_AGAIN) {
        pause(w, true);
        return ST_OK;
    }
    return status == ST_OK ? make_admitted(w) : status;
}

static enum status create(struct watch_call *w, const struct pb_watch_create_request *request,
                          struct slice message)
{
    char text[REFUSAL_BYTES];
    if (request->start_revision < 0)
        return make(w, request); /* which refuses it */
    if (forwards(w))
        return ask_cluster(w, message);
    enum status status = permit(w, request);
    return status == ST_OK ? make(w, request)
                           : watch_stream_refuse(w->stream, refusal_of(status, text));
}

static enum status execute(struct watch_call *w, const struct pb_watch_request *request,
                           struct slice message)
{
    switch (request->request_union_case) {
    case PB_WATCH_REQUEST_CREATE_REQUEST:
        return create(w, request->create_request, message);
    case PB_WATCH_REQUEST_CANCEL_REQUEST:
        return cancel(w, request->cancel_request->watch_id);
    case PB_WATCH_REQUEST_PROGRESS_REQUEST:
        return forwards(w) ? ask_cluster(w, message) : watch_stream_progress(w->stream, INT64_MAX);
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

static void fail_request(struct watch_call *w, enum status status)
{
    if (status == ST_LIMIT)
        fail(w, GRPC_RESOURCE_EXHAUSTED,
             SLICE_LITERAL("vigil: too many watch requests whose answers were not read"));
    else if (status != ST_OK)
        fail(w, status_code(status), slice_from_text(status_text(status)));
}

static void take(struct watch_call *w, struct slice message)
{
    /* A call may live for years and have a million requests, which do not stay in its arena. */
    uint8_t first[REQUEST_BYTES_FIRST];
    struct arena arena;
    struct pb_watch_request request;
    arena_init(&arena, first, sizeof(first), REQUEST_BYTES_MAX);
    if (!etcd_call_decode_in(w->call, &arena, &pb_watch_request_table, message, &request)) {
        watch_stream_free(w->stream);
        w->stream = NULL;
    } else {
        fail_request(w, execute(w, &request, message));
    }
    arena_fini(&arena);
}

/* Lets the client send on, or not. */
static void control_flow(struct watch_call *w)
{
    if (!w->stream)
        return;
    if (watch_stream_waiting(w->stream) >= PAUSE_WAITING || is_pending(w))
        pause(w, true);
    else if (watch_stream_waiting(w->stream) <= RESUME_WAITING)
        pause(w, false);
}

/* The requests that have waited for an answer of the cluster. */
static void take_waiting(struct watch_call *w)
{
    struct slice message;
    while (w->stream && !is_pending(w) && w->cluster->admission &&
           watch_admission_next(w->cluster->admission, &message))
        take(w, message);
    admission_end(w);
}

static void answered(void *ctx)
{
    struct watch_call *w = ctx;
    if (w->stream)
        fail_request(w, make_admitted(w));
    take_waiting(w);
    control_flow(w);
}

static void on_message(struct grpc_call *call, void *service, struct slice message)
{
    struct watch_call *w = grpc_call_user(call);
    if (!w)
        w = watch_call_new(call, service);
    if (!w || !w->stream)
        return;
    if (is_pending(w)) {
        fail_request(w, admission_begin(w) ? watch_admission_queue(w->cluster->admission, message)
                                           : ST_NOMEM);
        return;
    }
    take(w, message);
    if (forwards(w))
        admission_end(w);
    control_flow(w);
}

static void on_end(struct grpc_call *call, void *service)
{
    (void)service;
    struct watch_call *w = grpc_call_user(call);
    if (!w)
        return; /* it ended before its first request */
    list_remove(&w->in_api);
    w->api->watch_count--;
    if (w->api->checks.call == w)
        w->api->checks.call = NULL;
    if (forwards(w))
        cluster_end(w);
    else
        free(TAKE(w->user));
    watch_stream_free(w->stream);
    w->stream = NULL;
}

static const struct grpc_method methods[] = {
    GRPC_METHOD(PB_WATCH_WATCH_PATH, on_message, on_end, .client_streams = true,
                .server_streams = true, .parks = true),
};

enum status watch_service_add(struct etcd_api *api)
{
    return grpc_services_add(api->services, methods, COUNT_OF(methods), api);
}
