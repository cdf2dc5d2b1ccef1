#include "kube/handlers/read/converted_range.h"

#include "kube/call/deadline.h"
#include "kube/call/operation.h"
#include "kube/types/object/object.h"
#include "wire/peer/peer.h"

static void close_range(struct kube_converted_range *r)
{
    if (*r->open)
        engine_range_close(&r->call->range);
    *r->open = false;
}

/* -- A batch -- */

static enum status keep_from(struct kube_converted_range *r, struct slice key)
{
    buf_reset(&r->from, SIZE_MAX);
    TRY(buf_append(&r->from, key));
    return buf_append(&r->from, slice_of("", 1));
}

static enum status read_some(struct kube_converted_range *r)
{
    struct engine_range *range = &r->call->range;
    struct slice field;
    while (!kube_conversion_batch_is_full(r->batch) && engine_range_next(range, &field)) {
        struct kube_kv kv = kube_kv_of(field);
        r->read++;
        r->left--;
        TRY(keep_from(r, kv.key));
        enum status status = kube_conversion_batch_add(r->batch, kv);
        if (kube_is_undecodable(status)) {
            r->undecodable++;
            r->bad = slice_sub(buf_slice(&r->from), 0, kv.key.len);
            r->bad_revision = kv.mod_revision;
            status = r->call->api->config->skip_undecodable ? ST_OK : ST_MALFORMED;
        }
        TRY(status);
    }
    return range->op.status;
}

static void on_converted(struct kube_conversion_batch *batch)
{
    struct kube_converted_range *r = kube_conversion_batch_owner(batch);
    enum status status = ST_OK;
    r->waits = false;
    http_need_peer(r->call->exchange, false);
    if (kube_conversion_batch_status(batch)->reason != KUBE_OK) {
        if (kube_call_time_left_ns(r->call))
            (void)kube_conversion_batch_fail(batch, &r->call->arena, &r->call->status);
        else
            (void)kube_call_fail_late(r->call, &r->call->status);
        status = ST_CANCELED;
    }
    r->ready(r, status);
}

static void convert_some(struct kube_converted_range *r)
{
    struct kube_call *call = r->call;
    int64_t patience_ns = kube_call_patience_ns(call);
    r->batch = kube_conversion_batch_new(call->api, kube_custom_of(call->kind), call->arena.account,
                                         wire_peer_key(call->request->peer));
    enum status status = read_some(r);
    bool is_last = !kube_conversion_batch_count(r->batch);
    r->left = is_last ? 0 : r->left;
    if (status == ST_OK && !patience_ns && kube_conversion_batch_awaits(r->batch)) {
        (void)kube_call_fail_late(call, &call->status);
        status = ST_CANCELED;
    }
    /* Objects in the wanted version are ready in the next turn. */
    if (status != ST_OK || is_last || kube_conversion_batch_awaits(r->batch))
        close_range(r);
    if (status != ST_OK) {
        r->ready(r, status);
        return;
    }
    http_need_peer(call->exchange, true);
    kube_conversion_batch_limit(r->batch, patience_ns);
    kube_conversion_batch_start(r->batch, on_converted, r);
}

/* -- The range -- */

void kube_converted_range_opened(struct kube_converted_range *r, struct engine_op *op)
{
    struct kube_call *call = r->call;
    enum status status = op->status;
    *r->open = status == ST_OK;
    if (!call->exchange)
        close_range(r); /* the client has gone */
    if (!kube_call_done(call))
        return;
    if (status == ST_OK) {
        convert_some(r);
    } else {
        r->waits = false;
        r->ready(r, status);
    }
}

void kube_converted_range_next(struct kube_converted_range *r)
{
    assert(!r->waits && !r->batch);
    r->waits = true;
    if (*r->open || !r->left) {
        convert_some(r);
        return;
    }
    r->request->key = buf_slice(&r->from);
    r->request->revision = r->revision;
    if (r->request->limit)
        r->request->limit = r->left;
    kube_call_range(r->call, r->request, r->opened);
}

void kube_converted_range_fini(struct kube_converted_range *r)
{
    kube_conversion_batch_free(TAKE(r->batch));
    buf_fini(&r->from);
}
