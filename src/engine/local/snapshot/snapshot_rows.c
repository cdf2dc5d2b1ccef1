#include "engine/local/snapshot/snapshot_rows.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "store/record/row_values.h"

#include <inttypes.h>
#include <stdio.h>

struct snapshot_lease {
    uint64_t id;
    int64_t ttl_s; /* 0: it was revoked */
    uint32_t taken;
};

struct snapshot_kept {
    enum bolt_etcd_bucket bucket;
    bool deleted;
    uint32_t taken;
    struct slice key, value;
};

static void add(struct buf *array, const void *item, size_t bytes)
{
    if (buf_append(array, slice_of(item, bytes)) != ST_OK)
        xalloc_check(NULL, array->len);
}

static struct slice keep(struct snapshot_rows *rows, struct slice bytes)
{
    struct slice copy = SLICE_EMPTY;
    if (bytes.len && arena_dup(&rows->arena, bytes, &copy) != ST_OK)
        xalloc_check(NULL, bytes.len);
    return copy;
}

/* -- Collecting -- */

static void take_entry(struct snapshot_rows *rows, enum bolt_etcd_bucket bucket, struct slice key,
                       const struct row *row)
{
    struct snapshot_kept kept = {
        .bucket = bucket,
        .deleted = row->deleted,
        .taken = rows->taken,
        .key = keep(rows, key),
        .value = keep(rows, row->value),
    };
    add(&rows->entries, &kept, sizeof(kept));
}

static enum status take_lease(struct snapshot_rows *rows, const struct row *row)
{
    struct lease_row lease;
    TRY(lease_row_read(row, &lease));
    struct snapshot_lease kept = {(uint64_t)lease.id, lease.ttl_s, rows->taken};
    add(&rows->leases, &kept, sizeof(kept));
    return ST_OK;
}

/* In etcd's row everything is in the key. */
static enum status take_alarm(struct snapshot_rows *rows, const struct row *row)
{
    struct pb_alarm_member member = {0};
    TRY(alarm_row_read(row, &member.alarm, &member.member_id));
    uint8_t bytes[2 * (1 + PB_VARINT_BYTES_MAX)];
    size_t size = pb_size(&pb_alarm_member_table, &member);
    assert(size <= sizeof(bytes));
    pb_encode(&pb_alarm_member_table, &member, bytes, size);
    if (size == 0)
        return ST_OK; /* type and member are 0: the key would be empty, which bbolt does not allow
                       */
    take_entry(rows, BOLT_BUCKET_ALARM, slice_of(bytes, size), row);
    return ST_OK;
}

enum status snapshot_rows_take(void *ctx, const struct row *row)
{
    struct snapshot_rows *rows = ctx;
    rows->taken++;
    switch (row->table) {
    case ROW_LEASE:
        return take_lease(rows, row);
    case ROW_ALARM:
        return take_alarm(rows, row);
    case ROW_USER:
        take_entry(rows, BOLT_BUCKET_USERS, row->key, row);
        return ST_OK;
    case ROW_ROLE:
        take_entry(rows, BOLT_BUCKET_ROLES, row->key, row);
        return ST_OK;
    case ROW_AUTH:
        take_entry(rows, BOLT_BUCKET_AUTH, row->key, row);
        return ST_OK;
    default: /* belongs to this cluster; a restored snapshot begins a new one */
        return ST_OK;
    }
}

/* -- Information about the snapshot -- */

static void note(struct snapshot_rows *rows, enum bolt_etcd_bucket bucket, struct slice key,
                 struct slice value)
{
    rows->taken++;
    take_entry(rows, bucket, key, &(struct row){.value = value});
}

static void note_number(struct snapshot_rows *rows, struct slice key, uint64_t number)
{
    uint8_t bytes[BOLT_NUMBER_BYTES];
    bolt_number_write(number, bytes);
    note(rows, BOLT_BUCKET_META, key, slice_of(bytes, sizeof(bytes)));
}

static void note_origin(struct snapshot_rows *rows, const struct snapshot_origin *origin)
{
    char id[17], voters[64];
    snprintf(id, sizeof(id), "%016" PRIx64, origin->member_id);
    snprintf(voters, sizeof(voters), "{\"voters\":[%" PRIu64 "],\"auto_leave\":false}",
             origin->member_id);
    note(rows, BOLT_BUCKET_MEMBERS, slice_of(id, 16), origin->about.member);
    note(rows, BOLT_BUCKET_CLUSTER, BOLT_CLUSTER_VERSION,
         slice_from_text(origin->about.cluster_version));
    note(rows, BOLT_BUCKET_META, BOLT_META_CONF_STATE, slice_from_text(voters));
    if (*origin->about.storage_version)
        note(rows, BOLT_BUCKET_META, BOLT_META_STORAGE_VERSION,
             slice_from_text(origin->about.storage_version));
    note_number(rows, BOLT_META_INDEX, origin->index);
    note_number(rows, BOLT_META_TERM, origin->term);
    /* Their values are made when they are read. */
    note(rows, BOLT_BUCKET_META, BOLT_META_FINISHED_COMPACT, SLICE_EMPTY);
    note(rows, BOLT_BUCKET_META, BOLT_META_SCHEDULED_COMPACT, SLICE_EMPTY);
}

/* -- Sorting by key; the last row of a key counts -- */

static int lease_order(const void *left, const void *right)
{
    const struct snapshot_lease *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1; /* unsigned, as etcd's keys are */
    return (a->taken > b->taken) - (a->taken < b->taken);
}

static int kept_order(const void *left, const void *right)
{
    const struct snapshot_kept *a = left, *b = right;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    int order = slice_compare(a->key, b->key);
    return order ? order : (a->taken > b->taken) - (a->taken < b->taken);
}

static void leases_finish(struct buf *array)
{
    struct snapshot_lease *leases = (void *)array->ptr;
    size_t count = array->len / sizeof(*leases), left = 0;
    if (count)
        qsort(leases, count, sizeof(*leases), lease_order);
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count || leases[i + 1].id != leases[i].id;
        if (is_last && leases[i].ttl_s)
            leases[left++] = leases[i];
    }
    array->len = left * sizeof(*leases);
}

static bool same_key(const struct snapshot_kept *a, const struct snapshot_kept *b)
{
    return a->bucket == b->bucket && slice_equal(a->key, b->key);
}

static void entries_finish(struct buf *array)
{
    struct snapshot_kept *entries = (void *)array->ptr;
    size_t count = array->len / sizeof(*entries), left = 0;
    if (count)
        qsort(entries, count, sizeof(*entries), kept_order);
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count || !same_key(&entries[i], &entries[i + 1]);
        if (is_last && !entries[i].deleted)
            entries[left++] = entries[i];
    }
    array->len = left * sizeof(*entries);
}

/* -- Reading -- */

static bool lease_entry(struct snapshot_rows *rows, size_t i, struct snapshot_entry *ret_entry)
{
    const struct snapshot_lease *leases = (const void *)rows->leases.ptr;
    if (i >= rows->leases.len / sizeof(*leases))
        return false;
    bolt_number_write(leases[i].id, rows->key);
    uint8_t *end = pb_uint_write(rows->value, 1, leases[i].id);
    end = pb_uint_write(end, 2, (uint64_t)leases[i].ttl_s);
    *ret_entry = (struct snapshot_entry){slice_of(rows->key, sizeof(rows->key)),
                                         slice_of(rows->value, (size_t)(end - rows->value))};
    return true;
}

static bool is_of_compaction(const struct snapshot_kept *kept)
{
    return kept->bucket == BOLT_BUCKET_META && kept->value.len == 0;
}

/* A store that was never compacted has no entries for it. */
static const struct snapshot_kept *kept_at(const struct snapshot_rows *rows,
                                           enum bolt_etcd_bucket bucket, size_t i, bool compacted)
{
    const struct snapshot_kept *entries = (const void *)rows->entries.ptr;
    size_t at = rows->first[bucket] + i, end = rows->first[bucket + 1];
    if (bucket == BOLT_BUCKET_META && !compacted) {
        at = rows->first[bucket];
        for (size_t shown = 0; at < end; at++) {
            if (!is_of_compaction(&entries[at]) && shown++ == i)
                break;
        }
    }
    return at < end ? &entries[at] : NULL;
}

static bool entry(struct snapshot_source *source, enum bolt_etcd_bucket bucket, size_t i,
                  int64_t compact_revision, struct snapshot_entry *ret_entry)
{
    struct snapshot_rows *rows = CONTAINER_OF(source, struct snapshot_rows, source);
    if (bucket == BOLT_BUCKET_LEASE)
        return lease_entry(rows, i, ret_entry);
    const struct snapshot_kept *kept = kept_at(rows, bucket, i, compact_revision >= 0);
    if (!kept)
        return false;
    *ret_entry = (struct snapshot_entry){kept->key, kept->value};
    if (is_of_compaction(kept)) {
        struct bolt_revision revision = {.main = compact_revision};
        ret_entry->value = slice_of(rows->value, bolt_revision_write(revision, rows->value));
    }
    return true;
}

void snapshot_rows_finish(struct snapshot_rows *rows, const struct snapshot_origin *origin)
{
    note_origin(rows, origin);
    leases_finish(&rows->leases);
    entries_finish(&rows->entries);
    const struct snapshot_kept *entries = (const void *)rows->entries.ptr;
    size_t count = rows->entries.len / sizeof(*entries), at = 0;
    for (unsigned bucket = 0; bucket <= BOLT_BUCKETS; bucket++) {
        while (at < count && entries[at].bucket < bucket)
            at++;
        rows->first[bucket] = at;
    }
}

/* -- Life -- */

void snapshot_rows_init(struct snapshot_rows *rows)
{
    *rows = (struct snapshot_rows){.source.entry = entry};
    arena_init(&rows->arena, NULL, 0, SIZE_MAX);
}

void snapshot_rows_fini(struct snapshot_rows *rows)
{
    buf_fini(&rows->leases);
    buf_fini(&rows->entries);
    arena_fini(&rows->arena);
}
