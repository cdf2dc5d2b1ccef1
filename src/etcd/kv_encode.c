#include "etcd/kv_encode.h"

static size_t header_body_size(const struct kv_header *header)
{
    return pb_uint_size(1, header->cluster_id) + pb_uint_size(2, header->member_id) +
           pb_uint_size(3, (uint64_t)header->revision) + pb_uint_size(4, header->raft_term);
}

size_t kv_header_size(const struct kv_header *header)
{
    return 2 + header_body_size(header); /* its length always takes one byte */
}

uint8_t *kv_header_write(uint8_t *dst, const struct kv_header *header)
{
    dst = pb_message_head_write(dst, 1, header_body_size(header));
    dst = pb_uint_write(dst, 1, header->cluster_id);
    dst = pb_uint_write(dst, 2, header->member_id);
    dst = pb_uint_write(dst, 3, (uint64_t)header->revision);
    return pb_uint_write(dst, 4, header->raft_term);
}

size_t kv_range_tail_size(bool more, int64_t count)
{
    return pb_uint_size(3, more) + pb_uint_size(4, (uint64_t)count);
}

uint8_t *kv_range_tail_write(uint8_t *dst, bool more, int64_t count)
{
    dst = pb_uint_write(dst, 3, more);
    return pb_uint_write(dst, 4, (uint64_t)count);
}

/* -- Answers -- */

/* How many numbers plan.nested needs: one for each answer inside another. */
static size_t count_nested(const struct kv_answer *answer)
{
    if (answer->kind != KV_ANSWER_TXN)
        return 0;
    size_t count = answer->txn.answer_count;
    for (size_t i = 0; i < answer->txn.answer_count; i++)
        count += count_nested(&answer->txn.answers[i]);
    return count;
}

static struct kv_header inner_header(const struct kv_answer *answer)
{
    return (struct kv_header){.revision = answer->kind == KV_ANSWER_TXN ? 0 : answer->revision};
}

/* The field of ResponseOp that holds an answer of this kind. */
static uint32_t op_field(enum kv_answer_kind kind)
{
    static const uint32_t fields[] = {
        [KV_ANSWER_RANGE] = 1,
        [KV_ANSWER_PUT] = 2,
        [KV_ANSWER_DELETE] = 3,
        [KV_ANSWER_TXN] = 4,
    };
    return fields[kind];
}

/* A ResponseOp around an answer of so many bytes. */
static size_t op_size(enum kv_answer_kind kind, size_t answer_bytes)
{
    return pb_message_head_size(op_field(kind), answer_bytes) + answer_bytes;
}

static size_t answer_size(const struct kv_answer *answer, const struct kv_header *header,
                          size_t **nested);

static size_t txn_size(const struct kv_txn_answer *txn, size_t **nested)
{
    size_t size = pb_uint_size(2, txn->succeeded);
    for (size_t i = 0; i < txn->answer_count; i++) {
        const struct kv_answer *answer = &txn->answers[i];
        struct kv_header header = inner_header(answer);
        size_t *kept = (*nested)++;
        *kept = answer_size(answer, &header, nested);
        size_t op_bytes = op_size(answer->kind, *kept);
        size += pb_message_head_size(3, op_bytes) + op_bytes;
    }
    return size;
}

static size_t answer_size(const struct kv_answer *answer, const struct kv_header *header,
                          size_t **nested)
{
    size_t size = kv_header_size(header);
    switch (answer->kind) {
    case KV_ANSWER_RANGE:
        return size + (size_t)answer->range.fields_bytes +
               kv_range_tail_size(answer->range.more, answer->range.count);
    case KV_ANSWER_PUT:
        return size + answer->put.prev_field.len;
    case KV_ANSWER_DELETE:
        return size + pb_uint_size(2, (uint64_t)answer->delete_range.deleted) +
               (size_t)answer->delete_range.prev_fields_bytes;
    case KV_ANSWER_TXN:
        return size + txn_size(&answer->txn, nested);
    }
    return size;
}

enum status kv_plan_make(struct kv_plan *plan, const struct kv_answer *answer,
                         const struct kv_header *header, struct arena *arena)
{
    size_t *nested = NULL;
    size_t count = count_nested(answer);
    if (count) {
        nested = arena_alloc(arena, count * sizeof(*nested));
        if (!nested)
            return ST_NOMEM;
    }
    *plan = (struct kv_plan){.answer = answer, .header = header, .nested = nested};
    plan->bytes = answer_size(answer, header, &nested);
    return ST_OK;
}

static uint8_t *field_write(uint8_t *dst, struct slice field)
{
    slice_copy(dst, field);
    return dst + field.len;
}

static uint8_t *range_write(uint8_t *dst, const struct kv_range_answer *range)
{
    for (size_t i = 0; i < range->field_count; i++)
        dst = field_write(dst, range->fields[i]);
    return kv_range_tail_write(dst, range->more, range->count);
}

static uint8_t *delete_write(uint8_t *dst, const struct kv_delete_answer *answer)
{
    dst = pb_uint_write(dst, 2, (uint64_t)answer->deleted);
    for (size_t i = 0; i < answer->prev_field_count; i++) {
        uint8_t *field = dst;
        dst = field_write(dst, answer->prev_fields[i]);
        *field = PB_TAG(3, PB_WIRE_LEN);
    }
    return dst;
}

static uint8_t *answer_write(uint8_t *dst, const struct kv_answer *answer,
                             const struct kv_header *header, const size_t **nested);

static uint8_t *txn_write(uint8_t *dst, const struct kv_txn_answer *txn, const size_t **nested)
{
    dst = pb_uint_write(dst, 2, txn->succeeded);
    for (size_t i = 0; i < txn->answer_count; i++) {
        const struct kv_answer *answer = &txn->answers[i];
        struct kv_header header = inner_header(answer);
        size_t answer_bytes = *(*nested)++;
        dst = pb_message_head_write(dst, 3, op_size(answer->kind, answer_bytes));
        dst = pb_message_head_write(dst, op_field(answer->kind), answer_bytes);
        dst = answer_write(dst, answer, &header, nested);
    }
    return dst;
}

static uint8_t *answer_write(uint8_t *dst, const struct kv_answer *answer,
                             const struct kv_header *header, const size_t **nested)
{
    dst = kv_header_write(dst, header);
    switch (answer->kind) {
    case KV_ANSWER_RANGE:
        return range_write(dst, &answer->range);
    case KV_ANSWER_PUT:
        return field_write(dst, answer->put.prev_field);
    case KV_ANSWER_DELETE:
        return delete_write(dst, &answer->delete_range);
    case KV_ANSWER_TXN:
        return txn_write(dst, &answer->txn, nested);
    }
    return dst;
}

uint8_t *kv_plan_write(const struct kv_plan *plan, uint8_t *dst)
{
    const size_t *nested = plan->nested;
    uint8_t *end = answer_write(dst, plan->answer, plan->header, &nested);
    assert((size_t)(end - dst) == plan->bytes);
    return end;
}
