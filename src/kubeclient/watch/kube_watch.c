/*
 * The functions of vigil/kube/watch.h: StreamWatcher and RetryWatcher of client-go.
 *
 *            ┌────(resume)────── waiting
 *            ▼                     ▲
 *     new ──► running ─────────────┘
 *      │         └──► ending ──► ended
 *      └───────────────────────────▲
 *
 *     running   a request is under way
 *     waiting   for the next request
 *     ending    the program has paused after an ERROR, and does not know of the end yet
 *
 * A watch has two references: the program's until it is freed, and the loop's until it has ended.
 */
#include "base/metric/counter.h"
#include "client/driver/bytes.h"
#include "client/driver/shared.h"
#include "kubeclient/data/object.h"
#include "kubeclient/data/status.h"
#include "kubeclient/watch/watch_request.h"
#include "kubeclient/watch/watch_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>
#include <vigil/kube/watch.h>

enum {
    VERSION_BYTES = 128, /* length of a resourceVersion that is kept for the next request */
};

/* From the start of a request to the next one, as in client-go. */
#define RESTART_NS NS_PER_S

/* What the program wants, as bits of vigil_kube_watch.shared. */
enum { WANTS_START = 1, WANTS_RESUME = 2, WANTS_END = 4 };

enum kube_watch_state {
    KUBE_WATCH_NEW,
    KUBE_WATCH_RUNNING,
    KUBE_WATCH_WAITING,
    KUBE_WATCH_ENDING,
    KUBE_WATCH_ENDED,
};

/* Written by the loop's thread, read by any. */
struct kube_watch_counters {
    _Atomic uint64_t events, bookmarks;
    _Atomic uint64_t ends_complete, ends_cut_off, ends_timeout, ends_error;
};

struct vigil_kube_watch {
    struct driver_shared shared;
    struct driver_object object;
    struct driver_member member;
    struct vigil_kube *kube; /* holds a reference */
    vigil_kube_watch_fn fn;
    void *user;

    /* The loop's thread. */
    enum kube_watch_state state;
    bool paused;
    bool resumes;   /* with `resume` */
    bool bookmarks; /* the program wants them */
    bool accepted;  /* the request under way */
    int logged;     /* the code of the refusal that was logged last; 0: none since an acceptance */
    struct watch_request request;
    struct timer timer; /* while waiting */
    int64_t started_ns; /* the last request */
    struct vigil_kube_target target;
    struct watch_params params; /* texts are in the two arrays below */
    struct kube_watch_counters counters;
    char version[VERSION_BYTES];
    char texts[];
};

/* With its stream of HTTP/2 it takes about 1 KiB, and 4 KiB are the limit for a thousand of them.
 */
_Static_assert(sizeof(void *) != 8 || sizeof(struct vigil_kube_watch) <= 864, "a watch is small");

#define TO(state) (1u << KUBE_WATCH_##state)

static const uint8_t moves[] = {
    [KUBE_WATCH_NEW] = TO(RUNNING) | TO(ENDED),
    [KUBE_WATCH_RUNNING] = TO(WAITING) | TO(ENDING) | TO(ENDED),
    [KUBE_WATCH_WAITING] = TO(RUNNING) | TO(ENDED),
    [KUBE_WATCH_ENDING] = TO(ENDED),
    [KUBE_WATCH_ENDED] = 0,
};

static struct loop *loop_of(const struct vigil_kube_watch *watch)
{
    return watch->kube->driver.loop;
}

/* -- Callbacks -- */

/* The program may free the watch inside, but our reference keeps it. */
static void call_back(struct vigil_kube_watch *watch, const vigil_kube_event *event)
{
    struct driver *driver = &watch->kube->driver;
    if (!driver_callback_begin(driver, &watch->object))
        return;
    int answer = watch->fn(watch, event, watch->user);
    driver_callback_end(driver);
    if (answer == VIGIL_KUBE_PAUSE)
        watch->paused = true;
}

static void watch_unref(struct vigil_kube_watch *watch)
{
    if (!driver_shared_unref(&watch->shared))
        return;
    struct vigil_kube *kube = watch->kube;
    free(watch);
    driver_unref(&kube->driver);
}

/* Nothing is delivered any more. The caller has a reference of its own, or is the last one. */
static void release(struct vigil_kube_watch *watch)
{
    if (watch->state == KUBE_WATCH_ENDED)
        return;
    if (watch->state != KUBE_WATCH_NEW) {
        watch_request_cancel(&watch->request);
        loop_timer_cancel(loop_of(watch), &watch->timer);
        list_remove(&watch->member.in_driver);
    }
    STATE_MOVE(watch->state, moves, KUBE_WATCH_ENDED);
    watch_unref(watch);
}

static void end(struct vigil_kube_watch *watch, enum vigil_kube_end end, const char *reason,
                const vigil_kube_status *status)
{
    vigil_kube_event event = {
        .type = VIGIL_KUBE_ENDED,
        .end = (int)end,
        .status = status,
        .reason = reason,
    };
    call_back(watch, &event);
    release(watch);
}

static void end_after_error(struct vigil_kube_watch *watch)
{
    end(watch, VIGIL_KUBE_END_ERROR, "the watch ended after an error", NULL);
}

/* The ERROR, and the end. */
static void fail(struct vigil_kube_watch *watch, const vigil_kube_status *status)
{
    vigil_kube_event event = {.type = VIGIL_KUBE_ERROR, .status = status};
    watch_request_cancel(&watch->request);
    call_back(watch, &event);
    if (watch->paused)
        STATE_MOVE(watch->state, moves, KUBE_WATCH_ENDING);
    else
        end_after_error(watch);
}

/* -- Requests -- */

static void request(struct vigil_kube_watch *watch)
{
    vigil_kube_status failure;
    struct error error;
    enum status status = watch_request_start(&watch->request, watch->kube, &watch->params, &error);
    watch->started_ns = loop_now_ns(loop_of(watch));
    watch->accepted = false;
    if (status == ST_OK)
        return;
    watch_status_set(&failure, 0, "", error.text);
    if (status == ST_NOMEM)
        end(watch, VIGIL_KUBE_END_MEMORY, error.text, NULL);
    else
        end(watch, VIGIL_KUBE_END_FAILED, error.text, &failure);
}

static void on_timer(struct timer *timer)
{
    struct vigil_kube_watch *watch = CONTAINER_OF(timer, struct vigil_kube_watch, timer);
    STATE_MOVE(watch->state, moves, KUBE_WATCH_RUNNING);
    request(watch);
}

/* After the time that the server asked for, and not within a second. */
static void restart(struct vigil_kube_watch *watch, int retry_after_s)
{
    int64_t asked_s =
        retry_after_s < KUBE_RETRY_AFTER_MAX_S ? retry_after_s : KUBE_RETRY_AFTER_MAX_S;
    int64_t at = loop_now_ns(loop_of(watch)) + (asked_s > 0 ? asked_s * NS_PER_S : 0);
    int64_t earliest = watch->started_ns + RESTART_NS;
    watch_request_cancel(&watch->request);
    STATE_MOVE(watch->state, moves, KUBE_WATCH_WAITING);
    loop_timer_set(loop_of(watch), &watch->timer, at > earliest ? at : earliest);
}

/* -- Events -- */

static void receive_error(struct vigil_kube_watch *watch, struct slice object)
{
    vigil_kube_status status;
    bool known = kube_status_read(object, &status);
    counter_add(&watch->counters.ends_error, 1);
    if (!known)
        kube_status_from_http(500, object, &status);
    if (watch->resumes && !kube_status_is_expired(&status))
        restart(watch, known ? status.retry_after_s : 0);
    else
        fail(watch, &status);
}

static void fail_object(struct vigil_kube_watch *watch, enum status cause)
{
    vigil_kube_status status;
    counter_add(&watch->counters.ends_error, 1);
    if (cause == ST_NOMEM) {
        watch_request_cancel(&watch->request);
        end(watch, VIGIL_KUBE_END_MEMORY, "out of memory", NULL);
        return;
    }
    watch_status_undecodable(&status, "the server sent an object without a name");
    if (watch->resumes)
        restart(watch, 0);
    else
        fail(watch, &status);
}

static void fail_version(struct vigil_kube_watch *watch)
{
    vigil_kube_status status;
    counter_add(&watch->counters.ends_error, 1);
    watch_status_set(&status, 500, "InternalError",
                     "Internal error occurred: the server sent an object without a "
                     "resourceVersion with which the watch could be resumed");
    fail(watch, &status);
}

static void deliver(struct vigil_kube_watch *watch, const vigil_kube_event *event)
{
    call_back(watch, event);
    if (watch->paused)
        watch_request_withhold(&watch->request, true);
}

static void deliver_bookmark(struct vigil_kube_watch *watch, const struct received_event *received)
{
    vigil_kube_event event = {
        .type = VIGIL_KUBE_BOOKMARK,
        .version = bytes_of_slice(received->version),
        .initial_end = received->ends_initial_events,
    };
    counter_add(&watch->counters.bookmarks, 1);
    if (watch->bookmarks)
        deliver(watch, &event);
}

/* False: the watch has failed. */
static bool deliver_object(struct vigil_kube_watch *watch, const struct received_event *received)
{
    static const int types[] = {
        [RECEIVED_ADDED] = VIGIL_KUBE_ADDED,
        [RECEIVED_MODIFIED] = VIGIL_KUBE_MODIFIED,
        [RECEIVED_DELETED] = VIGIL_KUBE_DELETED,
    };
    struct vigil_kube_object *object;
    enum status status = object_new(received->object, &object);
    if (status != ST_OK) {
        fail_object(watch, status);
        return false;
    }
    vigil_kube_event event = {
        .type = types[received->type],
        .object = object,
        .version = bytes_of_slice(received->version),
    };
    counter_add(&watch->counters.events, 1);
    deliver(watch, &event);
    vigil_kube_object_unref(object);
    return true;
}

static void on_event(struct watch_request *from, const struct received_event *event)
{
    struct vigil_kube_watch *watch = CONTAINER_OF(from, struct vigil_kube_watch, request);
    if (event->type == RECEIVED_ERROR) {
        receive_error(watch, event->object);
        return;
    }
    if (watch->resumes && (!event->version.len || event->version.len >= VERSION_BYTES)) {
        fail_version(watch);
        return;
    }
    if (event->type == RECEIVED_BOOKMARK)
        deliver_bookmark(watch, event);
    else if (!deliver_object(watch, event))
        return;
    if (watch->resumes) {
        memcpy(watch->version, event->version.ptr, event->version.len);
        watch->version[event->version.len] = 0;
    }
}

static void on_accepted(struct watch_request *from)
{
    struct vigil_kube_watch *watch = CONTAINER_OF(from, struct vigil_kube_watch, request);
    watch->accepted = true;
    watch->logged = 0;
}

/* -- Ends of requests -- */

static void count_end(struct vigil_kube_watch *watch, enum watch_end end)
{
    if (!watch->accepted)
        return;
    if (end == WATCH_END_COMPLETE)
        counter_add(&watch->counters.ends_complete, 1);
    else if (end == WATCH_END_CUT_OFF)
        counter_add(&watch->counters.ends_cut_off, 1);
    else if (end == WATCH_END_TIMEOUT)
        counter_add(&watch->counters.ends_timeout, 1);
    else
        counter_add(&watch->counters.ends_error, 1);
}

/* Nothing can be expected from another request. */
static bool is_final(const struct watch_result *result)
{
    if (result->end == WATCH_END_NO_MEMORY)
        return true;
    if (result->end != WATCH_END_REFUSED)
        return false;
    int code = result->status->code;
    return code == 401 || code == 403 || kube_status_is_expired(result->status);
}

/* An end that the server did not explain still gets a line. */
static const char *reason_for_people(const struct watch_result *result)
{
    if (result->reason && result->reason[0])
        return result->reason;
    return result->end == WATCH_END_COMPLETE ? "the server ended the watch" : "the watch broke";
}

/* The program does not see a refusal of a request that is repeated, so it is logged, once. */
static void log_refusal(struct vigil_kube_watch *watch, const struct watch_result *result)
{
    char line[VIGIL_KUBE_MESSAGE_BYTES + 256];
    if (result->end != WATCH_END_REFUSED || result->status->code == watch->logged)
        return;
    watch->logged = result->status->code;
    snprintf(line, sizeof(line), "the watch of %.100s tries again: %d %s: %s",
             watch->target.resource, result->status->code, result->status->reason,
             result->status->message);
    driver_log(&watch->kube->driver, VIGIL_LOG_WARN, line);
}

static void on_end(struct watch_request *from, const struct watch_result *result)
{
    static const enum vigil_kube_end ends[] = {
        [WATCH_END_COMPLETE] = VIGIL_KUBE_END_COMPLETE,
        [WATCH_END_CUT_OFF] = VIGIL_KUBE_END_CUT_OFF,
        [WATCH_END_TIMEOUT] = VIGIL_KUBE_END_TIMEOUT,
        [WATCH_END_RETRIES] = VIGIL_KUBE_END_RETRIES,
        [WATCH_END_REFUSED] = VIGIL_KUBE_END_REFUSED,
        [WATCH_END_FAILED] = VIGIL_KUBE_END_FAILED,
        [WATCH_END_UNDECODABLE] = VIGIL_KUBE_END_ERROR,
        [WATCH_END_NO_MEMORY] = VIGIL_KUBE_END_MEMORY,
    };
    struct vigil_kube_watch *watch = CONTAINER_OF(from, struct vigil_kube_watch, request);
    count_end(watch, result->end);
    if (watch->resumes && !is_final(result)) {
        log_refusal(watch, result);
        restart(watch, result->status ? result->status->retry_after_s : 0);
    } else if (result->end == WATCH_END_UNDECODABLE) {
        fail(watch, result->status);
    } else {
        end(watch, ends[result->end], reason_for_people(result), result->status);
    }
}

/* -- Commands -- */

static void end_with_client(struct driver_member *member)
{
    struct vigil_kube_watch *watch = CONTAINER_OF(member, struct vigil_kube_watch, member);
    watch_request_cancel(&watch->request);
    end(watch, VIGIL_KUBE_END_CANCELED, "the client was shut down", NULL);
}

static void start(struct vigil_kube_watch *watch)
{
    struct driver *driver = &watch->kube->driver;
    if (driver->ended) {
        end(watch, VIGIL_KUBE_END_CANCELED, "the client was shut down", NULL);
        return;
    }
    list_push_back(&driver->members, &watch->member.in_driver);
    STATE_MOVE(watch->state, moves, KUBE_WATCH_RUNNING);
    request(watch);
}

static void resume(struct vigil_kube_watch *watch)
{
    watch->paused = false;
    if (watch->state == KUBE_WATCH_ENDING)
        end_after_error(watch);
    else if (watch->state != KUBE_WATCH_ENDED)
        watch_request_withhold(&watch->request, false);
}

static void run_command(struct driver_command *command)
{
    struct vigil_kube_watch *watch = CONTAINER_OF(command, struct vigil_kube_watch, shared.command);
    uint32_t wanted = driver_shared_wanted(&watch->shared);
    if (wanted & WANTS_START)
        start(watch);
    if (wanted & WANTS_RESUME)
        resume(watch);
    if (wanted & WANTS_END)
        release(watch);
    watch_unref(watch);
}

static void want(struct vigil_kube_watch *watch, uint32_t what)
{
    driver_shared_want(&watch->shared, &watch->kube->driver, what);
}

/* -- Public functions -- */

void vigil_kube_watch_options_init(vigil_kube_watch_options *options)
{
    *options = (vigil_kube_watch_options){.size = sizeof(*options), .bookmarks = 1};
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
    size_t bytes = text_bytes(text);
    const char *copy = text ? *at : NULL;
    if (bytes)
        memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

static size_t texts_bytes(const vigil_kube_watch_options *o)
{
    const vigil_kube_target *t = &o->target;
    return text_bytes(t->group) + text_bytes(t->version) + text_bytes(t->resource) +
           text_bytes(t->name_space) + text_bytes(t->name) + text_bytes(o->label_selector) +
           text_bytes(o->field_selector);
}

static void copy_texts(struct vigil_kube_watch *watch, const vigil_kube_watch_options *o)
{
    char *at = watch->texts;
    watch->target.group = put(&at, o->target.group);
    watch->target.version = put(&at, o->target.version);
    watch->target.resource = put(&at, o->target.resource);
    watch->target.name_space = put(&at, o->target.name_space);
    watch->target.name = put(&at, o->target.name);
    watch->params.label_selector = put(&at, o->label_selector);
    watch->params.field_selector = put(&at, o->field_selector);
    at = watch->version;
    watch->params.version = put(&at, o->version ? o->version : "");
    watch->params.target = &watch->target;
}

static struct vigil_kube_watch *watch_create(vigil_kube *kube, const vigil_kube_watch_options *o)
{
    static const struct watch_request_ops ops = {on_accepted, on_event, on_end};
    struct vigil_kube_watch *watch = calloc(1, sizeof(*watch) + texts_bytes(o));
    if (!watch)
        return NULL;
    watch->kube = kube;
    watch->member.end = end_with_client;
    watch->timer.fn = on_timer;
    watch->request.ops = &ops;
    watch->resumes = o->resume;
    watch->bookmarks = o->bookmarks;
    watch->params.bookmarks = o->bookmarks || o->resume;
    watch->params.initial_events = o->initial_events;
    watch->params.protobuf = o->protobuf;
    watch->params.timeout_s = o->timeout_s;
    copy_texts(watch, o);
    driver_shared_init(&watch->shared, 2, run_command);
    driver_ref(&kube->driver);
    return watch;
}

static bool has_version(const vigil_kube_watch_options *o)
{
    return o->version && *o->version && strcmp(o->version, "0") != 0;
}

/* Also that it can be sent, so that the program learns of a wrong name at once. */
static int check_options(const vigil_kube_watch_options *o)
{
    AUTO(buf_fini) struct buf query = {0};
    struct watch_params params = {.target = &o->target, .field_selector = o->field_selector};
    struct error error;
    if (o->timeout_s < 0 || (o->version && strlen(o->version) >= VERSION_BYTES) ||
        (o->resume && (!has_version(o) || o->initial_events)))
        return VIGIL_ERROR_ARGUMENT;
    enum status status = watch_query_append(&query, &params, &error);
    if (status != ST_OK)
        return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
    return VIGIL_OK;
}

int vigil_kube_watch_new(vigil_kube *kube, const vigil_kube_watch_options *options,
                         vigil_kube_watch_fn fn, void *user, vigil_kube_watch **ret_watch)
{
    vigil_kube_watch_options complete;
    vigil_kube_watch_options_init(&complete);
    if (!fn || options->size == 0 || options->size > sizeof(complete))
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    int code = check_options(&complete);
    if (code != VIGIL_OK)
        return code;
    struct vigil_kube_watch *watch = watch_create(kube, &complete);
    if (!watch)
        return VIGIL_ERROR_MEMORY;
    watch->fn = fn;
    watch->user = user;
    *ret_watch = watch;
    want(watch, WANTS_START);
    return VIGIL_OK;
}

void vigil_kube_watch_free(vigil_kube_watch *watch)
{
    if (!watch)
        return;
    driver_drop(&watch->kube->driver, &watch->object);
    want(watch, WANTS_END);
    watch_unref(watch);
}

void vigil_kube_watch_resume(vigil_kube_watch *watch)
{
    want(watch, WANTS_RESUME);
}

void vigil_kube_watch_get_stats(const vigil_kube_watch *watch, vigil_kube_watch_stats *ret_stats,
                                size_t size)
{
    const struct kube_watch_counters *counters = &watch->counters;
    vigil_kube_watch_stats stats = {
        .events = counter_get(&counters->events),
        .bookmarks = counter_get(&counters->bookmarks),
        .bytes = counter_get(&watch->request.bytes),
        .requests = counter_get(&watch->request.sent),
        .retries = counter_get(&watch->request.retried),
        .ends_complete = counter_get(&counters->ends_complete),
        .ends_cut_off = counter_get(&counters->ends_cut_off),
        .ends_timeout = counter_get(&counters->ends_timeout),
        .ends_error = counter_get(&counters->ends_error),
    };
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &stats, size_min(size, sizeof(stats)));
}
