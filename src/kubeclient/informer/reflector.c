#include "kubeclient/informer/reflector.h"

#include "base/clock.h"
#include "kubeclient/data/status.h"

#include <stdio.h>

#define DELAY_MIN_NS (800 * NS_PER_MS)
#define DELAY_MAX_NS (30 * NS_PER_S)
#define DELAY_RESET_NS (120 * NS_PER_S) /* without a failure for this long */
#define SHORT_WATCH_NS (1 * NS_PER_S)   /* one that ends as soon without an event is a failure */

enum {
    TIMEOUT_MIN_S = 300,
    WATCH_FAILURES_MAX = 5, /* in a row, before the state is requested again */
};

#define TO(state) (1u << REFLECTOR_##state)

/* Drawn in reflector.h. */
static const unsigned reflector_moves[] = {
    [REFLECTOR_STOPPED] = TO(STREAMING) | TO(LISTING),
    [REFLECTOR_STREAMING] = TO(STOPPED) | TO(STREAMING) | TO(LISTING) | TO(WATCHING) | TO(WAITING),
    [REFLECTOR_LISTING] = TO(STOPPED) | TO(LISTING) | TO(WATCHING) | TO(WAITING),
    [REFLECTOR_WATCHING] = TO(STOPPED) | TO(STREAMING) | TO(LISTING) | TO(WATCHING) | TO(WAITING),
    [REFLECTOR_WAITING] = TO(STOPPED) | TO(STREAMING) | TO(LISTING) | TO(WATCHING),
};

static void reflector_move(struct reflector *r, enum reflector_state next)
{
    STATE_MOVE(r->state, reflector_moves, next);
}

void reflector_init(struct reflector *r, struct cache *cache, const struct reflector_ops *ops,
                    void *ctx, uint64_t seed)
{
    *r = (struct reflector){.cache = cache,
                            .ops = ops,
                            .ctx = ctx,
                            .page_objects = REFLECTOR_PAGE_OBJECTS,
                            .after_answer.next_ns = DELAY_MIN_NS,
                            .after_silence.next_ns = DELAY_MIN_NS};
    random_init(&r->random, seed);
}

void reflector_fini(struct reflector *r)
{
    buf_fini(&r->token);
}

/* -- Requests -- */

/* A server may answer a list from its cache if any version will do. */
static const char *version_to_list(const struct reflector *r)
{
    if (r->version_unavailable)
        return "";
    return r->newest[0] ? r->newest : "0";
}

/* Without a version the server sends its most recent state, which replaces whatever is known. */
static void begin_state(struct reflector *r, const char *version)
{
    if (!version[0])
        r->newest[0] = 0;
    cache_begin_list(r->cache, !version[0]);
}

static void request_page(struct reflector *r)
{
    const char *version = version_to_list(r);
    /* With a version, a limit would keep the server from answering from its cache. */
    bool any = !version[0] || strcmp(version, "0") == 0;
    struct reflector_request request = {
        .kind = REFLECTOR_LISTING,
        .version = r->token.len ? "" : version,
        .continue_token = buf_slice(&r->token),
        .limit = !r->whole && (any || r->in_pages) ? r->page_objects : 0,
    };
    r->ops->request(r->ctx, &request);
}

static void list(struct reflector *r)
{
    reflector_move(r, REFLECTOR_LISTING);
    buf_reset(&r->token, 0);
    begin_state(r, version_to_list(r));
    request_page(r);
}

static void begin_watch(struct reflector *r, enum reflector_state kind, const char *version,
                        int64_t now_ns)
{
    /* Between once and twice the minimum, so that not all watches of a server end together. */
    int timeout_s = TIMEOUT_MIN_S + (int)random_below(&r->random, TIMEOUT_MIN_S);
    struct reflector_request request = {.kind = kind, .version = version, .timeout_s = timeout_s};
    r->events = 0;
    r->begun_ns = now_ns;
    r->ops->request(r->ctx, &request);
}

static void stream(struct reflector *r, int64_t now_ns)
{
    const char *version = r->version_unavailable ? "" : r->newest;
    reflector_move(r, REFLECTOR_STREAMING);
    begin_state(r, version);
    begin_watch(r, REFLECTOR_STREAMING, version, now_ns);
}

static void watch(struct reflector *r, int64_t now_ns)
{
    reflector_move(r, REFLECTOR_WATCHING);
    begin_watch(r, REFLECTOR_WATCHING, r->version, now_ns);
}

/* The state from the beginning. */
static void relist(struct reflector *r, int64_t now_ns)
{
    if (r->lists)
        list(r);
    else
        stream(r, now_ns);
}

void reflector_start(struct reflector *r, int64_t now_ns)
{
    assert(r->state == REFLECTOR_STOPPED);
    relist(r, now_ns);
}

static bool has_request(const struct reflector *r)
{
    return r->state != REFLECTOR_STOPPED && r->state != REFLECTOR_WAITING;
}

void reflector_stop(struct reflector *r)
{
    if (r->state == REFLECTOR_STOPPED)
        return;
    if (has_request(r))
        r->ops->cancel(r->ctx);
    cache_drop_list(r->cache);
    reflector_move(r, REFLECTOR_STOPPED);
}

void reflector_resume(struct reflector *r, int64_t now_ns)
{
    if (r->state != REFLECTOR_WAITING)
        return;
    if (r->again == REFLECTOR_WATCHING)
        watch(r, now_ns);
    else if (r->again == REFLECTOR_LISTING)
        list(r);
    else
        relist(r, now_ns);
}

/* -- Failures -- */

/* The delay doubles, and up to as much again is added at random. */
static int64_t next_delay(struct reflector *r, bool answered, int64_t now_ns)
{
    struct reflector_delay *delay = answered ? &r->after_answer : &r->after_silence;
    if (answered) /* the server is back */
        r->after_silence.next_ns = DELAY_MIN_NS;
    if (now_ns - delay->failed_ns > DELAY_RESET_NS)
        delay->next_ns = DELAY_MIN_NS;
    delay->failed_ns = now_ns;
    int64_t delay_ns = delay->next_ns;
    delay->next_ns = 2 * delay_ns < DELAY_MAX_NS ? 2 * delay_ns : DELAY_MAX_NS;
    return delay_ns + (int64_t)random_below(&r->random, (uint64_t)delay_ns);
}

/* The request is over. `again` says what follows the wait. */
static void wait_before(struct reflector *r, enum reflector_state again, int64_t delay_ns)
{
    r->again = again;
    cache_drop_list(r->cache);
    reflector_move(r, REFLECTOR_WAITING);
    r->ops->wait(r->ctx, delay_ns);
}

/* The server has refused, or could not be reached. */
static void wait_after_failure(struct reflector *r, enum reflector_state again,
                               const struct vigil_kube_status *status, int64_t now_ns)
{
    int64_t delay_ns = next_delay(r, status->code != 0, now_ns);
    int64_t asked_ns = (status->retry_after_s < KUBE_RETRY_AFTER_MAX_S ? status->retry_after_s
                                                                       : KUBE_RETRY_AFTER_MAX_S) *
                       NS_PER_S;
    wait_before(r, again, delay_ns > asked_ns ? delay_ns : asked_ns);
}

/* The server does not have this version any more, or does not have it yet. */
static bool is_version_unavailable(const struct vigil_kube_status *status)
{
    return kube_status_is_expired(status) || kube_status_is_too_large_version(status);
}

/* An older server, or one that is configured not to stream the state. Other errors may pass. */
static bool is_refused(const struct vigil_kube_status *status)
{
    return status->code == 400 || status->code == 405 || status->code == 422;
}

static void stream_failed(struct reflector *r, const struct vigil_kube_status *status,
                          int64_t now_ns)
{
    cache_drop_list(r->cache);
    if (is_version_unavailable(status) && !r->version_unavailable) {
        r->version_unavailable = true;
        stream(r, now_ns);
    } else if (status->code == 0 || status->code == 429) {
        wait_after_failure(r, REFLECTOR_STREAMING, status, now_ns);
    } else {
        r->lists = is_refused(status);
        list(r); /* which may work although streaming does not */
    }
}

static void list_failed(struct reflector *r, const struct vigil_kube_status *status, int64_t now_ns)
{
    bool too_slow = r->token.len > 0 && !r->whole; /* for the server's history */
    cache_drop_list(r->cache);
    if (!is_version_unavailable(status) || (r->version_unavailable && !too_slow)) {
        wait_after_failure(r, REFLECTOR_LISTING, status, now_ns);
        return;
    }
    if (too_slow)
        r->whole = true;
    else
        r->version_unavailable = true;
    list(r);
}

/* After too many failures in a row, the state may help where the changes do not. Without a version
 * a watch would miss what was deleted meanwhile. */
static enum reflector_state after_watch(const struct reflector *r)
{
    bool resumes = r->version[0] && r->failures <= WATCH_FAILURES_MAX;
    return resumes ? REFLECTOR_WATCHING : REFLECTOR_STREAMING;
}

/* The changes cannot be had: the server has forgotten them, or cannot read them. */
static bool needs_state(const struct vigil_kube_status *status)
{
    return is_version_unavailable(status) || strcmp(status->reason, "StoreReadError") == 0;
}

/* A server whose history is always too short would otherwise be asked for its state without a
 * pause, so there is a delay also before that. */
static void watch_failed(struct reflector *r, const struct vigil_kube_status *status,
                         int64_t now_ns)
{
    bool reached = status->code != 0 && status->code != 429;
    if (kube_status_is_too_large_version(status))
        r->version_unavailable = true;
    r->failures += reached;
    wait_after_failure(r, needs_state(status) ? REFLECTOR_STREAMING : after_watch(r), status,
                       now_ns);
}

void reflector_failed(struct reflector *r, const struct vigil_kube_status *status, int64_t now_ns)
{
    assert(has_request(r));
    r->ops->failed(r->ctx, status);
    if (r->state == REFLECTOR_STREAMING)
        stream_failed(r, status, now_ns);
    else if (r->state == REFLECTOR_LISTING)
        list_failed(r, status, now_ns);
    else if (r->state == REFLECTOR_WATCHING)
        watch_failed(r, status, now_ns);
}

static void fail_locally(struct reflector *r, const char *reason, const char *text, int64_t now_ns)
{
    struct vigil_kube_status status = {.retry_after_s = -1};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "%s", text);
    r->ops->cancel(r->ctx);
    r->ops->failed(r->ctx, &status);
    if (!has_request(r))
        return; /* stopped within the callback */
    r->failures++;
    wait_before(r, r->state == REFLECTOR_WATCHING ? after_watch(r) : REFLECTOR_STREAMING,
                next_delay(r, true, now_ns));
}

/* The status of one of our own operations on an object. */
static void object_failed(struct reflector *r, enum status status, int64_t now_ns)
{
    if (status == ST_MALFORMED)
        fail_locally(r, "InternalError", "the server sent an object without a name", now_ns);
    else if (status == ST_NOMEM)
        fail_locally(r, "OutOfMemory", "there is no memory for an object", now_ns);
    else
        fail_locally(r, "CacheLimit", "an object does not fit into the cache", now_ns);
}

/* -- Objects -- */

/* For every event, so without printf. */
static void copy_version(char to[REFLECTOR_VERSION_BYTES], struct slice version)
{
    assert(version.len < REFLECTOR_VERSION_BYTES);
    slice_copy(to, version);
    to[version.len] = 0;
}

static void note_newest(struct reflector *r, struct slice version)
{
    if (version.len && version.len < sizeof(r->newest) &&
        (!r->newest[0] || version_compare(version, slice_from_text(r->newest)) > 0))
        copy_version(r->newest, version);
}

static void set_version(struct reflector *r, struct slice version)
{
    if (version.len && version.len < sizeof(r->version))
        copy_version(r->version, version);
    note_newest(r, version);
}

/* ST_MALFORMED, ST_LIMIT, ST_NOMEM. */
static enum status put(struct reflector *r, struct slice json)
{
    struct vigil_kube_object *object;
    TRY(object_new(json, &object));
    enum status status = cache_put(r->cache, object);
    if (status == ST_OK)
        note_newest(r, object_version(object));
    vigil_kube_object_unref(object);
    return status;
}

static enum status drop(struct reflector *r, struct slice json)
{
    struct vigil_kube_object *object;
    TRY(object_new(json, &object));
    enum status status = cache_remove(r->cache, object);
    vigil_kube_object_unref(object);
    return status;
}

/* After cache_end_list. */
static void synced(struct reflector *r, struct slice version)
{
    r->version[0] = 0;
    set_version(r, version);
    r->version_unavailable = r->whole = false;
    r->ops->synced(r->ctx);
}

/* -- Lists -- */

void reflector_listed(struct reflector *r, struct slice object, int64_t now_ns)
{
    assert(r->state == REFLECTOR_LISTING);
    enum status status = put(r, object);
    if (status != ST_OK)
        object_failed(r, status, now_ns);
}

/* Why no page can follow; NULL: one can, or none does. */
static const char *fault_of_token(const struct reflector *r, struct slice token)
{
    if (token.len > REFLECTOR_CONTINUE_BYTES_MAX)
        return "the server sent a continue token that is too long";
    if (token.len && slice_equal(token, buf_slice(&r->token)))
        return "the server sent the same continue token again";
    return NULL;
}

void reflector_page_ended(struct reflector *r, struct slice version, struct slice continue_token,
                          int64_t now_ns)
{
    assert(r->state == REFLECTOR_LISTING);
    const char *fault = fault_of_token(r, continue_token);
    r->token.len = 0;
    if (fault) {
        fail_locally(r, "InternalError", fault, now_ns);
        return;
    }
    enum status status = buf_append(&r->token, continue_token);
    if (status != ST_OK) {
        object_failed(r, status, now_ns);
        return;
    }
    r->in_pages |= continue_token.len > 0;
    if (continue_token.len) {
        request_page(r);
        return;
    }
    status = cache_end_list(r->cache);
    if (status != ST_OK) {
        object_failed(r, status, now_ns);
        return;
    }
    synced(r, version);
    if (r->state == REFLECTOR_LISTING) /* not stopped within the callback */
        watch(r, now_ns);
}

/* -- Watches -- */

static enum status apply(struct reflector *r, const struct received_event *event)
{
    switch (event->type) {
    case RECEIVED_ADDED:
    case RECEIVED_MODIFIED:
        return put(r, event->object);
    case RECEIVED_DELETED:
        return drop(r, event->object);
    default:
        return ST_OK;
    }
}

static void error_received(struct reflector *r, struct slice object, int64_t now_ns)
{
    struct vigil_kube_status status;
    if (!kube_status_read(object, &status))
        kube_status_from_http(500, SLICE_EMPTY, &status);
    if (status.code == 0)
        status.code = 500; /* 0 would mean that the server could not be reached */
    r->ops->cancel(r->ctx);
    reflector_failed(r, &status, now_ns);
}

/* The first bookmark of a server that streams its state is the one at its end. Servers before 1.19
 * ignore what they do not know of a request, and would never send that one. */
static void unknown_bookmark(struct reflector *r, int64_t now_ns)
{
    struct vigil_kube_status status = {.code = 400, .retry_after_s = -1};
    snprintf(status.reason, sizeof(status.reason), "BadRequest");
    snprintf(status.message, sizeof(status.message), "the server does not stream its state");
    r->ops->cancel(r->ctx);
    reflector_failed(r, &status, now_ns);
}

void reflector_received(struct reflector *r, const struct received_event *event, int64_t now_ns)
{
    assert(r->state == REFLECTOR_STREAMING || r->state == REFLECTOR_WATCHING);
    if (event->type == RECEIVED_ERROR) {
        error_received(r, event->object, now_ns);
        return;
    }
    enum status status = apply(r, event);
    bool completes = r->state == REFLECTOR_STREAMING && event->ends_initial_events;
    if (status == ST_OK && completes)
        status = cache_end_list(r->cache);
    if (status != ST_OK) {
        object_failed(r, status, now_ns);
        return;
    }
    r->events++;
    r->failures = 0;
    if (r->state == REFLECTOR_WATCHING) {
        /* A watch without a version begins with the objects that exist, in any order. */
        if (r->version[0] || event->type != RECEIVED_ADDED)
            set_version(r, event->version);
    } else if (completes) {
        reflector_move(r, REFLECTOR_WATCHING); /* the same request continues */
        synced(r, event->version);
    } else if (event->type == RECEIVED_BOOKMARK) {
        unknown_bookmark(r, now_ns);
    }
}

void reflector_watch_ended(struct reflector *r, int64_t now_ns)
{
    assert(r->state == REFLECTOR_STREAMING || r->state == REFLECTOR_WATCHING);
    bool too_short = r->events == 0 && now_ns - r->begun_ns < SHORT_WATCH_NS;
    if (r->state == REFLECTOR_STREAMING) /* the state is incomplete; a list may be shorter */
        wait_before(r, REFLECTOR_LISTING, next_delay(r, true, now_ns));
    else if (too_short || !r->version[0])
        wait_before(r, after_watch(r), next_delay(r, true, now_ns));
    else
        watch(r, now_ns);
}

void reflector_check(const struct reflector *r)
{
    bool lists = r->state == REFLECTOR_STREAMING || r->state == REFLECTOR_LISTING;
    cache_check(r->cache);
    assert(r->cache->in_list == lists);
    assert(r->after_answer.next_ns >= DELAY_MIN_NS && r->after_answer.next_ns <= DELAY_MAX_NS);
    assert(r->after_silence.next_ns >= DELAY_MIN_NS && r->after_silence.next_ns <= DELAY_MAX_NS);
}
