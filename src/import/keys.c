#include "base/xalloc.h"
#include "bolt/schema.h"
#include "codec/pb/kv.pb.h"
#include "import/db.h"
#include "store/log/format.h"

#include <inttypes.h>
#include <stdlib.h>

enum { REPORT_EVERY = 1024 };

/* One change of the file, until its revision is complete. */
struct key_change {
    size_t offset, len; /* place of its KeyValue in bytes */
    int64_t sub;
    bool is_tombstone;
};

struct key_import {
    const struct import_source *source;
    struct store_builder *builder;
    struct error *error;
    int64_t revision; /* revision of the collected changes */
    int64_t reached;  /* the newest revision is at least this one, whatever is left of it */
    struct buf bytes;
    struct buf changes; /* struct key_change */
    struct buf kept;    /* struct imported_change */
};

static enum status refuse(const struct key_import *g, int64_t revision, const char *what)
{
    return error_set(g->error, ST_DAMAGED,
                     "%s cannot be read: it is damaged: revision %" PRId64
                     " of the bucket \"key\" %s; use another snapshot",
                     g->source->path, revision, what);
}

static enum status kept_of(const struct key_import *g, const struct key_change *one,
                           struct imported_change *ret_kept)
{
    struct slice message = slice_sub(buf_slice(&g->bytes), one->offset, one->len);
    struct pb_key_value kv;
    /* The message has only numbers and bytes, which point into the input, so decoding allocates
     * nothing. */
    struct arena none = {0};
    if (pb_decode(&pb_key_value_table, message, &none, &kv) != ST_OK || kv.key.len == 0)
        return refuse(g, g->revision, "is not a key and value");
    if (one->sub > UINT32_MAX)
        return refuse(g, g->revision, "has a change with an impossible number");
    bool is_whole = kv.mod_revision == g->revision && kv.create_revision > 0 &&
                    kv.create_revision <= kv.mod_revision && kv.version > 0 &&
                    kv.version <= kv.mod_revision;
    if (!one->is_tombstone && !is_whole)
        return refuse(g, g->revision, "says that it is another one");
    *ret_kept = (struct imported_change){
        .kv = {.key = kv.key},
        .sub = (uint32_t)one->sub,
        .is_tombstone = one->is_tombstone,
    };
    if (!one->is_tombstone)
        ret_kept->kv = (struct change_kv){
            .key = kv.key,
            .create_revision = kv.create_revision,
            .mod_revision = kv.mod_revision,
            .version = kv.version,
            .value = kv.value,
            .lease = kv.lease,
        };
    return ST_OK;
}

/* The revision is complete: adds it to the store. */
static enum status revision_end(struct key_import *g)
{
    const struct key_change *changes = (const void *)g->changes.ptr;
    size_t count = g->changes.len / sizeof(*changes);
    if (count == 0)
        return ST_OK;
    g->kept.len = 0;
    for (size_t i = 0; i < count; i++) {
        struct imported_change kept;
        TRY(kept_of(g, &changes[i], &kept));
        TRY(buf_append(&g->kept, slice_of(&kept, sizeof(kept))));
    }
    enum status status = store_builder_add(
        g->builder, g->revision, (const struct imported_change *)(const void *)g->kept.ptr, count);
    g->changes.len = 0;
    /* One large revision must not keep its memory for the rest of the import. */
    buf_reset(&g->bytes, 4 << 20);
    if (status == ST_INVALID)
        return refuse(g, g->revision, "is out of order");
    if (status != ST_OK)
        return store_builder_failed(g->builder, status, g->error);
    return ST_OK;
}

static enum status take(struct key_import *g, const struct bolt_entry *entry)
{
    struct bolt_revision revision;
    if (entry->is_bucket || !bolt_revision_read(entry->key, &revision))
        return error_set(g->error, ST_DAMAGED,
                         "%s cannot be read: it is damaged: the bucket \"key\" has something that "
                         "is not a revision, after revision %" PRId64 "; use another snapshot",
                         g->source->path, g->revision);
    if (revision.main > IMPORT_REVISION_MAX)
        return refuse(g, revision.main, "is larger than any revision");
    /* Keys of the bucket are sorted by revision, so a new number completes the one before. */
    if (revision.main != g->revision)
        TRY(revision_end(g));
    g->revision = revision.main;
    if (entry->value.len == 0 && !revision.is_tombstone) {
        /* Left by a restore that raised the revision: a number without a key. */
        g->reached = revision.main;
        return ST_OK;
    }
    struct key_change one = {g->bytes.len, entry->value.len, revision.sub, revision.is_tombstone};
    /* The changes of a revision become one record, which has a limit. They may have been put by
     * many requests of one transaction. */
    if (g->bytes.len + entry->value.len > RECORD_BODY_BYTES_MAX / 2)
        return error_set(g->error, ST_LIMIT,
                         "%s cannot be imported: revision %" PRId64 " has more than %d MiB of "
                         "changes",
                         g->source->path, g->revision, RECORD_BODY_BYTES_MAX / 2 >> 20);
    TRY(buf_append(&g->bytes, entry->value));
    return buf_append(&g->changes, slice_of(&one, sizeof(one)));
}

static enum status take_all(struct key_import *g, struct import_source *source,
                            struct bolt_cursor *cursor, struct import_progress *progress,
                            uint64_t *ret_changes)
{
    struct bolt_entry entry;
    enum status status;
    uint64_t pages = source->reader.meta.pages, page_bytes = source->reader.meta.page_bytes;
    uint64_t changes = 0;
    while ((status = bolt_cursor_next(cursor, &entry)) == ST_OK) {
        TRY(take(g, &entry));
        if (++changes % REPORT_EVERY == 0)
            import_progress_report(progress, IMPORT_KEYS, (pages - cursor->pages_left) * page_bytes,
                                   pages * page_bytes);
    }
    if (status != ST_END)
        return import_source_error(source, g->error);
    TRY(revision_end(g));
    store_builder_reach(g->builder, g->reached);
    import_progress_report(progress, IMPORT_KEYS, pages * page_bytes, pages * page_bytes);
    *ret_changes = changes;
    return ST_OK;
}

enum status import_keys(struct import_source *source, struct store_builder *builder,
                        struct import_progress *progress, struct import_counts *counts,
                        struct error *ret_error)
{
    struct key_import g = {.source = source, .builder = builder, .error = ret_error};
    struct bolt_cursor cursor;
    enum status status =
        bolt_cursor_init_named(&cursor, &source->reader, bolt_bucket_name(BOLT_BUCKET_KEY));
    if (status == ST_OK)
        status = take_all(&g, source, &cursor, progress, &counts->changes);
    else
        status = import_source_error(source, ret_error);
    bolt_cursor_fini(&cursor);
    buf_fini(&g.bytes);
    buf_fini(&g.changes);
    buf_fini(&g.kept);
    return status;
}
