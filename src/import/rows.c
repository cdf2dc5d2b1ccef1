#include "bolt/schema.h"
#include "codec/pb/raft.pb.h"
#include "codec/pb/rpc.pb.h"
#include "import/db.h"
#include "lease/lessor.h"
#include "store/record/row_values.h"

#include <inttypes.h>

/* A server with more refuses to start. */
enum { ALARMS_MAX = 64 };

struct taking {
    const struct import_source *source;
    struct store_builder *builder;
    struct auth_store *auth; /* checks users and roles */
    row_fn seen;
    void *seen_ctx;
    struct import_counts *counts;
    struct error *error;
};

static enum status refuse(const struct taking *t, enum bolt_etcd_bucket bucket, const char *what)
{
    return error_set(t->error, ST_DAMAGED,
                     "%s cannot be read: it is damaged: the bucket \"%.*s\" has %s; use another "
                     "snapshot",
                     t->source->path, SLICE_ARGS(bolt_bucket_name(bucket)), what);
}

static enum status add(const struct taking *t, const struct row *row)
{
    if (row->key.len > ROW_KEY_BYTES_MAX)
        return error_set(t->error, ST_LIMIT,
                         "%s cannot be imported: the name of a user or role has %zu bytes, and %d "
                         "is the most",
                         t->source->path, row->key.len, ROW_KEY_BYTES_MAX);
    enum status status = store_builder_add_rows(t->builder, row, 1);
    if (status != ST_OK)
        return store_builder_failed(t->builder, status, t->error);
    return t->seen ? t->seen(t->seen_ctx, row) : ST_OK;
}

static enum status take_lease(const struct taking *t, const struct bolt_entry *entry)
{
    struct pb_stored_lease lease;
    struct arena none = {0};
    if (entry->key.len != BOLT_NUMBER_BYTES ||
        pb_decode(&pb_stored_lease_table, entry->value, &none, &lease) != ST_OK || lease.id == 0 ||
        (uint64_t)lease.id != bolt_number_read(entry->key.ptr) || lease.ttl > LEASE_TTL_MAX_S)
        return refuse(t, BOLT_BUCKET_LEASE, "something that is not a lease");
    /* A lease that is too short is extended, as in a starting etcd. */
    struct lease_row kept = {.id = lease.id, .ttl_s = lease.ttl > 0 ? lease.ttl : 1};
    if (lease.remaining_ttl > 0 && lease.remaining_ttl < kept.ttl_s)
        kept.remaining_s = lease.remaining_ttl;
    struct row row = lease_row_make(&kept, false);
    t->counts->leases++;
    return add(t, &row);
}

static enum status take_alarm(const struct taking *t, const struct bolt_entry *entry)
{
    struct pb_alarm_member alarm;
    struct arena none = {0};
    if (pb_decode(&pb_alarm_member_table, entry->key, &none, &alarm) != ST_OK)
        return refuse(t, BOLT_BUCKET_ALARM, "something that is not an alarm");
    if (t->counts->alarms == ALARMS_MAX)
        return refuse(t, BOLT_BUCKET_ALARM, "more alarms than any cluster has");
    struct alarm_row_key key = alarm_row_key_make(alarm.alarm, alarm.member_id);
    struct row row = alarm_row_make(&key, false);
    t->counts->alarms++;
    return add(t, &row);
}

static enum status take_auth(const struct taking *t, enum bolt_etcd_bucket bucket,
                             const struct bolt_entry *entry)
{
    static const struct {
        enum auth_table table;
        enum row_table rows;
    } kinds[BOLT_BUCKETS] = {
        [BOLT_BUCKET_USERS] = {AUTH_TABLE_USERS, ROW_USER},
        [BOLT_BUCKET_ROLES] = {AUTH_TABLE_ROLES, ROW_ROLE},
        [BOLT_BUCKET_AUTH] = {AUTH_TABLE_STATE, ROW_AUTH},
    };
    struct auth_row known = {
        .table = kinds[bucket].table, .key = entry->key, .value = entry->value};
    enum status status = auth_store_apply(t->auth, &known);
    if (status == ST_LIMIT)
        return error_set(t->error, ST_LIMIT,
                         "%s cannot be imported: its users and roles take more than %d MiB",
                         t->source->path, AUTH_STORE_BYTES_MAX >> 20);
    if (status != ST_OK)
        return refuse(t, bucket, "a row that no etcd writes");
    t->counts->users += bucket == BOLT_BUCKET_USERS;
    t->counts->roles += bucket == BOLT_BUCKET_ROLES;
    struct row row = {.table = kinds[bucket].rows, .key = entry->key, .value = entry->value};
    return add(t, &row);
}

static enum status take(const struct taking *t, enum bolt_etcd_bucket bucket,
                        const struct bolt_entry *entry)
{
    if (bucket == BOLT_BUCKET_LEASE)
        return take_lease(t, entry);
    if (bucket == BOLT_BUCKET_ALARM)
        return take_alarm(t, entry);
    return take_auth(t, bucket, entry);
}

static enum status take_bucket(const struct taking *t, struct import_source *source,
                               enum bolt_etcd_bucket bucket)
{
    struct bolt_cursor cursor;
    enum status status = bolt_cursor_init_named(&cursor, &source->reader, bolt_bucket_name(bucket));
    bool read = true;
    struct bolt_entry entry;
    while (status == ST_OK && (status = bolt_cursor_next(&cursor, &entry)) == ST_OK) {
        status = take(t, bucket, &entry);
        read = status == ST_OK;
    }
    bolt_cursor_fini(&cursor);
    /* A bucket that older versions of etcd do not create is empty. */
    if (status == ST_END || status == ST_NOT_FOUND)
        return ST_OK;
    /* Either the file could not be read, or a row of it was refused with an error of its own. */
    return read ? import_source_error(source, t->error) : status;
}

enum status import_rows(struct import_source *source, struct store_builder *builder, row_fn seen,
                        void *seen_ctx, struct import_counts *counts, struct error *ret_error)
{
    static const enum bolt_etcd_bucket buckets[] = {
        BOLT_BUCKET_LEASE, BOLT_BUCKET_ALARM, BOLT_BUCKET_ROLES,
        BOLT_BUCKET_USERS, BOLT_BUCKET_AUTH,
    };
    AUTO(auth_store_freep) struct auth_store *auth = auth_store_new();
    struct taking t = {source, builder, auth, seen, seen_ctx, counts, ret_error};
    for (size_t i = 0; i < COUNT_OF(buckets); i++)
        TRY(take_bucket(&t, source, buckets[i]));
    counts->auth_enabled = auth_store_enabled(auth);
    return ST_OK;
}
