/*
 * Input: a byte that selects the version and whether the webhook may change objects, then the
 * answer of a webhook. There is a verdict or a reason; a verdict is within its limits, and the
 * Status of a refusal is JSON with a code that HTTP has.
 */
#include "cost.h"

#include "codec/json/tree.h"
#include "kube/policy/webhooks/review.h"

enum { ARENA_BYTES_MAX = 64 << 20 };

static void check_refusal(struct arena *arena, const struct kube_webhook_verdict *verdict)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_status status = {0};
    struct json_node *tree;
    struct error error;
    bool allowed = kube_webhook_refuse(arena, SLICE_LITERAL("w.x.y"), verdict, &status);
    assert(!allowed && kube_status_code(&status) >= 400 && kube_status_code(&status) <= 999);
    enum status written = kube_status_write(&status, &text);
    assert(written == ST_OK);
    enum status read = json_tree_read(arena, buf_slice(&text), &tree, &error);
    assert(read == ST_OK || read == ST_NOMEM);
    assert(read != ST_OK || json_node_text_is(tree, "kind", "Status"));
}

static void check_verdict(struct arena *arena, const struct kube_webhook_verdict *verdict)
{
    assert(verdict->warning_count <= KUBE_WEBHOOK_WARNINGS_MAX);
    for (size_t i = 0; i < verdict->warning_count; i++)
        assert(verdict->warnings[i].len &&
               verdict->warnings[i].len <= KUBE_WEBHOOK_WARNING_BYTES_MAX);
    assert(!verdict->patch.len == !verdict->patch_type.len);
    if (!verdict->allowed)
        check_refusal(arena, verdict);
}

FUZZ_INPUT(.memory_bytes = 3 * ARENA_BYTES_MAX)
{
    AUTO(buf_fini) struct buf why = {0};
    struct kube_webhook_verdict verdict;
    struct arena arena;
    if (!size)
        return 0;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    enum status status = kube_webhook_verdict_read(
        &arena, slice_of(data + 1, size - 1), data[0] & 1 ? KUBE_REVIEW_V1 : KUBE_REVIEW_V1BETA1,
        SLICE_LITERAL("u1"), data[0] & 2, &verdict, &why);
    assert(status == ST_OK || status == ST_MALFORMED || status == ST_LIMIT || status == ST_NOMEM);
    if (status == ST_OK)
        check_verdict(&arena, &verdict);
    else if (status != ST_NOMEM)
        assert(why.len);
    arena_fini(&arena);
    return 0;
}
