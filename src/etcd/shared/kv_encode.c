#include "etcd/shared/kv_encode.h"

void kv_ids_init(struct kv_ids *ids, uint64_t cluster_id, uint64_t member_id)
{
    uint8_t *end = pb_uint_write(ids->bytes, 1, cluster_id);
    end = pb_uint_write(end, 2, member_id);
    ids->len = (uint8_t)(end - ids->bytes);
}

static struct slice header_ids(const struct kv_header *header)
{
    return header->ids ? slice_of(header->ids->bytes, header->ids->len) : SLICE_EMPTY;
}

static size_t header_body_size(const struct kv_header *header)
{
    return header_ids(header).len + pb_uint_size(3, (uint64_t)header->revision) +
           pb_uint_size(4, header->raft_term);
}

size_t kv_header_size(const struct kv_header *header)
{
    return 2 + header_body_size(header); /* its length always takes one byte */
}

uint8_t *kv_header_write(uint8_t *dst, const struct kv_header *header)
{
    struct slice ids = header_ids(header);
    dst = pb_message_head_write(dst, 1, header_body_size(header));
    slice_copy(dst, ids);
    dst = pb_uint_write(dst + ids.len, 3, (uint64_t)header->revision);
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

/* The number of sizes in plan.nested: one for each answer inside another. */
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

/* The field of ResponseOp that contains an answer of this kind. */
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

/* The size of a ResponseOp around an answer of answer_bytes. */
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
    *plan = (struct kv_plan){.answer = answer, .header = *header, .nested = nested};
    plan->bytes = answer_size(answer, header, &nested);
    return ST_OK;
}

/* -- Writing -- */

/* The fields of an answer, and the bytes before and after them. */
static void answer_begin(struct kv_writer *w, uint8_t *p, const struct kv_answer *answer,
                         const struct kv_header *header)
{
    p = kv_header_write(p, header);
    w->fields = NULL;
    w->field_count = w->field_at = 0;
    w->retagged = false;
    switch (answer->kind) {
    case KV_ANSWER_RANGE:
        w->fields = answer->range.fields;
        w->field_count = answer->range.field_count;
        break;
    case KV_ANSWER_PUT:
        w->one_field = answer->put.prev_field;
        w->fields = &w->one_field;
        w->field_count = w->one_field.len ? 1 : 0;
        break;
    case KV_ANSWER_DELETE:
        p = pb_uint_write(p, 2, (uint64_t)answer->delete_range.deleted);
        w->fields = answer->delete_range.prev_fields;
        w->field_count = answer->delete_range.prev_field_count;
        w->retagged = true;
        break;
    case KV_ANSWER_TXN:
        p = pb_uint_write(p, 2, answer->txn.succeeded);
        assert(w->depth < KV_DEPTH_MAX);
        w->stack[w->depth].txn = &answer->txn;
        w->stack[w->depth++].next = 0;
        break;
    }
    w->head_len = (uint8_t)(p - w->small);
    if (answer->kind == KV_ANSWER_RANGE)
        p = kv_range_tail_write(p, answer->range.more, answer->range.count);
    w->small_len = (uint8_t)(p - w->small);
    w->small_at = 0;
}

/* Begins the next answer of the innermost transaction that has one. False: there are no more. */
static bool answer_next(struct kv_writer *w)
{
    while (w->depth > 0) {
        const struct kv_txn_answer *txn = w->stack[w->depth - 1].txn;
        size_t next = w->stack[w->depth - 1].next++;
        if (next == txn->answer_count) {
            w->depth--;
            continue;
        }
        const struct kv_answer *answer = &txn->answers[next];
        struct kv_header header = inner_header(answer);
        size_t answer_bytes = *w->nested++;
        uint8_t *p = pb_message_head_write(w->small, 3, op_size(answer->kind, answer_bytes));
        p = pb_message_head_write(p, op_field(answer->kind), answer_bytes);
        answer_begin(w, p, answer, &header);
        return true;
    }
    return false;
}

void kv_writer_init(struct kv_writer *writer, const struct kv_plan *plan)
{
    writer->nested = plan->nested;
    writer->depth = 0;
    answer_begin(writer, writer->small, plan->answer, &plan->header);
}

static size_t small_fill(struct kv_writer *w, uint8_t end, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, (size_t)(end - w->small_at));
    memcpy(dst, w->small + w->small_at, n);
    w->small_at = (uint8_t)(w->small_at + n);
    return n;
}

static size_t fields_fill(struct kv_writer *w, uint8_t *dst, size_t room)
{
    size_t filled = 0;
    while (w->field_count > 0 && filled < room) {
        struct slice rest = slice_sub(*w->fields, w->field_at, w->fields->len - w->field_at);
        size_t n = size_min(room - filled, rest.len);
        memcpy(dst + filled, rest.ptr, n);
        if (w->retagged && w->field_at == 0)
            dst[filled] = PB_TAG(3, PB_WIRE_LEN);
        filled += n;
        w->field_at += n;
        if (w->field_at == w->fields->len) {
            w->fields++;
            w->field_count--;
            w->field_at = 0;
        }
    }
    return filled;
}

size_t kv_writer_fill(struct kv_writer *writer, uint8_t *dst, size_t room)
{
    struct kv_writer *w = writer;
    size_t filled = 0;
    do {
        if (w->small_at < w->head_len)
            filled += small_fill(w, w->head_len, dst + filled, room - filled);
        filled += fields_fill(w, dst + filled, room - filled);
        if (w->field_count == 0 && w->small_at >= w->head_len)
            filled += small_fill(w, w->small_len, dst + filled, room - filled);
    } while (filled < room && answer_next(w));
    return filled;
}
