#include "base/log/log.h"
#include "base/memory/budget.h"
#include "kube/handlers/read/watch_private.h"
#include "wire/http/exchange.h"

static struct kube_event_form form_of(const struct kube_watch *w)
{
    return (struct kube_event_form){.shaping = w->shaping,
                                    .selection = w->selection,
                                    .protobuf = w->protobuf,
                                    .columns = !w->columns_sent};
}

/* An object that does not fit its protobuf type is treated as a value that is not an object. */
static enum status report_mistyped(struct kube_watch *w, int64_t revision)
{
    struct kube_status status;
    w->made.len = 0;
    log_warn("a stored object is not of its type", LOG_I64("revision", revision));
    if (w->api->config->skip_undecodable)
        return ST_OK;
    kube_fail(&status, KUBE_INTERNAL_ERROR,
              "Internal error occurred: the stored object cannot be encoded in protobuf");
    return kube_watch_fail(w, &status);
}

enum status kube_watch_make(struct kube_watch *w, enum kube_event_type change,
                            const struct kube_object *object, int64_t revision)
{
    struct kube_event_form form = form_of(w);
    enum status made = kube_event_write(&form, change, object, revision, &w->made);
    if (made != ST_OK && made != ST_NOMEM)
        return report_mistyped(w, revision);
    w->columns_sent |= made == ST_OK && !w->protobuf;
    return made;
}

enum status kube_watch_undecodable(struct kube_watch *w, struct slice key, int64_t revision,
                                   bool deleted, enum status looked)
{
    struct kube_status status;
    if (!kube_is_undecodable(looked))
        return kube_watch_fail_engine(w, looked);
    bool skip = w->api->config->skip_undecodable;
    log_warn("a stored value is not a JSON object", LOG_SLICE("key", key),
             LOG_I64("revision", revision), LOG_BOOL("skipped", skip));
    kube_count_total(&w->api->counter, skip ? KUBE_TOTAL_SKIPPED : KUBE_TOTAL_UNDECODABLE, 1);
    if (skip)
        return ST_OK;
    if (deleted)
        kube_fail(&status, KUBE_STORAGE_READ_ERROR,
                  "saw a DELETED event, but object data is corrupt");
    else
        kube_fail(&status, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: what is stored under %.*s is not a JSON object",
                  SLICE_ARGS(key));
    return kube_watch_fail(w, &status);
}

static enum status send_converted(struct kube_watch *w, const struct kube_event_pair *pair,
                                  struct kube_converted_event *converted)
{
    if (converted->status != ST_OK)
        return kube_watch_undecodable(w, pair->key, pair->revision, pair->tombstone,
                                      converted->status);
    if (converted->change == KUBE_EVENT_NONE)
        return ST_OK;
    kube_count(&w->api->counter, w->shaping.kind, KUBE_COUNT_EVENTS, 1);
    if (converted->mistyped)
        return report_mistyped(w, pair->revision);
    w->columns_sent |= !w->protobuf;
    w->made = converted->made;
    converted->made = (struct buf){0};
    return ST_OK;
}

/* What is sent is held, and charged, until the client reads it. */
static void on_shown(struct kube_converted_event_job *job)
{
    struct kube_watch *w = job->owner;
    w->away = NULL;
    /* The watch has ended meanwhile, and was kept only for the worker. */
    if (!w->exchange)
        kube_watch_free(w);
    else if (send_converted(w, &job->pair, &job->converted) == ST_OK &&
             account_follow(job->account, &w->made, &w->charged) == ST_OK)
        http_wake(w->exchange);
    else
        http_abort(w->exchange);
    kube_converted_event_job_free(job);
}

enum status kube_watch_show(struct kube_watch *w, const struct kube_event_pair *pair)
{
    struct kube_event_form form = form_of(w);
    AUTO(kube_converted_event_fini) struct kube_converted_event converted = {0};
    if (kube_converted_event_is_large(w->api, pair)) {
        w->away = kube_converted_event_send(w->api, w->exchange, &form, pair, w, on_shown);
        return ST_AGAIN;
    }
    w->api->search_budget->looked =
        KUBE_WATCH_CONVERTED * (pair->after.value.len + pair->before.value.len);
    kube_event_convert(&form, pair, &converted);
    return send_converted(w, pair, &converted);
}
