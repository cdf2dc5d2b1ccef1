#include "bolt/schema.h"
#include "import/db.h"

#include <limits.h>
#include <stdlib.h>

static int64_t revision_of(struct slice value)
{
    struct bolt_revision revision;
    return bolt_revision_read(value, &revision) ? revision.main : -1;
}

static uint64_t number_of(struct slice value)
{
    return value.len == BOLT_NUMBER_BYTES ? bolt_number_read(value.ptr) : 0;
}

/* The text will be shown on a terminal and in JSON. */
static void text_of(struct slice value, char *to, size_t size)
{
    size_t len = size_min(value.len, size - 1);
    for (size_t i = 0; i < len; i++) {
        bool is_plain = value.ptr[i] > ' ' && value.ptr[i] < 0x7f && value.ptr[i] != '"' &&
                        value.ptr[i] != '\\';
        to[i] = is_plain ? (char)value.ptr[i] : '?';
    }
    to[len] = '\0';
}

static void take_meta(void *ctx, const struct bolt_entry *entry)
{
    struct import_meta *meta = ctx;
    if (slice_equal(entry->key, BOLT_META_INDEX))
        meta->consistent_index = number_of(entry->value);
    else if (slice_equal(entry->key, BOLT_META_FINISHED_COMPACT))
        meta->finished_compact = revision_of(entry->value);
    else if (slice_equal(entry->key, BOLT_META_SCHEDULED_COMPACT))
        meta->scheduled_compact = revision_of(entry->value);
    else if (slice_equal(entry->key, BOLT_META_STORAGE_VERSION))
        text_of(entry->value, meta->storage_version, sizeof(meta->storage_version));
}

static void take_cluster(void *ctx, const struct bolt_entry *entry)
{
    struct import_meta *meta = ctx;
    if (slice_equal(entry->key, BOLT_CLUSTER_VERSION))
        text_of(entry->value, meta->cluster_version, sizeof(meta->cluster_version));
}

static void take_member(void *ctx, const struct bolt_entry *entry)
{
    (void)entry;
    struct import_meta *meta = ctx;
    meta->members++;
}

/* A missing bucket counts as empty. */
static enum status each(struct import_source *source, enum bolt_etcd_bucket bucket,
                        void (*fn)(void *ctx, const struct bolt_entry *entry), void *ctx,
                        bool *ret_there)
{
    struct bolt_cursor cursor;
    enum status status = bolt_cursor_init_named(&cursor, &source->reader, bolt_bucket_name(bucket));
    *ret_there = status != ST_NOT_FOUND;
    struct bolt_entry entry;
    while (status == ST_OK && (status = bolt_cursor_next(&cursor, &entry)) == ST_OK)
        fn(ctx, &entry);
    bolt_cursor_fini(&cursor);
    return status == ST_END || status == ST_NOT_FOUND ? ST_OK : status;
}

static enum status check_version(const struct import_source *source, struct import_meta *meta,
                                 struct error *ret_error)
{
    if (!*meta->storage_version)
        return ST_OK; /* before 3.6 */
    char *end;
    unsigned long major = strtoul(meta->storage_version, &end, 10), minor = ULONG_MAX;
    if (*end == '.')
        minor = strtoul(end + 1, &end, 10);
    if (minor == ULONG_MAX)
        return error_set(ret_error, ST_DAMAGED,
                         "%s is damaged: its storage version is invalid; save the snapshot again",
                         source->path);
    if (major == 3 && minor <= IMPORT_MINOR_MAX) {
        meta->storage_minor = (unsigned)minor;
        return ST_OK;
    }
    return error_set(ret_error, ST_WRONG_FORMAT,
                     "%s has storage version %s, which is newer than 3.%d, the newest this version "
                     "of Vigil reads; use a newer Vigil, or downgrade the etcd first (etcdctl "
                     "downgrade enable)",
                     source->path, meta->storage_version, IMPORT_MINOR_MAX);
}

enum status import_meta_read(struct import_source *source, struct import_meta *ret_meta,
                             struct error *ret_error)
{
    *ret_meta = (struct import_meta){.finished_compact = -1, .scheduled_compact = -1};
    bool has_meta, has_keys, there;
    enum status status = each(source, BOLT_BUCKET_META, take_meta, ret_meta, &has_meta);
    if (status == ST_OK)
        status = each(source, BOLT_BUCKET_CLUSTER, take_cluster, ret_meta, &there);
    if (status == ST_OK)
        status = each(source, BOLT_BUCKET_MEMBERS, take_member, ret_meta, &there);
    if (status != ST_OK)
        return import_source_error(source, ret_error);
    struct bolt_cursor keys;
    status = bolt_cursor_init_named(&keys, &source->reader, bolt_bucket_name(BOLT_BUCKET_KEY));
    bolt_cursor_fini(&keys);
    has_keys = status != ST_NOT_FOUND;
    if (has_keys && status != ST_OK)
        return import_source_error(source, ret_error);
    if (!has_meta || !has_keys)
        return error_set(ret_error, ST_WRONG_FORMAT,
                         "%s is a bbolt file and not etcd's: it has no bucket \"%s\"; name a "
                         "snapshot or the data directory of an etcd",
                         source->path, has_keys ? "meta" : "key");
    return check_version(source, ret_meta, ret_error);
}
