#include "import/status.h"

#include "base/container/hash_map.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "bolt/schema.h"
#include "codec/pb/kv.pb.h"

#include <stdlib.h>

enum { REPORT_EVERY = 1024 };

struct key_name {
    size_t len;
    uint8_t bytes[];
};

struct counting {
    struct import_source *source;
    struct import_progress *progress;
    struct import_status *status;
    struct error *error;
    struct hash_map names; /* struct key_name, owned: of keys that exist */
};

static struct slice name_of(const void *value)
{
    const struct key_name *name = value;
    return slice_of(name->bytes, name->len);
}

static enum status note_key(struct counting *c, struct slice key)
{
    if (hash_map_get(&c->names, key))
        return ST_OK;
    struct key_name *name = xmalloc(sizeof(*name) + key.len);
    name->len = key.len;
    slice_copy(name->bytes, key);
    void *replaced;
    return hash_map_put(&c->names, name, &replaced);
}

static void hash_bytes(struct counting *c, struct slice bytes)
{
    c->status->hash = crc32c(c->status->hash, bytes);
}

static enum status take_revision(struct counting *c, const struct bolt_entry *entry)
{
    struct bolt_revision revision;
    struct pb_key_value kv;
    struct arena none = {0};
    if (!bolt_revision_read(entry->key, &revision) ||
        pb_decode(&pb_key_value_table, entry->value, &none, &kv) != ST_OK)
        return error_set(c->error, ST_DAMAGED,
                         "%s cannot be read: it is damaged: the bucket \"key\" has something that "
                         "is not a revision, after revision %lld; save the snapshot again",
                         c->source->path, (long long)c->status->revision);
    c->status->revision = revision.main;
    if (!revision.is_tombstone)
        return note_key(c, kv.key);
    /* The key was deleted. It counts again if a later revision creates it. */
    free(hash_map_remove(&c->names, kv.key));
    return ST_OK;
}

static enum status take_bucket(struct counting *c, struct bolt_cursor *cursor, bool is_keys)
{
    const struct bolt_meta *meta = &c->source->reader.meta;
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        hash_bytes(c, entry.key);
        if (!entry.is_bucket) /* as in bbolt, nested buckets count without a value */
            hash_bytes(c, entry.value);
        if (is_keys)
            TRY(take_revision(c, &entry));
        if (++c->status->total_entries % REPORT_EVERY == 0)
            import_progress_report(c->progress, IMPORT_KEYS,
                                   (meta->pages - cursor->pages_left) * meta->page_bytes,
                                   meta->pages * meta->page_bytes);
    }
    return status == ST_END ? ST_OK : import_source_error(c->source, c->error);
}

static enum status take_all(struct counting *c, struct bolt_cursor *buckets)
{
    struct bolt_entry bucket;
    enum status status;
    while ((status = bolt_cursor_next(buckets, &bucket)) == ST_OK) {
        struct bolt_cursor cursor = {0};
        hash_bytes(c, bucket.key);
        bool is_keys = slice_equal(bucket.key, bolt_bucket_name(BOLT_BUCKET_KEY));
        status = bucket.is_bucket
                     ? bolt_cursor_init_in(&cursor, &c->source->reader, bucket.value)
                     : error_set(&c->source->reader.error, ST_DAMAGED,
                                 "it is damaged: it contains something that is not a bucket");
        status = status == ST_OK ? take_bucket(c, &cursor, is_keys)
                                 : import_source_error(c->source, c->error);
        bolt_cursor_fini(&cursor);
        TRY(status);
    }
    return status == ST_END ? ST_OK : import_source_error(c->source, c->error);
}

enum status import_status_read(struct import_source *source, struct import_progress *progress,
                               struct import_status *ret_status, struct error *ret_error)
{
    struct import_meta meta;
    TRY(import_meta_read(source, &meta, ret_error));
    const struct bolt_meta *file = &source->reader.meta;
    *ret_status = (struct import_status){.total_bytes = file->pages * file->page_bytes};
    memcpy(ret_status->version, meta.storage_version, sizeof(ret_status->version));
    struct counting c = {
        .source = source, .progress = progress, .status = ret_status, .error = ret_error};
    hash_map_init(&c.names, name_of, random_seed_system());
    struct bolt_cursor buckets;
    bolt_cursor_init(&buckets, &source->reader);
    enum status status = take_all(&c, &buckets);
    bolt_cursor_fini(&buckets);
    ret_status->total_keys = c.names.count;
    struct key_name *name;
    MAP_FOREACH (name, &c.names)
        free(name);
    hash_map_fini(&c.names);
    return status;
}
