/*
 * For tests: a server that answers the first watch with the first step of a script, the second one
 * with the second, and all others with the last; and a watch that writes a line for everything that
 * it delivers:
 *
 *     struct watch_test t;
 *     watch_test_init(&t, SIM_HTTP1, (struct watch_step[]){{.text = EVENT("ADDED", "a", "2")}}, 1);
 *     watch_test_watch(&t, "1");
 *     watch_test_expect(&t, "ADDED a 2\n" "ENDED complete\n");
 *     watch_test_fini(&t);
 */
#ifndef VIGIL_KUBECLIENT_WATCH_WATCH_FIXTURE_TEST_H
#define VIGIL_KUBECLIENT_WATCH_WATCH_FIXTURE_TEST_H

#include "kubeclient/call/kube_server_sim_test.h"

#include <vigil/kube/watch.h>

#define METADATA(name, version) \
    "\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}"
#define EVENT(type, name, version) \
    "{\"type\":\"" type "\",\"object\":{\"kind\":\"Pod\"," METADATA(name, version) "}}\n"
#define BOOKMARK(version)                                                \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{" \
    "\"resourceVersion\":\"" version "\"}}}\n"
#define STATUS_EVENT(code, reason, details)                                                      \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason \
    "\",\"details\":{" details "}}}\n"

/* What the server does with one request. */
struct watch_step {
    const char *text;  /* the body */
    size_t text_bytes; /* if it is longer than a literal; 0: all of the text */
    unsigned code;     /* 0: 200 */
    const char *type;  /* type of the content; NULL: a watch in JSON; "": none */
    const char *retry_after;
    bool stays;      /* open after the text */
    int64_t ends_ns; /* while it stays: ends after this time; 0: never */
    bool breaks;     /* within the body; without a text, instead of an answer */
};

enum { WATCH_LOG_BYTES = 1 << 16 };

struct watch_test {
    struct kube_world w;
    const struct watch_step *steps;
    size_t step_count;
    vigil_kube_watch_options options;
    vigil_kube_watch *watch; /* NULL: it was freed, or could not be made */
    int code;                /* result of vigil_kube_watch_new */
    char log[WATCH_LOG_BYTES];
    size_t log_len;
    size_t pause_every; /* the number of events after which the callback pauses; 0: never */
    size_t free_at;     /* the number of the event within which the watch is freed; 0: none */
    size_t delivered;
    unsigned ends;
    vigil_kube_status status; /* the last one */
    char reason[1100];        /* reason of the end */
    void (*on_event)(struct watch_test *t, const vigil_kube_event *event);
};

/* -- The server -- */

static inline void watch_step_refuse(struct sim_reply *reply, const struct watch_step *step)
{
    if (step->text)
        sim_reply_whole(reply, step->code, step->type ? step->type : "application/json",
                        slice_from_text(step->text));
    else
        sim_reply_whole(reply, step->code, "text/plain", SLICE_EMPTY);
}

static inline void watch_step_end(struct sim_reply *reply, void *ctx)
{
    (void)ctx;
    sim_reply_end(reply);
}

/* All connections break, and the server is there again at once. */
static inline void watch_step_restart(struct sim_reply *reply, void *ctx)
{
    struct kube_server_sim *server = reply->server;
    (void)ctx;
    kube_server_stop(server);
    kube_server_start(server);
}

static inline void watch_test_answer(struct sim_reply *reply, const struct sim_request *request,
                                     void *ctx)
{
    struct watch_test *t = ctx;
    const struct watch_step *step = &t->steps[size_min(reply->number, t->step_count - 1)];
    (void)request;
    if (step->breaks && !step->text) {
        sim_reply_after(reply, NS_PER_MS, watch_step_restart, NULL);
        return;
    }
    if (step->retry_after)
        sim_reply_field(reply, "Retry-After", step->retry_after);
    if (step->code >= 300) {
        watch_step_refuse(reply, step);
        return;
    }
    sim_reply_begin(reply, step->code ? step->code : 200,
                    step->type ? step->type : "application/json;stream=watch");
    size_t bytes = step->text ? step->text_bytes ? step->text_bytes : strlen(step->text) : 0;
    sim_reply_write(reply, slice_of(step->text, bytes));
    if (step->breaks)
        sim_reply_break(reply);
    else if (!step->stays)
        sim_reply_end(reply);
    else if (step->ends_ns)
        sim_reply_after(reply, step->ends_ns, watch_step_end, NULL);
}

/* An event whose object has this many bytes more than it needs. */
static inline void watch_test_append(struct buf *to, const char *name, const char *version,
                                     size_t bytes)
{
    assert_int_equal(
        buf_append_format(to,
                          "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"%s\","
                          "\"resourceVersion\":\"%s\"},\"data\":\"",
                          name, version),
        ST_OK);
    assert_int_equal(buf_reserve(to, bytes), ST_OK);
    memset(to->ptr + to->len, 'x', bytes);
    to->len += bytes;
    assert_int_equal(buf_append_text(to, "\"}}\n"), ST_OK);
}

/* -- The watch -- */

static inline void watch_test_log(struct watch_test *t, const char *format, ...) PRINTF_LIKE(2, 3);

static inline void watch_test_log(struct watch_test *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->log + t->log_len, sizeof(t->log) - t->log_len, format, arguments);
    va_end(arguments);
    assert_true(n >= 0);
    t->log_len = size_min(t->log_len + (size_t)n, sizeof(t->log) - 1);
}

static inline const char *watch_test_name(int end)
{
    static const char *const names[] = {
        [VIGIL_KUBE_END_COMPLETE] = "complete", [VIGIL_KUBE_END_CUT_OFF] = "cut off",
        [VIGIL_KUBE_END_TIMEOUT] = "timeout",   [VIGIL_KUBE_END_RETRIES] = "retries",
        [VIGIL_KUBE_END_REFUSED] = "refused",   [VIGIL_KUBE_END_FAILED] = "failed",
        [VIGIL_KUBE_END_ERROR] = "error",       [VIGIL_KUBE_END_CANCELED] = "canceled",
        [VIGIL_KUBE_END_MEMORY] = "memory",
    };
    assert_true(end >= 0 && (size_t)end < COUNT_OF(names));
    return names[end];
}

static inline void watch_test_note_end(struct watch_test *t, const vigil_kube_event *event)
{
    t->ends++;
    snprintf(t->reason, sizeof(t->reason), "%s", event->reason);
    watch_test_log(t, "ENDED %s", watch_test_name(event->end));
    if (event->status)
        watch_test_log(t, " %d", event->status->code);
    watch_test_log(t, "\n");
}

static inline void watch_test_note(struct watch_test *t, const vigil_kube_event *event)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED"};
    assert_int_equal(t->ends, 0);
    if (event->status)
        t->status = *event->status;
    switch ((vigil_kube_event_type)event->type) {
    case VIGIL_KUBE_BOOKMARK:
        watch_test_log(t, "BOOKMARK %.*s%s\n", (int)event->version.size,
                       (const char *)event->version.data, event->initial_end ? " end" : "");
        break;
    case VIGIL_KUBE_ERROR:
        watch_test_log(t, "ERROR %d %s\n", event->status->code, event->status->reason);
        break;
    case VIGIL_KUBE_ENDED:
        watch_test_note_end(t, event);
        break;
    default:
        assert_non_null(event->object);
        watch_test_log(t, "%s %.*s %.*s\n", types[event->type],
                       (int)vigil_kube_object_key(event->object).size,
                       (const char *)vigil_kube_object_key(event->object).data,
                       (int)event->version.size, (const char *)event->version.data);
    }
}

static inline int watch_test_on_event(vigil_kube_watch *watch, const vigil_kube_event *event,
                                      void *user)
{
    struct watch_test *t = user;
    assert_ptr_equal(watch, t->watch);
    t->delivered++;
    watch_test_note(t, event);
    if (t->on_event)
        t->on_event(t, event);
    if (t->free_at == t->delivered) {
        vigil_kube_watch_free(t->watch);
        t->watch = NULL;
    }
    return t->pause_every && t->delivered % t->pause_every == 0 ? VIGIL_KUBE_PAUSE
                                                                : VIGIL_KUBE_CONTINUE;
}

/* -- Both -- */

static inline void watch_test_prepare(struct watch_test *t, enum sim_protocol protocol,
                                      const struct watch_step *steps, size_t step_count)
{
    memset(t, 0, sizeof(*t));
    t->steps = steps;
    t->step_count = step_count;
    kube_world_init(&t->w, protocol, NULL);
    kube_server_route(&t->w.server, "GET", "/api/v1/*", watch_test_answer, t);
    vigil_kube_watch_options_init(&t->options);
    t->options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
}

static inline void watch_test_init(struct watch_test *t, enum sim_protocol protocol,
                                   const struct watch_step *steps, size_t step_count)
{
    watch_test_prepare(t, protocol, steps, step_count);
    assert_true(kube_world_start(&t->w));
}

static inline void watch_test_watch(struct watch_test *t, const char *version)
{
    t->options.version = version;
    faulty_memory_begin();
    t->code = vigil_kube_watch_new(t->w.kube, &t->options, watch_test_on_event, t, &t->watch);
    faulty_memory_end();
    assert_int_equal(t->delivered, 0);
}

static inline void watch_test_run(struct watch_test *t)
{
    kube_world_run(&t->w, 100 * NS_PER_S);
}

/* Watches and waits for a long time. */
static inline void watch_test_expect(struct watch_test *t, const char *log)
{
    assert_int_equal(t->code, VIGIL_OK);
    watch_test_run(t);
    assert_string_equal(t->log, log);
}

static inline vigil_kube_watch_stats watch_test_stats(const struct watch_test *t)
{
    vigil_kube_watch_stats stats;
    vigil_kube_watch_get_stats(t->watch, &stats, sizeof(stats));
    return stats;
}

static inline void watch_test_fini(struct watch_test *t)
{
    vigil_kube_watch_free(t->watch);
    kube_world_fini(&t->w);
}

#endif
