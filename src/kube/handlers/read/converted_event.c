#include "kube/handlers/read/converted_event.h"

#include "base/memory/budget.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "kube/call/conversion.h"
#include "kube/call/format.h"
#include "kube/types/storage.h"

/* The object before or after an event. */
struct side {
    struct kube_object object;
    struct buf converted; /* its bytes, if it had to be converted */
    bool matches;
};

static void side_fini(struct side *side)
{
    buf_fini(&side->converted);
}

/* Without a selector only a deletion needs the object before it. */
static bool needs_before(const struct kube_selection *selection, bool created, bool tombstone)
{
    return !created && (tombstone || selection->selects);
}

struct kube_event_pair kube_event_pair_of(const struct kube_selection *selection,
                                          struct watch_cursor *cursor,
                                          const struct watch_event *event, int64_t revision)
{
    struct kube_event_pair pair = {.created = event->created,
                                   .tombstone = event->tombstone,
                                   .key = event->key,
                                   .revision = revision};
    if (!event->tombstone)
        pair.after = kube_kv_of(event->field);
    if (needs_before(selection, event->created, event->tombstone)) {
        struct slice prev = watch_cursor_prev(cursor, event);
        if (prev.len)
            pair.before = kube_kv_of(prev);
    }
    return pair;
}

static enum status look(const struct kube_event_form *form, struct kube_kv kv, struct side *side)
{
    struct slice json;
    if (!kv.value.len)
        return ST_MALFORMED;
    TRY(kube_conversion_json(form->shaping.kind, kv.value, kv.mod_revision, &side->converted,
                             &json));
    /* An object that cannot match is not parsed in full. */
    bool may_match = kube_selection_may_match(form->selection, json);
    TRY((may_match ? kube_object_parse : kube_object_parse_head)(json, &side->object));
    side->matches = may_match && kube_selection_matches(form->selection, &side->object);
    return ST_OK;
}

enum status kube_event_write(const struct kube_event_form *form, enum kube_event_type change,
                             const struct kube_object *object, int64_t revision, struct buf *to)
{
    AUTO(buf_fini) struct buf json = {0};
    if (form->protobuf) {
        TRY(kube_shape_single(&form->shaping, object, revision, false, &json));
        return kube_format_event(kube_event_type_name(change), buf_slice(&json), to);
    }
    TRY(buf_append(to, kube_event_head(change)));
    TRY(kube_shape_single(&form->shaping, object, revision, form->columns, to));
    return buf_append(to, kube_event_tail());
}

static enum status show(const struct kube_event_form *form, const struct kube_event_pair *pair,
                        struct kube_converted_event *converted)
{
    AUTO(side_fini) struct side before = {.matches = !pair->created}, after = {0};
    if (!pair->tombstone)
        TRY(look(form, pair->after, &after));
    if (needs_before(form->selection, pair->created, pair->tombstone))
        TRY(look(form, pair->before, &before));
    /* An object that no longer matches the selection is gone for this watch, and one that begins to
     * match is new. */
    if (after.matches)
        converted->change =
            pair->created || !before.matches ? KUBE_EVENT_ADDED : KUBE_EVENT_MODIFIED;
    else
        converted->change = before.matches ? KUBE_EVENT_DELETED : KUBE_EVENT_NONE;
    if (converted->change == KUBE_EVENT_NONE)
        return ST_OK;
    const struct side *told = converted->change == KUBE_EVENT_DELETED ? &before : &after;
    enum status status =
        kube_event_write(form, converted->change, &told->object, pair->revision, &converted->made);
    converted->mistyped = status != ST_OK && status != ST_NOMEM;
    return converted->mistyped ? ST_OK : status;
}

void kube_event_convert(const struct kube_event_form *form, const struct kube_event_pair *pair,
                        struct kube_converted_event *ret_shown)
{
    *ret_shown = (struct kube_converted_event){0};
    ret_shown->status = show(form, pair, ret_shown);
}

void kube_converted_event_fini(struct kube_converted_event *converted)
{
    buf_fini(&converted->made);
}

/* -- On the worker -- */

bool kube_converted_event_is_large(const struct kube_api *api, const struct kube_event_pair *pair)
{
    return api->config->worker &&
           pair->after.value.len + pair->before.value.len > KUBE_WORK_BYTES_MAX;
}

/* The buffer has room. */
static void copy(struct buf *bytes, struct slice *slice)
{
    uint8_t *at = bytes->ptr + bytes->len;
    slice_copy(at, *slice);
    bytes->len += slice->len;
    *slice = slice_of(at, slice->len);
}

static void run(struct worker_job *worker_job)
{
    struct kube_converted_event_job *job =
        CONTAINER_OF(worker_job, struct kube_converted_event_job, job.worker);
    turn_work_copy("converting an event of", slice_from_text(job->form.shaping.kind->plural),
                   job->pair.key);
    kube_event_convert(&job->form, &job->pair, &job->converted);
}

/* If the watch has ended, the job may not have run. */
static void back(struct kube_offload_job *offload_job)
{
    struct kube_converted_event_job *job =
        CONTAINER_OF(offload_job, struct kube_converted_event_job, job);
    job->api->under_way--;
    job->done(job);
}

struct kube_converted_event_job *kube_converted_event_send(
    struct kube_api *api, struct http_exchange *exchange, const struct kube_event_form *form,
    const struct kube_event_pair *pair, void *owner,
    void (*done)(struct kube_converted_event_job *job))
{
    struct account *account = http_exchange_account(exchange);
    struct kube_converted_event_job *job = xcalloc(1, sizeof(*job));
    *job = (struct kube_converted_event_job){
        .api = api,
        .form = *form,
        .pair = *pair,
        .account = account,
        .owner = owner,
        .done = done,
        /* An answer that has begun cannot be refused. A watch has one job at a time. */
        .job = {.back = back, .worker = {.run = run, .must_run = true}},
    };
    account_ref(account);
    /* The cursor may free the event while the worker converts it, so the job has a copy. */
    struct kube_event_pair *own = &job->pair;
    job->bytes.capacity = own->after.value.len + own->before.value.len + own->key.len;
    job->bytes.ptr = xmalloc(job->bytes.capacity);
    copy(&job->bytes, &own->after.value);
    copy(&job->bytes, &own->before.value);
    copy(&job->bytes, &own->key);
    own->after.key = own->before.key = own->key;
    account_charge_anyway(account, job->bytes.capacity);
    api->under_way++;
    enum status status = kube_offload_send(
        &api->offload, wire_peer_key(http_exchange_peer(exchange)), account, &job->job);
    assert(status == ST_OK);
    return job;
}

void kube_converted_event_job_free(struct kube_converted_event_job *job)
{
    kube_converted_event_fini(&job->converted);
    account_buf_fini(job->account, &job->bytes);
    account_unref(job->account);
    free(job);
}
