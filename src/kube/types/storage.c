#include "kube/types/storage.h"

#include "codec/pb/wire.h"

enum { COMPARES_MAX = 3, READS_MAX = 2 }; /* conditions and reads of the object itself */

/* Field numbers of KeyValue. */
enum { FIELD_KEY = 1, FIELD_MOD_REVISION = 3, FIELD_VERSION = 4, FIELD_VALUE = 5 };

static uint64_t varint(const uint8_t **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

/* The bytes come from the engine, so they are valid. */
struct kube_kv kube_kv_of(struct slice field)
{
    struct kube_kv kv = {0};
    const uint8_t *at = field.ptr + 1, *end = field.ptr + field.len;
    (void)varint(&at);
    while (at < end) {
        uint64_t tag = varint(&at);
        uint64_t value = varint(&at);
        struct slice bytes = SLICE_EMPTY;
        if ((tag & 7) == 2) {
            bytes = slice_of(at, value);
            at += value;
        }
        switch (tag >> 3) {
        case FIELD_KEY:
            kv.key = bytes;
            break;
        case FIELD_VALUE:
            kv.value = bytes;
            break;
        case FIELD_MOD_REVISION:
            kv.mod_revision = (int64_t)value;
            break;
        case FIELD_VERSION:
            kv.version = (int64_t)value;
            break;
        default:
            break;
        }
    }
    return kv;
}

/* -- Keys -- */

enum status kube_key_make(struct arena *arena, const char *prefix, struct slice namespace,
                          struct slice name, struct slice *ret_key)
{
    struct slice start = slice_from_text(prefix);
    size_t len = start.len + namespace.len + (namespace.len ? 1 : 0) + name.len;
    uint8_t *key = arena_alloc(arena, len), *at = key;
    if (!key)
        return ST_NOMEM;
    slice_copy(at, start);
    at += start.len;
    slice_copy(at, namespace);
    at += namespace.len;
    if (namespace.len)
        *at++ = '/';
    slice_copy(at, name);
    *ret_key = slice_of(key, len);
    return ST_OK;
}

enum status kube_prefix_end(struct arena *arena, struct slice prefix, struct slice *ret_end)
{
    assert(prefix.len && prefix.ptr[prefix.len - 1] == '/');
    TRY(arena_dup(arena, prefix, ret_end));
    /* The last byte is a slash, so there is no carry. */
    ((uint8_t *)(uintptr_t)ret_end->ptr)[prefix.len - 1]++;
    return ST_OK;
}

/* -- Writes -- */

static struct pb_compare compare_revision(struct slice key, int64_t mod_revision)
{
    /* A key that does not exist has the revision 0, so that the same comparison serves for a
     * creation. */
    return (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_MOD,
        .key = key,
        .target_union_case = PB_COMPARE_MOD_REVISION,
        .mod_revision = mod_revision,
    };
}

static struct pb_request_op range_op(struct pb_range_request *range)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_RANGE,
                                  .request_range = range};
}

struct kube_companions *kube_companions_new(struct arena *arena, size_t count)
{
    assert(count <= KUBE_COMPANIONS_MAX);
    struct kube_companions *c = arena_calloc(arena, 1, sizeof(*c));
    if (!c)
        return NULL;
    c->count = count;
    c->items = arena_calloc(arena, count, sizeof(*c->items));
    c->compares = arena_calloc(arena, count + COMPARES_MAX, sizeof(*c->compares));
    c->success = arena_calloc(arena, count + 1, sizeof(*c->success));
    c->failure = arena_calloc(arena, count + READS_MAX, sizeof(*c->failure));
    c->puts = arena_calloc(arena, count, sizeof(*c->puts));
    c->deletes = arena_calloc(arena, count, sizeof(*c->deletes));
    c->ranges = arena_calloc(arena, count, sizeof(*c->ranges));
    return arena_ran_out(arena) ? NULL : c;
}

static struct pb_request_op write_companion(struct kube_companions *c, size_t at)
{
    const struct kube_companion *item = &c->items[at];
    if (item->value.len) {
        c->puts[at] = (struct pb_put_request){.key = item->key, .value = item->value};
        return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                      .request_put = &c->puts[at]};
    }
    c->deletes[at] = (struct pb_delete_range_request){.key = item->key};
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                  .request_delete_range = &c->deletes[at]};
}

/* Extends the transaction of the object itself. */
static void add_companions(struct kube_write *write)
{
    struct kube_companions *c = write->companions;
    struct pb_txn_request *txn = &write->txn;
    memcpy(c->compares, write->compares, txn->compare_count * sizeof(*c->compares));
    memcpy(c->failure, write->failure, txn->failure_count * sizeof(*c->failure));
    c->success[0] = write->success;
    for (size_t i = 0; i < c->count; i++) {
        const struct kube_companion *item = &c->items[i];
        if (item->value.len)
            c->compares[txn->compare_count++] = compare_revision(item->key, item->expected);
        c->success[1 + i] = write_companion(c, i);
        c->ranges[i] = (struct pb_range_request){.key = item->key};
        c->failure[txn->failure_count++] = range_op(&c->ranges[i]);
    }
    txn->compare = c->compares;
    txn->success = c->success;
    txn->success_count = 1 + c->count;
    txn->failure = c->failure;
}

static void begin(struct engine_shard *shard, struct kube_write *write)
{
    write->compares[0] = compare_revision(write->key, write->expected);
    size_t count = 1;
    if (write->guard.len)
        write->compares[count++] = compare_revision(write->guard, write->guard_expected);
    if (write->rule.len)
        write->compares[count++] = compare_revision(write->rule, write->rule_expected);
    /* If a condition fails, the same transaction reads the current values. A retry or an error
     * message needs no other request. */
    write->range = (struct pb_range_request){.key = write->key};
    write->rule_range = (struct pb_range_request){.key = write->rule, .keys_only = true};
    write->failure[0] = range_op(&write->range);
    write->failure[1] = range_op(&write->rule_range);
    write->txn = (struct pb_txn_request){
        .compare = write->compares,
        .compare_count = count,
        .success = &write->success,
        .success_count = 1,
        .failure = write->failure,
        .failure_count = write->rule.len ? 2 : 1,
    };
    if (write->companions)
        add_companions(write);
    engine_txn(shard, &write->engine, &write->txn);
}

void kube_storage_put(struct engine_shard *shard, struct kube_write *write)
{
    write->put = (struct pb_put_request){.key = write->key,
                                         .value = write->value,
                                         .lease = write->lease,
                                         .ignore_lease = write->keeps_lease};
    write->success = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                            .request_put = &write->put};
    begin(shard, write);
}

void kube_storage_delete(struct engine_shard *shard, struct kube_write *write)
{
    write->delete_range = (struct pb_delete_range_request){.key = write->key};
    write->success = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                            .request_delete_range = &write->delete_range};
    begin(shard, write);
}

/* The key value that a read of the failed branch found; zeroed: none. */
static struct kube_kv found(const struct kube_write *write, size_t at)
{
    const struct kv_range_answer *range = &write->engine.answer.txn.answers[at].range;
    return range->field_count ? kube_kv_of(range->fields[0]) : (struct kube_kv){0};
}

bool kube_write_succeeded(const struct kube_write *write, struct kube_kv *ret_current)
{
    bool succeeded = write->engine.answer.txn.succeeded;
    *ret_current = (struct kube_kv){0};
    if (!succeeded)
        *ret_current = found(write, 0);
    return succeeded;
}

struct kube_kv kube_write_companion(const struct kube_write *write, size_t at)
{
    return found(write, (write->rule.len ? 2 : 1) + at);
}

bool kube_write_rule_changed(const struct kube_write *write)
{
    return write->rule.len && found(write, 1).mod_revision != write->rule_expected;
}
