#include "import/v2/replay.h"

#include "base/random.h"
#include "base/xalloc.h"
#include "import/v2/members.h"
#include "import/v2/notes.h"
#include "import/v2/snapshot.h"

#include <stdlib.h>

enum { ENTRY_CONF_CHANGE = 1, METHODS = 5, NAME_BYTES_MAX = 256, NAMES_MAX = 1000 };
/* etcd 3.4 refuses a log with a longer record. */
#define RECORD_BYTES_MAX ((uint64_t)10 << 20)

/* -- Requests -- */

static const char *const methods[METHODS] = {"POST", "PUT", "DELETE", "QGET", "SYNC"};

static bool is_method(struct slice text)
{
    for (size_t i = 0; i < METHODS; i++) {
        if (slice_is(text, methods[i]))
            return true;
    }
    return false;
}

static enum status put(struct v2_tree *tree, struct v2_members *members,
                       const struct pb_log_v2_request *request, const struct v2_tree_change *change,
                       struct error *ret_error)
{
    bool compares = request->prev_index > 0 || request->prev_value.len > 0;
    bool has_exist = request->prev_exist_set_case == PB_LOG_V2_REQUEST_PREV_EXIST;
    /* The key must not exist yet. */
    if (has_exist && !request->prev_exist)
        return v2_tree_create(tree, change, false);
    /* The key must have this value or index. */
    if (compares)
        return v2_tree_compare_and_swap(tree, change);
    if (has_exist)
        return v2_tree_update(tree, change);
    bool taken;
    TRY(v2_members_put(members, request->path, request->val, &taken, ret_error));
    return taken ? ST_OK : v2_tree_set(tree, change);
}

static enum status apply(struct v2_tree *tree, struct v2_members *members,
                         const struct pb_log_v2_request *request, struct error *ret_error)
{
    struct v2_tree_change change = {
        .path = request->path,
        .value = request->val,
        .is_dir = request->dir,
        .expires_ns = request->expiration,
        .is_refresh = request->refresh,
        .prev_value = request->prev_value,
        .prev_index = request->prev_index,
    };
    if (slice_is(request->method, "PUT"))
        return put(tree, members, request, &change, ret_error);
    if (slice_is(request->method, "POST"))
        return v2_tree_create(tree, &change, true);
    if (slice_is(request->method, "DELETE"))
        return request->prev_index > 0 || request->prev_value.len > 0
                   ? v2_tree_compare_and_delete(tree, &change)
                   : v2_tree_delete(tree, request->path, request->dir, request->recursive);
    if (slice_is(request->method, "SYNC"))
        v2_tree_expire(tree, request->time);
    else if (!slice_is(request->method, "QGET"))
        return error_set(ret_error, ST_DAMAGED, "the log has a request of no known method");
    return ST_OK;
}

static enum status apply_request(struct v2_tree *tree, struct v2_members *members,
                                 struct slice bytes, struct error *ret_error)
{
    struct arena none = {0};
    struct pb_log_v2_request request;
    if (pb_decode(&pb_log_v2_request_table, bytes, &none, &request) != ST_OK)
        return error_set(ret_error, ST_DAMAGED, "the log has something that is not a request");
    enum status status = apply(tree, members, &request, ret_error);
    /* The tree has refused it, without a text of its own. */
    if (status == ST_LIMIT && !ret_error->text[0])
        return error_set(ret_error, ST_LIMIT,
                         "the log has a key of more than %d levels, or the v2 store more than %d "
                         "nodes",
                         V2_TREE_DEPTH_MAX, V2_TREE_NODES_MAX);
    return status;
}

static enum status apply_conf_change(struct v2_members *members, struct slice bytes,
                                     struct error *ret_error)
{
    struct arena none = {0};
    struct pb_log_conf_change change;
    if (pb_decode(&pb_log_conf_change_table, bytes, &none, &change) != ST_OK)
        return error_set(ret_error, ST_DAMAGED,
                         "the log has something that is not a change of "
                         "the members");
    return v2_members_change(members, &change, ret_error);
}

enum status v2_replay_entry(struct v2_tree *tree, struct v2_members *members,
                            const struct pb_log_entry *entry, struct error *ret_error)
{
    struct arena none = {0};
    struct pb_log_v2_entry v2;
    ret_error->text[0] = 0;
    if (entry->type == ENTRY_CONF_CHANGE)
        return apply_conf_change(members, entry->data, ret_error);
    if (pb_decode(&pb_log_v2_entry_table, entry->data, &none, &v2) != ST_OK)
        return error_set(ret_error, ST_DAMAGED, "the log has something that is not a request");
    if (v2.v2.len == 0)
        return ST_OK; /* a request of the v3 API, or an election */
    return apply_request(tree, members, is_method(v2.v2) ? entry->data : v2.v2, ret_error);
}

/* -- The directory -- */

/* etcd's words for what is wrong with the log; NULL: it has none. */
static const char *fault_text(enum import_wal_fault fault)
{
    switch (fault) {
    case IMPORT_WAL_NO_FILE:
        return "wal: file not found";
    case IMPORT_WAL_CHECKSUM:
        return "walpb: crc mismatch";
    case IMPORT_WAL_CHAIN:
        return "wal: crc mismatch";
    case IMPORT_WAL_GAP:
        return "wal: slice bounds out of range";
    case IMPORT_WAL_FINE:
        break;
    }
    return NULL;
}

/* Names in the log's directory that are neither files of the log nor prepared for it. */
struct foreign {
    char (*names)[NAME_BYTES_MAX];
    size_t count;
};

static void note_name(void *ctx, const char *name)
{
    struct foreign *foreign = ctx;
    size_t len = strlen(name);
    if (len >= NAME_BYTES_MAX || foreign->count == NAMES_MAX || import_wal_has_name(name) ||
        (len > 4 && strcmp(name + len - 4, ".tmp") == 0))
        return;
    foreign->names = xrealloc(foreign->names, (foreign->count + 1) * sizeof(*foreign->names));
    memcpy(foreign->names[foreign->count++], name, len + 1);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void note_foreign_files(const struct v2_store_options *options)
{
    struct foreign foreign = {0};
    if (fs_list(options->fs, options->wal_dir, note_name, &foreign) == ST_OK && foreign.count)
        qsort(foreign.names, foreign.count, sizeof(*foreign.names), compare_names);
    for (size_t i = 0; i < foreign.count; i++)
        v2_note_write(options->notes,
                      &(struct v2_note){"warn",
                                        "ignored file in WAL directory",
                                        {{.name = "path", .text = foreign.names[i]}}});
    free(foreign.names);
}

static enum status open_log(struct import_wal *wal, const struct v2_store_options *options,
                            const struct v2_snapshot *snapshot, struct error *ret_error)
{
    note_foreign_files(options);
    enum status status =
        import_wal_open(wal, options->fs, options->wal_dir, snapshot->index, ret_error);
    const char *text = fault_text(wal->fault);
    /* The log is damaged; the error has etcd's words. */
    if (status != ST_OK && text)
        return error_set(ret_error, status, "%s", text);
    TRY(status);
    if (wal->torn_bytes >= RECORD_BYTES_MAX)
        return error_set(ret_error, ST_DAMAGED, "wal: max entry size limit exceeded");
    if (!wal->has_snapshot)
        return error_set(ret_error, ST_DAMAGED, "wal: snapshot not found");
    if (wal->snapshot_term != snapshot->term)
        return error_set(ret_error, ST_DAMAGED, "wal: snapshot mismatch");
    return ST_OK;
}

/* A change of the members does not count as an entry, as in the original. */
static enum status replay(struct v2_store *store, struct v2_members *members,
                          struct import_wal *wal, struct error *ret_error)
{
    for (size_t i = 0; i < wal->place_count; i++) {
        struct pb_log_entry entry;
        TRY(import_wal_entry(wal, i, &entry, ret_error));
        TRY(v2_replay_entry(&store->tree, members, &entry, ret_error));
        if (entry.type != ENTRY_CONF_CHANGE && entry.index > store->raft_index)
            store->raft_index = entry.index;
    }
    return ST_OK;
}

enum status v2_store_load(struct v2_store *store, const struct v2_store_options *options,
                          struct error *ret_error)
{
    struct v2_snapshot snapshot;
    struct import_wal wal = {0};
    struct v2_members members;
    *store = (struct v2_store){0};
    v2_tree_init(&store->tree, random_seed_system());
    TRY(v2_snapshot_load(options->fs, options->snap_dir, options->notes, &store->tree, &snapshot,
                         ret_error));
    store->raft_index = snapshot.index;
    v2_members_init(&members, &store->tree, options->notes);
    enum status status = open_log(&wal, options, &snapshot, ret_error);
    if (status == ST_OK)
        status = v2_members_recover(&members, ret_error);
    if (status == ST_OK)
        status = replay(store, &members, &wal, ret_error);
    v2_members_fini(&members);
    import_wal_close(&wal);
    return status;
}

void v2_store_fini(struct v2_store *store)
{
    v2_tree_fini(&store->tree);
}
