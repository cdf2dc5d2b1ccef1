#include "store/compaction.h"

#include "store/change.h"

void compaction_init(struct compaction *compaction, struct apply *apply, int64_t trimmed)
{
    *compaction = (struct compaction){.apply = apply, .trimmed = trimmed};
}

bool compaction_done(const struct compaction *compaction)
{
    return compaction->trimmed >= compaction->apply->compact_revision;
}

static bool version_before(const struct change_head *a, const struct change_head *b)
{
    return a->revision < b->revision || (a->revision == b->revision && a->sub < b->sub);
}

/* Drops what the change has replaced. */
static void change_trim(struct compaction *compaction, const struct change_head *change)
{
    struct apply *apply = compaction->apply;
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_find(apply->index, kv.key);
    if (!item)
        return;
    const uint64_t *older = index_item_older(item);
    uint32_t drop = 0;
    int64_t freed_bytes = 0;
    for (; drop < item->older_count; drop++) {
        const struct change_head *version = change_at(log_at(apply->log, older[drop]));
        bool is_tombstone_itself = change_is_tombstone(change) &&
                                   !version_before(change, version) &&
                                   !version_before(version, change);
        if (!version_before(version, change) && !is_tombstone_itself)
            break;
        freed_bytes += apply_db_bytes(version->field_bytes);
    }
    bool whole = change_is_tombstone(change) && item->newest.mod_revision == change->revision &&
                 item->newest.sub_revision == change->sub;
    if (drop || whole) {
        index_trim(apply->index, kv.key, drop, whole);
        apply->db_bytes_in_use -= freed_bytes + (whole ? apply_db_bytes(change->field_bytes) : 0);
    }
}

/*
 * Trims what a record has replaced, from where the last step stopped in it. Its body is the same as
 * then, also if the cleaner has moved it: all of it lives until it is trimmed.
 */
static enum status record_trim(struct compaction *compaction, const struct log_record *record,
                               unsigned *changes_left)
{
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    if (compaction->left) {
        walk.offset = compaction->offset;
        walk.left = compaction->left;
    }
    while (*changes_left) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            break;
        change_trim(compaction, change);
        (*changes_left)--;
    }
    compaction->offset = walk.offset;
    compaction->left = walk.left;
    compaction->trimmed = walk.left ? record->revision : record->revision + 1;
    return ST_OK;
}

enum status compaction_step(struct compaction *compaction, uint64_t last_index,
                            unsigned changes_max)
{
    int64_t target = compaction->apply->compact_revision;
    struct log_reader reader;
    log_reader_seek_revision(&reader, compaction->apply->log, compaction->trimmed);
    while (changes_max && compaction->trimmed < target) {
        struct log_record record;
        enum status status = log_reader_next(&reader, last_index, &record);
        if (status == ST_END || (status == ST_OK && record.revision >= target)) {
            compaction->trimmed = target;
            break;
        }
        TRY(status);
        if (record.type == LOG_RECORD_KV)
            TRY(record_trim(compaction, &record, &changes_max));
    }
    return ST_OK;
}
