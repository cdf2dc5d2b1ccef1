#include "fake/model.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"

struct version {
    struct pb_key_value kv; /* key and value are owned */
    bool deleted;
    size_t place; /* among the changes of its revision */
};

/* One key and its versions, oldest first. */
struct entry {
    struct slice key; /* owned */
    struct version *versions;
    size_t version_count;
};

struct fake_model {
    struct entry *entries; /* by key */
    size_t entry_count, entry_capacity;
    int64_t revision;
    int64_t compact_revision;
    int64_t writing; /* the revision of the current write */
    bool changed;    /* it has changed something */
    size_t changes;  /* how many */
    bool (*lease_exists)(void *ctx, int64_t lease);
    void *lease_ctx;
};

/* -- Memory -- */

struct fake_model *fake_model_new(void)
{
    struct fake_model *model = xcalloc(1, sizeof(*model));
    model->revision = 1;
    model->compact_revision = -1;
    return model;
}

static void version_fini(struct version *version)
{
    free((void *)version->kv.key.ptr);
    free((void *)version->kv.value.ptr);
}

void fake_model_free(struct fake_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->entry_count; i++) {
        for (size_t j = 0; j < model->entries[i].version_count; j++)
            version_fini(&model->entries[i].versions[j]);
        free(model->entries[i].versions);
        free((void *)model->entries[i].key.ptr);
    }
    free(model->entries);
    free(model);
}

static struct slice slice_dup(struct slice bytes)
{
    uint8_t *copy = xmalloc(bytes.len + 1);
    slice_copy(copy, bytes);
    return slice_of(copy, bytes.len);
}

static void *take(struct arena *arena, size_t bytes)
{
    return xalloc_check(arena_alloc(arena, bytes), bytes);
}

int64_t fake_model_revision(const struct fake_model *model)
{
    return model->revision;
}

int64_t fake_model_compact_revision(const struct fake_model *model)
{
    return model->compact_revision;
}

/* -- Finding -- */

/* The place of the first entry whose key is not less; they are in order. */
static size_t place_of(const struct fake_model *model, struct slice key)
{
    size_t from = 0, to = model->entry_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (slice_compare(model->entries[middle].key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct entry *entry_make(struct fake_model *model, struct slice key)
{
    size_t at = place_of(model, key);
    if (at < model->entry_count && slice_equal(model->entries[at].key, key))
        return &model->entries[at];
    if (model->entry_count == model->entry_capacity) {
        model->entry_capacity = model->entry_capacity ? 2 * model->entry_capacity : 16;
        model->entries = xrealloc(model->entries, model->entry_capacity * sizeof(*model->entries));
    }
    memmove(&model->entries[at + 1], &model->entries[at],
            (model->entry_count - at) * sizeof(*model->entries));
    model->entry_count++;
    model->entries[at] = (struct entry){.key = slice_dup(key)};
    return &model->entries[at];
}

/* The version that a reader at this revision sees, or NULL. */
static const struct version *entry_at(const struct entry *entry, int64_t revision)
{
    for (size_t i = entry->version_count; i > 0; i--) {
        const struct version *version = &entry->versions[i - 1];
        if (version->kv.mod_revision <= revision)
            return version->deleted ? NULL : version;
    }
    return NULL;
}

/* Whether there is an entry at this place, and its key is in the range. */
static bool in_range(const struct fake_model *model, size_t at, struct slice from, struct slice end)
{
    if (at == model->entry_count)
        return false;
    struct slice key = model->entries[at].key;
    if (end.len == 0)
        return slice_equal(key, from);
    bool open = end.len == 1 && end.ptr[0] == 0;
    return slice_compare(key, from) >= 0 && (open || slice_compare(key, end) < 0);
}

/* The revision that the current write reads; outside of a write, the newest. */
static int64_t visible(const struct fake_model *model)
{
    return model->changed ? model->writing : model->revision;
}

static const struct version *find(struct fake_model *model, struct slice key)
{
    size_t at = place_of(model, key);
    bool found = in_range(model, at, key, SLICE_EMPTY);
    return found ? entry_at(&model->entries[at], visible(model)) : NULL;
}

/* -- Ranges -- */

/* `12 len KeyValue` */
static struct slice field_make(const struct pb_key_value *kv, struct arena *arena)
{
    size_t size = pb_size(&pb_key_value_table, kv);
    size_t head = pb_message_head_size(2, size);
    uint8_t *field = take(arena, head + size);
    pb_message_head_write(field, 2, size);
    pb_encode(&pb_key_value_table, kv, field + head, size);
    return slice_of(field, head + size);
}

static bool filtered_out(const struct pb_range_request *r, const struct pb_key_value *kv)
{
    return (r->max_mod_revision && kv->mod_revision > r->max_mod_revision) ||
           (r->min_mod_revision && kv->mod_revision < r->min_mod_revision) ||
           (r->max_create_revision && kv->create_revision > r->max_create_revision) ||
           (r->min_create_revision && kv->create_revision < r->min_create_revision);
}

static int order_by(const struct pb_key_value *a, const struct pb_key_value *b, int32_t target)
{
    switch (target) {
    case PB_SORT_TARGET_VERSION:
        return (a->version > b->version) - (a->version < b->version);
    case PB_SORT_TARGET_CREATE:
        return (a->create_revision > b->create_revision) -
               (a->create_revision < b->create_revision);
    case PB_SORT_TARGET_MOD:
        return (a->mod_revision > b->mod_revision) - (a->mod_revision < b->mod_revision);
    case PB_SORT_TARGET_VALUE:
        return slice_compare(a->value, b->value);
    default:
        return slice_compare(a->key, b->key);
    }
}

/* Insertion sort, which keeps equal ones ordered by key. */
static void sort(const struct pb_key_value **kvs, size_t count, const struct pb_range_request *r)
{
    int sign = r->sort_order == PB_SORT_ORDER_DESCEND ? -1 : 1;
    for (size_t i = 1; i < count; i++) {
        const struct pb_key_value *kv = kvs[i];
        size_t at = i;
        for (; at > 0 && sign * order_by(kvs[at - 1], kv, r->sort_target) > 0; at--)
            kvs[at] = kvs[at - 1];
        kvs[at] = kv;
    }
}

static struct slice answer_field(const struct pb_range_request *r, const struct pb_key_value *kv,
                                 struct arena *arena)
{
    struct pb_key_value shown = *kv;
    if (r->keys_only) {
        shown.value = SLICE_EMPTY;
        if (r->sort_target != PB_SORT_TARGET_VALUE)
            shown.lease = 0;
    }
    return field_make(&shown, arena);
}

static size_t collect(const struct fake_model *model, const struct pb_range_request *r,
                      int64_t revision, const struct pb_key_value **kvs, int64_t *ret_count)
{
    bool by_key = r->sort_order == PB_SORT_ORDER_NONE ||
                  (r->sort_target == PB_SORT_TARGET_KEY && r->sort_order == PB_SORT_ORDER_ASCEND);
    bool filters = r->min_mod_revision || r->max_mod_revision || r->min_create_revision ||
                   r->max_create_revision;
    /* etcd applies the limit before sorting if only the target is given; one more than the limit
     * shows that there are more. */
    size_t fetch = by_key && !filters && r->limit > 0 && r->limit < INT64_MAX ? (size_t)r->limit + 1
                                                                              : SIZE_MAX;
    size_t n = 0;
    size_t i = place_of(model, r->key);
    for (; in_range(model, i, r->key, r->range_end); i++) {
        const struct version *version = entry_at(&model->entries[i], revision);
        if (!version)
            continue;
        ++*ret_count;
        if (!r->count_only && n < fetch && !filtered_out(r, &version->kv))
            kvs[n++] = &version->kv;
    }
    return n;
}

enum status fake_model_range(struct fake_model *model, const struct pb_range_request *request,
                             struct arena *arena, struct kv_range_answer *ret_answer)
{
    int64_t revision = request->revision > 0 ? request->revision : visible(model);
    if (revision > visible(model))
        return ST_FUTURE_REV;
    if (revision < model->compact_revision)
        return ST_COMPACTED;

    struct kv_range_answer answer = {0};
    const struct pb_key_value **kvs = take(arena, model->entry_count * sizeof(*kvs));
    size_t n = collect(model, request, revision, kvs, &answer.count);
    if (request->sort_order != PB_SORT_ORDER_NONE || request->sort_target != PB_SORT_TARGET_KEY)
        sort(kvs, n, request);
    if (request->limit > 0 && n > (size_t)request->limit) {
        n = (size_t)request->limit;
        answer.more = true;
    }
    struct slice *fields = take(arena, n * sizeof(*fields));
    for (size_t i = 0; i < n; i++) {
        fields[i] = answer_field(request, kvs[i], arena);
        answer.fields_bytes += fields[i].len;
    }
    answer.fields = fields;
    answer.field_count = n;
    *ret_answer = answer;
    return ST_OK;
}

/* -- Writing -- */

static void begin(struct fake_model *model)
{
    model->writing = model->revision + 1;
    model->changed = false;
    model->changes = 0;
}

static void commit(struct fake_model *model)
{
    model->revision = visible(model);
    model->changed = false;
}

static void version_add(struct fake_model *model, struct slice key, struct version version)
{
    struct entry *entry = entry_make(model, key);
    version.kv.key = slice_dup(key);
    version.kv.value = slice_dup(version.kv.value);
    version.kv.mod_revision = model->writing;
    version.place = model->changes++;
    entry->versions =
        xrealloc(entry->versions, (entry->version_count + 1) * sizeof(*entry->versions));
    entry->versions[entry->version_count++] = version;
    model->changed = true;
}

static enum status check_put(struct fake_model *model, const struct pb_put_request *request)
{
    if (request->lease &&
        !(model->lease_exists && model->lease_exists(model->lease_ctx, request->lease)))
        return ST_LEASE_NOT_FOUND;
    if ((request->ignore_value || request->ignore_lease) && !find(model, request->key))
        return ST_KEY_NOT_FOUND;
    return ST_OK;
}

static void do_put(struct fake_model *model, const struct pb_put_request *request,
                   struct arena *arena, struct kv_answer *ret_answer)
{
    const struct version *prev = find(model, request->key);
    struct kv_answer answer = {.kind = KV_ANSWER_PUT, .revision = model->writing};
    if (prev && request->prev_kv)
        answer.put.prev_field = field_make(&prev->kv, arena);
    struct version next = {
        .kv = {.create_revision = prev ? prev->kv.create_revision : model->writing,
               .version = prev ? prev->kv.version + 1 : 1,
               .value = prev && request->ignore_value ? prev->kv.value : request->value,
               .lease = prev && request->ignore_lease ? prev->kv.lease : request->lease},
    };
    version_add(model, request->key, next);
    *ret_answer = answer;
}

enum status fake_model_put(struct fake_model *model, const struct pb_put_request *request,
                           struct arena *arena, struct kv_answer *ret_answer)
{
    TRY(check_put(model, request));
    begin(model);
    do_put(model, request, arena, ret_answer);
    commit(model);
    return ST_OK;
}

static void do_delete(struct fake_model *model, const struct pb_delete_range_request *request,
                      struct arena *arena, struct kv_answer *ret_answer)
{
    struct slice *fields = take(arena, model->entry_count * sizeof(*fields));
    struct kv_delete_answer answer = {.prev_fields = fields};
    int64_t seen = visible(model);
    size_t i = place_of(model, request->key);
    for (; in_range(model, i, request->key, request->range_end); i++) {
        const struct version *version = entry_at(&model->entries[i], seen);
        if (!version)
            continue;
        answer.deleted++;
        if (request->prev_kv) {
            fields[answer.prev_field_count] = field_make(&version->kv, arena);
            answer.prev_fields_bytes += fields[answer.prev_field_count++].len;
        }
        version_add(model, model->entries[i].key, (struct version){.deleted = true});
    }
    *ret_answer = (struct kv_answer){
        .kind = KV_ANSWER_DELETE, .revision = visible(model), .delete_range = answer};
}

enum status fake_model_delete(struct fake_model *model,
                              const struct pb_delete_range_request *request, struct arena *arena,
                              struct kv_answer *ret_answer)
{
    begin(model);
    do_delete(model, request, arena, ret_answer);
    commit(model);
    return ST_OK;
}

/* -- Leases -- */

void fake_model_set_leases(struct fake_model *model, bool (*exists)(void *ctx, int64_t lease),
                           void *ctx)
{
    model->lease_exists = exists;
    model->lease_ctx = ctx;
}

size_t fake_model_leased(struct fake_model *model, int64_t lease, struct arena *arena,
                         struct slice **ret_keys)
{
    struct slice *keys = take(arena, model->entry_count * sizeof(*keys));
    size_t count = 0;
    for (size_t i = 0; i < model->entry_count; i++) {
        const struct version *version = entry_at(&model->entries[i], model->revision);
        if (!version || version->kv.lease != lease)
            continue;
        uint8_t *key = take(arena, model->entries[i].key.len);
        slice_copy(key, model->entries[i].key);
        keys[count++] = slice_of(key, model->entries[i].key.len);
    }
    *ret_keys = keys;
    return count;
}

void fake_model_delete_leased(struct fake_model *model, int64_t lease)
{
    begin(model);
    for (size_t i = 0; i < model->entry_count; i++) {
        const struct version *version = entry_at(&model->entries[i], model->revision);
        if (version && version->kv.lease == lease)
            version_add(model, model->entries[i].key, (struct version){.deleted = true});
    }
    commit(model);
}

/* -- History -- */

static void event_make(const struct entry *entry, size_t at, struct arena *arena,
                       struct fake_event *ret_event)
{
    const struct version *version = &entry->versions[at];
    const struct version *before = at > 0 && !version[-1].deleted ? &version[-1] : NULL;
    uint8_t *key = take(arena, entry->key.len);
    slice_copy(key, entry->key);
    *ret_event = (struct fake_event){
        .key = slice_of(key, entry->key.len),
        .field = field_make(&version->kv, arena),
        .prev_field = before ? field_make(&before->kv, arena) : SLICE_EMPTY,
        .tombstone = version->deleted,
        .created = !version->deleted && !before,
    };
}

size_t fake_model_events(const struct fake_model *model, int64_t revision, struct arena *arena,
                         struct fake_event **ret_events)
{
    size_t count = 0;
    for (size_t i = 0; i < model->entry_count; i++)
        for (size_t j = 0; j < model->entries[i].version_count; j++)
            count += model->entries[i].versions[j].kv.mod_revision == revision;
    *ret_events = take(arena, count * sizeof(struct fake_event));
    for (size_t i = 0; i < model->entry_count; i++) {
        const struct entry *entry = &model->entries[i];
        for (size_t j = 0; j < entry->version_count; j++)
            if (entry->versions[j].kv.mod_revision == revision)
                event_make(entry, j, arena, &(*ret_events)[entry->versions[j].place]);
    }
    return count;
}

enum status fake_model_compact(struct fake_model *model, int64_t revision)
{
    if (revision <= model->compact_revision)
        return ST_COMPACTED;
    if (revision > model->revision)
        return ST_FUTURE_REV;
    model->compact_revision = revision;
    return ST_OK;
}

/* -- Transactions -- */

static int64_t compared_number(const struct pb_compare *c, const struct pb_key_value *kv,
                               int64_t *ret_wanted)
{
    switch (c->target) {
    case PB_COMPARE_TARGET_CREATE:
        *ret_wanted = c->target_union_case == PB_COMPARE_CREATE_REVISION ? c->create_revision : 0;
        return kv->create_revision;
    case PB_COMPARE_TARGET_MOD:
        *ret_wanted = c->target_union_case == PB_COMPARE_MOD_REVISION ? c->mod_revision : 0;
        return kv->mod_revision;
    case PB_COMPARE_TARGET_LEASE:
        *ret_wanted = c->target_union_case == PB_COMPARE_LEASE ? c->lease : 0;
        return kv->lease;
    case PB_COMPARE_TARGET_VERSION:
        *ret_wanted = c->target_union_case == PB_COMPARE_VERSION ? c->version : 0;
        return kv->version;
    default:
        *ret_wanted = 0;
        return 0;
    }
}

static bool compare_holds(const struct pb_compare *c, const struct pb_key_value *kv)
{
    int order;
    if (c->target == PB_COMPARE_TARGET_VALUE) {
        bool given = c->target_union_case == PB_COMPARE_VALUE;
        order = slice_compare(kv->value, given ? c->value : SLICE_EMPTY);
    } else {
        int64_t wanted;
        int64_t is = compared_number(c, kv, &wanted);
        order = (is > wanted) - (is < wanted);
    }
    switch (c->result) {
    case PB_COMPARE_RESULT_EQUAL:
        return order == 0;
    case PB_COMPARE_RESULT_NOT_EQUAL:
        return order != 0;
    case PB_COMPARE_RESULT_GREATER:
        return order > 0;
    case PB_COMPARE_RESULT_LESS:
        return order < 0;
    default:
        return true;
    }
}

static bool compare_range(const struct fake_model *model, const struct pb_compare *c)
{
    bool any = false;
    size_t i = place_of(model, c->key);
    for (; in_range(model, i, c->key, c->range_end); i++) {
        const struct version *version = entry_at(&model->entries[i], model->revision);
        if (!version)
            continue;
        any = true;
        if (!compare_holds(c, &version->kv))
            return false;
    }
    if (any)
        return true;
    return c->target != PB_COMPARE_TARGET_VALUE && compare_holds(c, &(struct pb_key_value){0});
}

static bool succeeds(const struct fake_model *model, const struct pb_txn_request *txn)
{
    for (size_t i = 0; i < txn->compare_count; i++) {
        if (!compare_range(model, &txn->compare[i]))
            return false;
    }
    return true;
}

static enum status check_op(struct fake_model *model, const struct pb_request_op *op);

/* Nothing was written yet: compares and checks all see the state before the transaction. */
static enum status check_txn(struct fake_model *model, const struct pb_txn_request *txn,
                             bool *ret_succeeded)
{
    bool succeeded = succeeds(model, txn);
    const struct pb_request_op *ops = succeeded ? txn->success : txn->failure;
    size_t count = succeeded ? txn->success_count : txn->failure_count;
    for (size_t i = 0; i < count; i++)
        TRY(check_op(model, &ops[i]));
    *ret_succeeded = succeeded;
    return ST_OK;
}

static enum status check_op(struct fake_model *model, const struct pb_request_op *op)
{
    bool ignored;
    switch (op->request_case) {
    case PB_REQUEST_OP_REQUEST_RANGE:
        if (op->request_range->revision > model->revision)
            return ST_FUTURE_REV;
        if (op->request_range->revision && op->request_range->revision < model->compact_revision)
            return ST_COMPACTED;
        return ST_OK;
    case PB_REQUEST_OP_REQUEST_PUT:
        return check_put(model, op->request_put);
    case PB_REQUEST_OP_REQUEST_TXN:
        return check_txn(model, op->request_txn, &ignored);
    default:
        return ST_OK;
    }
}

static enum status do_op(struct fake_model *model, const struct pb_request_op *op,
                         struct arena *arena, struct kv_answer *ret_answer);

static enum status do_txn(struct fake_model *model, const struct pb_txn_request *txn,
                          struct arena *arena, struct kv_answer *ret_answer)
{
    bool succeeded = succeeds(model, txn); /* model.revision does not change until the commit */
    const struct pb_request_op *ops = succeeded ? txn->success : txn->failure;
    size_t count = succeeded ? txn->success_count : txn->failure_count;
    struct kv_answer *answers = take(arena, count * sizeof(*answers));
    for (size_t i = 0; i < count; i++)
        TRY(do_op(model, &ops[i], arena, &answers[i]));
    *ret_answer = (struct kv_answer){
        .kind = KV_ANSWER_TXN,
        .txn = {.succeeded = succeeded, .answers = answers, .answer_count = count}};
    return ST_OK;
}

static enum status do_op(struct fake_model *model, const struct pb_request_op *op,
                         struct arena *arena, struct kv_answer *ret_answer)
{
    switch (op->request_case) {
    case PB_REQUEST_OP_REQUEST_RANGE:
        ret_answer->kind = KV_ANSWER_RANGE;
        ret_answer->revision = visible(model);
        return fake_model_range(model, op->request_range, arena, &ret_answer->range);
    case PB_REQUEST_OP_REQUEST_PUT:
        do_put(model, op->request_put, arena, ret_answer);
        return ST_OK;
    case PB_REQUEST_OP_REQUEST_DELETE_RANGE:
        do_delete(model, op->request_delete_range, arena, ret_answer);
        return ST_OK;
    case PB_REQUEST_OP_REQUEST_TXN:
        return do_txn(model, op->request_txn, arena, ret_answer);
    case PB_REQUEST_OP_REQUEST_NONE:
        break;
    }
    return ST_INTERNAL; /* the API refuses it */
}

enum status fake_model_txn(struct fake_model *model, const struct pb_txn_request *request,
                           struct arena *arena, struct kv_answer *ret_answer)
{
    bool ignored;
    TRY(check_txn(model, request, &ignored));
    begin(model);
    enum status status = do_txn(model, request, arena, ret_answer);
    commit(model);
    if (status == ST_OK)
        ret_answer->revision = model->revision;
    return status;
}
