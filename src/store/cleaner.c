#include "store/cleaner.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "store/change.h"

#include <stdlib.h>

struct copying {
    struct backend *backend;
    struct log_rewrite *rewrite;
    struct relocation *relocation;
    struct buf body;
    bool damaged;        /* something could not be read */
    uint64_t live_bytes; /* copied */
    size_t first_move;   /* of the record under way: its `to` are offsets in the body so far */
};

void relocation_free(struct relocation *relocation)
{
    if (!relocation)
        return;
    free(relocation->moves);
    free(relocation);
}
DEFINE_CLEANUP(struct relocation *, relocation_free)

static void move_add(struct relocation *relocation, log_loc from, log_loc to)
{
    if (relocation->count == relocation->capacity) {
        relocation->capacity = relocation->capacity ? relocation->capacity * 2 : 256;
        relocation->moves =
            xrealloc(relocation->moves, relocation->capacity * sizeof(*relocation->moves));
    }
    relocation->moves[relocation->count++] = (struct relocated){from, to};
}

static enum status is_alive(struct backend *backend, const struct change_head *change, log_loc loc,
                            bool *ret_alive)
{
    struct backend_version version;
    struct backend_version_id id = {change->revision, change->sub};
    enum status status = backend_version_get(backend, id, &version);
    if (status == ST_NOT_FOUND) {
        *ret_alive = false;
        return ST_OK;
    }
    *ret_alive = status == ST_OK && version.loc == loc;
    return status;
}

/* Gathers the living changes of a record into a new body. */
static enum status body_gather(struct copying *copying, const struct log_record *record)
{
    static const uint8_t head[CHANGE_BODY_HEAD_BYTES];
    copying->body.len = 0;
    copying->first_move = copying->relocation->count;
    TRY(buf_append(&copying->body, slice_of(head, sizeof(head))));
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    uint32_t alive_count = 0;
    for (;;) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            break;
        bool alive;
        TRY(is_alive(copying->backend, change, record->body_loc + offset, &alive));
        if (!alive)
            continue;
        move_add(copying->relocation, record->body_loc + offset, copying->body.len);
        TRY(buf_append(&copying->body, slice_of(change, change_bytes(change->field_bytes))));
        copying->live_bytes += segments_live_bytes(change->field_bytes);
        alive_count++;
    }
    memcpy(copying->body.ptr, &alive_count, sizeof(alive_count));
    return ST_OK;
}

static enum status record_copy(struct copying *copying, const struct log_record *record)
{
    if (record->type != LOG_RECORD_KV)
        return ST_OK; /* the checkpoint has what it said, rows too */
    TRY(body_gather(copying, record));
    struct relocation *relocation = copying->relocation;
    if (relocation->count == copying->first_move)
        return ST_OK;
    log_loc body_loc;
    TRY(log_rewrite_add(copying->rewrite, record, buf_slice(&copying->body), &body_loc));
    for (size_t i = copying->first_move; i < relocation->count; i++)
        relocation->moves[i].to += body_loc;
    return ST_OK;
}

static enum status find_info(const struct log *log, uint64_t id, struct log_segment_info *ret_info)
{
    size_t max = log_segments(log, NULL, 0) + 8;
    struct log_segment_info *infos = xmalloc(max * sizeof(*infos));
    size_t count = size_min(log_segments(log, infos, max), max);
    enum status status = ST_NOT_FOUND;
    for (size_t i = 0; i < count; i++) {
        if (infos[i].id == id) {
            *ret_info = infos[i];
            status = ST_OK;
        }
    }
    free(infos);
    return status;
}

/* Of records that cannot be read nothing is copied. */
static enum status records_copy(struct copying *copying, const struct log *log,
                                const struct log_segment_info *info)
{
    struct log_reader reader;
    log_reader_init(&reader, log, info->first_index);
    for (;;) {
        struct log_record record;
        enum status status = log_reader_next(&reader, info->last_index, &record);
        if (status == ST_END || reader.segment_id != info->id)
            return ST_OK;
        if (status == ST_DAMAGED) {
            copying->damaged = true;
            log_reader_pass_damage(&reader);
            continue;
        }
        TRY(status);
        TRY(record_copy(copying, &record));
    }
}

enum status cleaner_copy(struct log *log, struct backend *backend, uint64_t segment,
                         uint64_t live_bytes, struct relocation **ret_relocation)
{
    struct log_segment_info info;
    TRY(find_info(log, segment, &info));
    AUTO(relocation_freep) struct relocation *relocation = xcalloc(1, sizeof(*relocation));
    relocation->old_segment = segment;
    struct copying copying = {.backend = backend, .relocation = relocation};
    TRY(log_rewrite_begin(log, segment, &copying.rewrite));
    enum status status = records_copy(&copying, log, &info);
    if (status == ST_OK && copying.damaged && copying.live_bytes < live_bytes)
        status = ST_DAMAGED;
    if (status == ST_OK)
        status = log_rewrite_commit(TAKE(copying.rewrite), &relocation->new_segment);
    log_rewrite_abort(copying.rewrite);
    buf_fini(&copying.body);
    if (status == ST_OK)
        *ret_relocation = TAKE(relocation);
    return status;
}

enum status cleaner_record(const struct log *log, struct backend *backend,
                           struct segments *segments, const struct relocation *relocation)
{
    uint64_t live_bytes = 0;
    for (size_t i = 0; i < relocation->count; i++) {
        const struct relocated *move = &relocation->moves[i];
        const struct change_head *change;
        if (change_get(log, move->to, &change) != ST_OK &&
            change_get(log, move->from, &change) != ST_OK)
            continue; /* as in store_relocate */
        struct backend_version version;
        enum status status = backend_version_get(
            backend, (struct backend_version_id){change->revision, change->sub}, &version);
        if (status == ST_NOT_FOUND)
            continue; /* compacted away since it was copied */
        TRY(status);
        struct change_kv kv;
        change_read_kv(change, &kv);
        version.loc = move->to;
        version.key = kv.key; /* the backend's own copy dies with the change below */
        TRY(backend_version_put(backend, &version));
        live_bytes += segments_live_bytes(change->field_bytes);
    }
    return segments_replace(segments, relocation->old_segment, relocation->new_segment, live_bytes);
}
