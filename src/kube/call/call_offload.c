#include "kube/call/call_offload.h"

#include "base/metric/turn.h"
#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/types/object/kind_rules.h"
#include "wire/http/certificate.h"

/* -- Copying the request -- */

static bool dup_all(struct arena *arena, struct slice *const slices[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (arena_dup(arena, *slices[i], slices[i]) != ST_OK)
            return false;
    return true;
}

static bool dup_fields(struct arena *arena, struct http_request *copy)
{
    struct http_field *fields = arena_calloc(arena, copy->field_count + 1, sizeof(*fields));
    if (!fields)
        return false;
    for (size_t i = 0; i < copy->field_count; i++) {
        struct slice *const slices[] = {&fields[i].name, &fields[i].value};
        fields[i] = copy->fields[i];
        if (!dup_all(arena, slices, COUNT_OF(slices)))
            return false;
    }
    copy->fields = fields;
    return true;
}

static bool dup_certificate(struct arena *arena, struct http_request *copy)
{
    struct slice name, certificate;
    if (copy->peer_name) {
        if (arena_dup(arena, slice_of(copy->peer_name, strlen(copy->peer_name) + 1), &name) !=
            ST_OK)
            return false;
        copy->peer_name = (const char *)name.ptr;
    }
    if (copy->certificate) {
        size_t bytes = sizeof(*copy->certificate) + copy->certificate->groups_bytes +
                       copy->certificate->uid_bytes;
        if (arena_dup(arena, slice_of(copy->certificate, bytes), &certificate) != ST_OK)
            return false;
        copy->certificate = (const struct http_certificate *)certificate.ptr;
    }
    return true;
}

bool kube_call_keep_request(struct kube_call *call)
{
    if (call->work.keeps_request)
        return true;
    /* The connection may end and free the request while the worker still reads it. */
    struct http_request *copy = arena_alloc(&call->arena, sizeof(*copy));
    if (!copy)
        return false;
    *copy = *call->request;
    struct slice *const slices[] = {&copy->method, &copy->target, &copy->path,
                                    &copy->query,  &copy->host,   &copy->body};
    if (!dup_all(&call->arena, slices, COUNT_OF(slices)) || !dup_fields(&call->arena, copy) ||
        !dup_certificate(&call->arena, copy))
        return false;
    call->request = copy;
    call->work.keeps_request = true;
    /* Path and query refer to the request that they were parsed from, so they are parsed again from
     * the copy if they were parsed already. */
    return !call->kind ||
           (kube_path_parse(&call->arena, copy->path, &call->path) == ST_OK &&
            kube_query_parse(&call->arena, copy->query, &call->query, &call->status));
}

/* -- To the worker and back -- */

static void run(struct worker_job *job)
{
    struct kube_call *call = CONTAINER_OF(job, struct kube_call, work.job.worker);
    turn_work_copy("working on", call->request->method, call->request->path);
    call->work.step(call);
}

static void come_back(struct kube_call *call)
{
    call->work.away = false;
    kube_kinds_unref(call->work.kinds);
    call->work.kinds = NULL;
}

static void refuse(struct kube_call *call)
{
    kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS,
              "too many large requests are under way, please try again");
    call->status.retry_after_s = 1;
    kube_call_fail(call);
}

static void on_back(struct kube_offload_job *job)
{
    struct kube_call *call = CONTAINER_OF(job, struct kube_call, work.job);
    come_back(call);
    if (!kube_call_done(call))
        return;
    turn_work_copy("answering", call->request->method, call->request->path);
    /* A worker with too much to do gives the call back without having run its step. */
    if (call->work.job.worker.status == ST_OK)
        call->work.next(call);
    else
        refuse(call);
    (void)turn_work_done();
}

/* The names of a definition that is written are compared with those of all others. */
static size_t weigh_names(const struct kube_call *call)
{
    enum { BYTES_PER_DEFINITION = 64 };
    size_t count;
    if (!(call->rules & KUBE_IS_DEFINITION))
        return 0;
    (void)kube_kinds_definitions(kube_call_kinds(call), &count);
    return count * BYTES_PER_DEFINITION;
}

/* The number of bytes of a built-in kind that take as long. */
static size_t weigh(const struct kube_call *call, size_t bytes)
{
    if (!bytes) /* it must stay on its thread, or there is nothing to do */
        return 0;
    bytes += weigh_names(call);
    struct kube_custom *custom = call->kind ? kube_custom_of(call->kind) : NULL;
    if (!custom || pool_schema_work(custom->schema))
        return bytes;
    const struct schema *schema = kube_custom_schema(custom);
    return schema ? bytes * (1 + schema->effort / KUBE_WORK_EFFORT) : bytes;
}

bool kube_call_is_large(const struct kube_call *call, size_t bytes)
{
    return call->api->offload.worker && weigh(call, bytes) > KUBE_WORK_BYTES_MAX;
}

enum status kube_call_send(struct kube_call *call, void (*step)(struct kube_call *call))
{
    struct kube_work *work = &call->work;
    if (!kube_call_keep_request(call))
        return ST_NOMEM;
    /* After a write, or when the answer has begun, a client could not interpret a failure. */
    work->job = (struct kube_offload_job){
        .back = on_back, .worker = {.run = run, .must_run = call->written || call->code}};
    work->step = step;
    work->next = NULL;
    work->kinds = kube_kinds_ref(kube_registry_kinds(call->api->registry));
    work->away = true;
    enum status status = kube_offload_send(&call->api->offload, wire_peer_key(call->request->peer),
                                           call->arena.account, &work->job);
    if (status == ST_OK)
        kube_call_hold(call);
    else
        come_back(call);
    return status;
}

void kube_call_work(struct kube_call *call, size_t bytes, void (*step)(struct kube_call *call))
{
    if (!kube_call_is_large(call, bytes)) {
        step(call);
        return;
    }
    enum status status = kube_call_send(call, step);
    if (status == ST_REQUEST_TOO_MANY_REQUESTS) {
        refuse(call);
    } else if (status != ST_OK) {
        kube_fail_engine(&call->status, status);
        kube_call_fail(call);
    }
}
