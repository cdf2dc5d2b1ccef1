/* GET of one object: its newest version, once the store has the requested revision. */
#include "kube/call/call.h"
#include "kube/call/call_conversion.h"
#include "kube/call/call_offload.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/read/read.h"

struct get_state {
    struct kube_revision_wait fresh;
    struct pb_range_request request;
    struct slice value; /* a copy for the worker */
    int64_t revision;
};

static void respond(struct kube_call *call)
{
    const struct get_state *get = call->handler.get;
    struct slice json;
    if (kube_call_object(call, get->value, get->revision, &json))
        kube_call_respond(call, 200, json);
    else
        kube_call_fail(call);
}

static void on_converted(struct kube_call *call, struct slice converted)
{
    struct get_state *get = call->handler.get;
    get->value = converted;
    call->converted = true;
    kube_call_work(call, kube_call_answer_work(call, converted.len, get->revision), respond);
}

/* The stored bytes are valid as long as the range is open. */
static bool find(struct kube_call *call)
{
    struct get_state *get = call->handler.get;
    struct slice field;
    if (call->range.op.status != ST_OK)
        return kube_call_set_engine(call, call->range.op.status);
    if (!engine_range_next(&call->range, &field))
        return kube_call_not_found(call);
    struct kube_kv kv = kube_kv_of(field);
    get->value = kv.value;
    get->revision = kv.mod_revision;
    return true;
}

static void on_done(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct get_state *get = call->handler.get;
    struct slice json;
    bool found = find(call);
    bool awaits = found && kube_conversion_awaits(call->kind, get->value);
    size_t work = found ? kube_call_answer_work(call, get->value.len, get->revision) : 0;
    /* The worker or a webhook converts the object later, when the range and its bytes are gone. */
    if (work || awaits)
        found = arena_dup(&call->arena, get->value, &get->value) == ST_OK ||
                kube_fail_engine(&call->status, ST_NOMEM);
    else
        found = found && kube_call_object(call, get->value, get->revision, &json);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (found && awaits)
        kube_call_convert(call, kube_custom_of(call->kind), get->value, get->revision, &call->arena,
                          on_converted);
    else if (found && work)
        kube_call_work(call, work, respond);
    else if (found)
        kube_call_respond(call, 200, json);
    else
        kube_call_fail(call);
}

/* -- Which revision -- */

static void on_end(struct kube_call *call)
{
    kube_revision_wait_cancel(&call->handler.get->fresh);
}

static void on_fresh(struct kube_call *call, bool fresh)
{
    struct get_state *get = call->handler.get;
    if (fresh)
        kube_call_range(call, &get->request, on_done);
    else
        kube_call_fail(call);
}

static bool parse_revision(struct kube_call *call, int64_t *ret_revision)
{
    struct slice text = call->query.resource_version;
    const char *wrong = kube_revision_parse(text, ret_revision);
    return !wrong ||
           kube_fail(&call->status, KUBE_UNKNOWN,
                     "resourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: parsing "
                     "\"%.*s\": %s",
                     SLICE_ARGS(text), SLICE_ARGS(text), wrong);
}

void kube_get(struct kube_call *call)
{
    struct get_state *get = arena_calloc(&call->arena, 1, sizeof(*get));
    int64_t revision;
    if (!get)
        kube_fail_engine(&call->status, ST_NOMEM);
    if (!get || !parse_revision(call, &revision)) {
        kube_call_fail(call);
        return;
    }
    if (!kube_call_key(call, &get->request.key))
        return;
    get->request.serializable = call->query.resource_version.len; /* not older than that */
    call->handler.get = get;
    call->on_end = on_end;
    kube_revision_wait_start(&get->fresh, call, revision, on_fresh);
}
