/* GET of one object: always the newest, which is as fresh as any resourceVersion asked for. */
#include "kube/api/call.h"
#include "kube/api/shape.h"

static bool make_shape(struct kube_call *call, const struct kube_kv *kv, struct slice *ret_json)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_object object;
    struct kube_shaping shaping = kube_shaping_of(call);
    if (kube_object_look(kv->value, &object) != ST_OK)
        return kube_call_object(call, kv->value, kv->mod_revision, ret_json);
    enum status status = kube_shape_single(&shaping, &object, kv->mod_revision, true, &text);
    if (status == ST_OK)
        status = arena_dup(&call->arena, buf_slice(&text), ret_json);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}

static bool make_answer(struct kube_call *call, struct slice *ret_json)
{
    struct slice field;
    if (call->range.op.status != ST_OK)
        return kube_fail_engine(&call->status, call->range.op.status);
    if (!engine_range_next(&call->range, &field))
        return kube_fail_not_found(&call->status, slice_from_text(call->kind->group),
                                   slice_from_text(call->kind->plural), call->path.name);
    struct kube_kv kv = kube_kv_of(field);
    if (call->accept.shape == KUBE_WHOLE)
        return kube_call_object(call, kv.value, kv.mod_revision, ret_json);
    return make_shape(call, &kv, ret_json);
}

static void on_done(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct slice json;
    bool found = make_answer(call, &json);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (found)
        kube_call_respond(call, 200, json);
    else
        kube_call_fail(call);
}

void kube_get(struct kube_call *call)
{
    struct pb_range_request *request = arena_calloc(&call->arena, 1, sizeof(*request));
    if (!request) {
        kube_fail_engine(&call->status, ST_NOMEM);
        kube_call_fail(call);
        return;
    }
    if (!kube_call_key(call, &request->key))
        return;
    kube_call_range(call, request, on_done);
}
