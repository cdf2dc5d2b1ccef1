/* GET of one object: the bytes of the mirror. */
#include "kube/types/storage.h"
#include "tier/call/pass.h"
#include "tier/read/request.h"

static void answer(struct tier_request *r)
{
    struct slice field;
    struct kube_status status = {0};
    enum tier_encoding encoding = r->ask.encoding;
    if (!engine_range_next(&r->read, &field)) {
        (void)!kube_fail_not_found(&status, r->ask.path.group, r->ask.path.resource, r->ask.name);
        tier_request_fail(r, &status);
        return;
    }
    struct slice bytes = kube_kv_of(field).value;
    http_begin(r->exchange, 200, tier_content_type(encoding, false));
    if (http_write(r->exchange, bytes) != ST_OK ||
        (!tier_encoding_is_protobuf(encoding) &&
         http_write(r->exchange, SLICE_LITERAL("\n")) != ST_OK))
        return; /* it is aborted */
    tier_request_close_range(r);
    http_end(r->exchange);
}

void tier_get(struct tier_request *r)
{
    tier_count(r->api, TIER_TOTAL_GETS);
    tier_request_range(r, answer);
}
