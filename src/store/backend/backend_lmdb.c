/*
 * The checkpoint in LMDB. The only file that uses LMDB.
 *
 * Every commit is a fully synced transaction: no NOSYNC (except while a new file is made, which is
 * synced before it gets its name), NOMETASYNC, WRITEMAP, DUPSORT or nested transactions. The map is
 * reserved at once and never resized. Keys are revisions, segment ids and our own names, never a
 * user's key, which may be longer than LMDB's 511 bytes.
 *
 * Reads outside a transaction use one read transaction that is reset at the next begin, so that it
 * never keeps freed pages from being used again.
 */
#include "store/backend/backend_private.h"
#include "store/backend/lmdb_pages.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { VERSION_KEY_BYTES = 12, READERS_MAX = 16 };

struct backend_lmdb {
    struct backend backend;
    MDB_env *env;
    MDB_dbi meta, versions, segments, rows;
    MDB_txn *write;                 /* between begin and commit */
    MDB_txn *read;                  /* begun once, then reset and renewed */
    bool reading;                   /* read is renewed */
    MDB_cursor *cursor;             /* cursor of the transaction `write`, over versions */
    struct backend_version_id last; /* the greatest version, as seen by write */
    struct buf value;               /* a version is encoded here */
};

static struct backend_lmdb *lmdb_of(struct backend *backend)
{
    return CONTAINER_OF(backend, struct backend_lmdb, backend);
}

/* -- Errors -- */

static enum status status_from_lmdb(int code)
{
    switch (code) {
    case MDB_SUCCESS:
        return ST_OK;
    case MDB_NOTFOUND:
        return ST_NOT_FOUND;
    case MDB_MAP_FULL:
        return ST_DISK_FULL;
    case MDB_TXN_FULL:
    case MDB_READERS_FULL:
        return ST_LIMIT;
    case MDB_VERSION_MISMATCH:
    case MDB_INVALID:
        return ST_WRONG_FORMAT;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
        return ST_DAMAGED;
    default:
        return code > 0 ? status_from_errno(code) : ST_INTERNAL;
    }
}

/* What the codes mean here, and what to do. */
static const struct {
    int code;
    const char *what, *advice;
} faults[] = {
    {MDB_CORRUPTED, "data.mdb is damaged (MDB_CORRUPTED)", "nothing was changed"},
    {MDB_PAGE_NOTFOUND, "data.mdb is damaged (MDB_PAGE_NOTFOUND)", "nothing was changed"},
    {MDB_INVALID, "data.mdb is not a checkpoint (MDB_INVALID)", "nothing was changed"},
    {MDB_VERSION_MISMATCH, "data.mdb is in another format (MDB_VERSION_MISMATCH)",
     "use the version of Vigil that wrote it, or restore a snapshot"},
    {MDB_PANIC, "an earlier write has failed (MDB_PANIC)",
     "see whether the disk fails, then start again"},
    {MDB_MAP_FULL, "data.mdb has reached its greatest size (MDB_MAP_FULL)",
     "raise the limit of the address space (ulimit -v), of which it may use a quarter, or delete "
     "keys and compact"},
    {ENOSPC, "no space left on the disk", "free some, or enlarge it"},
    {EDQUOT, "the quota of the disk is used up", "raise it, or free space"},
    {EACCES, "permission denied", "the user of the server must own the directory and its files"},
    {EROFS, "the disk is mounted read-only", "see in the kernel's log why, and mount it again"},
    {ENOMEM, "out of memory", "give the server more of it, or a larger address space (ulimit -v)"},
};

/* Records the reason, unless the entry only does not exist. */
static enum status lmdb_check(struct backend_lmdb *lmdb, int code, const char *doing)
{
    if (code == MDB_SUCCESS || code == MDB_NOTFOUND)
        return status_from_lmdb(code);
    const char *what = mdb_strerror(code), *advice = "see whether the disk fails";
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        if (faults[i].code == code) {
            what = faults[i].what;
            advice = faults[i].advice;
        }
    }
    snprintf(lmdb->backend.error_text, sizeof(lmdb->backend.error_text),
             "checkpoint, while %s: %s; %s", doing, what, advice);
    return status_from_lmdb(code);
}

static enum status lmdb_damaged(struct backend_lmdb *lmdb, const char *what)
{
    snprintf(lmdb->backend.error_text, sizeof(lmdb->backend.error_text),
             "the checkpoint is damaged: %s in data.mdb is not in a known form", what);
    return ST_DAMAGED;
}

/* -- Keys and values -- */

struct version_key {
    uint8_t bytes[VERSION_KEY_BYTES];
};

static struct version_key version_key(struct backend_version_id id)
{
    struct version_key key;
    uint64_t revision = htobe64((uint64_t)id.revision);
    uint32_t sub = htobe32(id.sub);
    memcpy(key.bytes, &revision, sizeof(revision));
    memcpy(key.bytes + sizeof(revision), &sub, sizeof(sub));
    return key;
}

static struct backend_version_id version_id(const MDB_val *key)
{
    uint64_t revision;
    uint32_t sub;
    memcpy(&revision, key->mv_data, sizeof(revision));
    memcpy(&sub, (const uint8_t *)key->mv_data + sizeof(revision), sizeof(sub));
    return (struct backend_version_id){(int64_t)be64toh(revision), be32toh(sub)};
}

static MDB_val value_of(const void *bytes, size_t len)
{
    return (MDB_val){.mv_size = len, .mv_data = (void *)(uintptr_t)bytes};
}

static enum status version_from(struct backend_lmdb *lmdb, const MDB_val *key, const MDB_val *value,
                                struct backend_version *ret_version)
{
    if (key->mv_size != VERSION_KEY_BYTES ||
        backend_version_decode(version_id(key), slice_of(value->mv_data, value->mv_size),
                               ret_version) != ST_OK)
        return lmdb_damaged(lmdb, "a version");
    return ST_OK;
}

static bool id_after(struct backend_version_id a, struct backend_version_id b)
{
    return a.revision != b.revision ? a.revision > b.revision : a.sub > b.sub;
}

/* -- Transactions -- */

static void stop_reading(struct backend_lmdb *lmdb)
{
    if (lmdb->reading)
        mdb_txn_reset(lmdb->read);
    lmdb->reading = false;
}

/* The transaction to read in: the one in progress, or the permanent read transaction. */
static enum status reading_txn(struct backend_lmdb *lmdb, MDB_txn **ret_txn)
{
    if (!lmdb->write && !lmdb->reading) {
        int code = lmdb->read ? mdb_txn_renew(lmdb->read)
                              : mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &lmdb->read);
        TRY(lmdb_check(lmdb, code, "beginning to read"));
        lmdb->reading = true;
    }
    *ret_txn = lmdb->write ? lmdb->write : lmdb->read;
    return ST_OK;
}

static void lmdb_abort(struct backend *backend)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    if (lmdb->cursor)
        mdb_cursor_close(TAKE(lmdb->cursor));
    mdb_txn_abort(TAKE(lmdb->write));
}

static enum status find_last(struct backend_lmdb *lmdb)
{
    MDB_val key, value;
    enum status status =
        lmdb_check(lmdb, mdb_cursor_get(lmdb->cursor, &key, &value, MDB_LAST), "reading");
    lmdb->last = (struct backend_version_id){0};
    if (status == ST_NOT_FOUND)
        return ST_OK;
    TRY(status);
    if (key.mv_size != VERSION_KEY_BYTES)
        return lmdb_damaged(lmdb, "a version");
    lmdb->last = version_id(&key);
    return ST_OK;
}

static enum status lmdb_begin(struct backend *backend)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    stop_reading(lmdb);
    TRY(lmdb_check(lmdb, mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->write), "beginning"));
    enum status status =
        lmdb_check(lmdb, mdb_cursor_open(lmdb->write, lmdb->versions, &lmdb->cursor), "beginning");
    if (status == ST_OK)
        status = find_last(lmdb);
    if (status != ST_OK)
        lmdb_abort(backend);
    return status;
}

static enum status lmdb_commit(struct backend *backend)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    mdb_cursor_close(TAKE(lmdb->cursor));
    return lmdb_check(lmdb, mdb_txn_commit(TAKE(lmdb->write)), "committing");
}

/* -- Meta -- */

static enum status lmdb_meta_put(struct backend *backend, enum backend_meta name, int64_t number)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    MDB_val key = value_of(backend_meta_name(name), strlen(backend_meta_name(name)));
    MDB_val value = value_of(&number, sizeof(number));
    return lmdb_check(lmdb, mdb_put(lmdb->write, lmdb->meta, &key, &value, 0), "writing");
}

static enum status take_number(struct backend_lmdb *lmdb, const MDB_val *key, const MDB_val *value)
{
    struct backend_numbers *numbers = &lmdb->backend.numbers;
    for (size_t i = 0; i < BACKEND_META_COUNT; i++) {
        if (key->mv_size != strlen(backend_meta_name((enum backend_meta)i)) ||
            memcmp(key->mv_data, backend_meta_name((enum backend_meta)i), key->mv_size) != 0)
            continue;
        if (value->mv_size != sizeof(numbers->values[i]))
            return lmdb_damaged(lmdb, backend_meta_name((enum backend_meta)i));
        memcpy(&numbers->values[i], value->mv_data, sizeof(numbers->values[i]));
        numbers->present[i] = true;
        return ST_OK;
    }
    return lmdb_damaged(lmdb, "the name of a number");
}

static enum status read_numbers(struct backend_lmdb *lmdb)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    TRY(reading_txn(lmdb, &txn));
    TRY(lmdb_check(lmdb, mdb_cursor_open(txn, lmdb->meta, &cursor), "reading"));
    MDB_val key, value;
    enum status status = ST_OK;
    while (status == ST_OK) {
        status = lmdb_check(lmdb, mdb_cursor_get(cursor, &key, &value, MDB_NEXT), "reading");
        if (status == ST_OK)
            status = take_number(lmdb, &key, &value);
    }
    mdb_cursor_close(cursor);
    return status == ST_NOT_FOUND ? ST_OK : status;
}

/* -- Versions -- */

static enum status lmdb_version_get(struct backend *backend, struct backend_version_id id,
                                    struct backend_version *ret_version)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    MDB_txn *txn;
    TRY(reading_txn(lmdb, &txn));
    struct version_key bytes = version_key(id);
    MDB_val key = value_of(bytes.bytes, sizeof(bytes.bytes)), value;
    TRY(lmdb_check(lmdb, mdb_get(txn, lmdb->versions, &key, &value), "reading"));
    return version_from(lmdb, &key, &value, ret_version);
}

static struct backend_version_id lmdb_version_bound(struct backend *backend)
{
    return lmdb_of(backend)->last;
}

static enum status lmdb_version_put(struct backend *backend, const struct backend_version *version)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    lmdb->value.len = 0;
    TRY(backend_version_encode(version, &lmdb->value));
    struct version_key bytes = version_key(version->id);
    MDB_val key = value_of(bytes.bytes, sizeof(bytes.bytes));
    MDB_val value = value_of(lmdb->value.ptr, lmdb->value.len);
    /* Appending fills pages completely and needs no search. */
    bool append = id_after(version->id, lmdb->last);
    TRY(lmdb_check(lmdb, mdb_cursor_put(lmdb->cursor, &key, &value, append ? MDB_APPEND : 0),
                   "writing"));
    if (append)
        lmdb->last = version->id;
    return ST_OK;
}

static enum status lmdb_version_delete(struct backend *backend, struct backend_version_id id)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    struct version_key bytes = version_key(id);
    MDB_val key = value_of(bytes.bytes, sizeof(bytes.bytes));
    return lmdb_check(lmdb, mdb_del(lmdb->write, lmdb->versions, &key, NULL), "deleting");
}

static enum status scan_versions(struct backend_lmdb *lmdb, MDB_cursor *cursor,
                                 struct backend_version_id from, backend_version_fn fn, void *ctx)
{
    struct version_key bytes = version_key(from);
    MDB_val key = value_of(bytes.bytes, sizeof(bytes.bytes)), value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        struct backend_version version;
        TRY(version_from(lmdb, &key, &value, &version));
        TRY(fn(ctx, &version));
    }
    return code == MDB_NOTFOUND ? ST_OK : lmdb_check(lmdb, code, "reading");
}

static enum status lmdb_versions_scan(struct backend *backend, struct backend_version_id from,
                                      backend_version_fn fn, void *ctx)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    MDB_txn *txn;
    TRY(reading_txn(lmdb, &txn));
    MDB_cursor *cursor;
    TRY(lmdb_check(lmdb, mdb_cursor_open(txn, lmdb->versions, &cursor), "reading"));
    enum status status = scan_versions(lmdb, cursor, from, fn, ctx);
    mdb_cursor_close(cursor);
    return status;
}

/* -- Segments -- */

struct segment_row {
    uint64_t first_index, last_index, used_bytes, live_bytes;
};

static enum status lmdb_segment_put(struct backend *backend, const struct backend_segment *segment)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    uint64_t id = htobe64(segment->id);
    struct segment_row row = {
        .first_index = segment->first_index,
        .last_index = segment->last_index,
        .used_bytes = segment->used_bytes,
        .live_bytes = segment->live_bytes,
    };
    MDB_val key = value_of(&id, sizeof(id)), value = value_of(&row, sizeof(row));
    return lmdb_check(lmdb, mdb_put(lmdb->write, lmdb->segments, &key, &value, 0), "writing");
}

static enum status lmdb_segment_delete(struct backend *backend, uint64_t id)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    uint64_t big = htobe64(id);
    MDB_val key = value_of(&big, sizeof(big));
    return lmdb_check(lmdb, mdb_del(lmdb->write, lmdb->segments, &key, NULL), "deleting");
}

static enum status scan_segments(struct backend_lmdb *lmdb, MDB_cursor *cursor,
                                 backend_segment_fn fn, void *ctx)
{
    MDB_val key, value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        uint64_t id;
        struct segment_row row;
        if (key.mv_size != sizeof(id) || value.mv_size != sizeof(row))
            return lmdb_damaged(lmdb, "a segment's row");
        memcpy(&id, key.mv_data, sizeof(id));
        memcpy(&row, value.mv_data, sizeof(row));
        struct backend_segment segment = {
            .id = be64toh(id),
            .first_index = row.first_index,
            .last_index = row.last_index,
            .used_bytes = row.used_bytes,
            .live_bytes = row.live_bytes,
        };
        TRY(fn(ctx, &segment));
    }
    return code == MDB_NOTFOUND ? ST_OK : lmdb_check(lmdb, code, "reading");
}

static enum status lmdb_segments_scan(struct backend *backend, backend_segment_fn fn, void *ctx)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    MDB_txn *txn;
    TRY(reading_txn(lmdb, &txn));
    MDB_cursor *cursor;
    TRY(lmdb_check(lmdb, mdb_cursor_open(txn, lmdb->segments, &cursor), "reading"));
    enum status status = scan_segments(lmdb, cursor, fn, ctx);
    mdb_cursor_close(cursor);
    return status;
}

/* -- Rows -- */

struct row_key {
    uint8_t bytes[1 + ROW_KEY_BYTES_MAX];
};

static MDB_val row_key(struct row_key *bytes, const struct row *row)
{
    bytes->bytes[0] = (uint8_t)row->table;
    slice_copy(bytes->bytes + 1, row->key);
    return value_of(bytes->bytes, 1 + row->key.len);
}

static enum status lmdb_row_put(struct backend *backend, const struct row *row)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    struct row_key bytes;
    MDB_val key = row_key(&bytes, row);
    if (row->deleted) {
        enum status status =
            lmdb_check(lmdb, mdb_del(lmdb->write, lmdb->rows, &key, NULL), "deleting");
        return status == ST_NOT_FOUND ? ST_OK : status;
    }
    MDB_val value = value_of(row->value.ptr, row->value.len);
    return lmdb_check(lmdb, mdb_put(lmdb->write, lmdb->rows, &key, &value, 0), "writing");
}

static enum status lmdb_row_get(struct backend *backend, const struct row *row,
                                struct slice *ret_value)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    struct row_key bytes;
    MDB_val key = row_key(&bytes, row), value;
    TRY(lmdb_check(lmdb, mdb_get(lmdb->write, lmdb->rows, &key, &value), "reading"));
    *ret_value = slice_of(value.mv_data, value.mv_size);
    return ST_OK;
}

static enum status scan_rows(struct backend_lmdb *lmdb, MDB_cursor *cursor, row_fn fn, void *ctx)
{
    MDB_val key, value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const uint8_t *bytes = key.mv_data;
        if (key.mv_size < 1 || bytes[0] == 0 || bytes[0] >= ROW_TABLES)
            return lmdb_damaged(lmdb, "a row");
        struct row row = {
            .table = bytes[0],
            .key = slice_of(bytes + 1, key.mv_size - 1),
            .value = slice_of(value.mv_data, value.mv_size),
        };
        TRY(fn(ctx, &row));
    }
    return code == MDB_NOTFOUND ? ST_OK : lmdb_check(lmdb, code, "reading");
}

static enum status lmdb_rows_scan(struct backend *backend, row_fn fn, void *ctx)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    MDB_txn *txn;
    TRY(reading_txn(lmdb, &txn));
    MDB_cursor *cursor;
    TRY(lmdb_check(lmdb, mdb_cursor_open(txn, lmdb->rows, &cursor), "reading"));
    enum status status = scan_rows(lmdb, cursor, fn, ctx);
    mdb_cursor_close(cursor);
    return status;
}

/* -- Opening and closing -- */

static void lmdb_close(struct backend *backend)
{
    struct backend_lmdb *lmdb = lmdb_of(backend);
    mdb_txn_abort(lmdb->read);
    if (lmdb->env)
        mdb_env_close(lmdb->env);
    buf_fini(&lmdb->value);
    free(lmdb);
}

static const struct backend_ops lmdb_ops = {
    .close = lmdb_close,
    .begin = lmdb_begin,
    .commit = lmdb_commit,
    .abort = lmdb_abort,
    .meta_put = lmdb_meta_put,
    .version_get = lmdb_version_get,
    .version_put = lmdb_version_put,
    .version_delete = lmdb_version_delete,
    .versions_scan = lmdb_versions_scan,
    .segment_put = lmdb_segment_put,
    .segment_delete = lmdb_segment_delete,
    .segments_scan = lmdb_segments_scan,
    .row_put = lmdb_row_put,
    .row_get = lmdb_row_get,
    .version_bound = lmdb_version_bound,
    .rows_scan = lmdb_rows_scan,
};

/* Locks and shared mappings do not work across machines: such a disk would lose the checkpoint. */
static bool is_network_disk(const char *dir)
{
    enum { NFS = 0x6969, SMB = 0x517b };
    struct statfs st;
    if (statfs(dir, &st) < 0)
        return false;
    uint32_t kind = (uint32_t)st.f_type;
    return kind == NFS || kind == SMB || kind == 0xff534d42u || kind == 0xfe534d42u;
}

static enum status open_tables(struct backend_lmdb *lmdb)
{
    MDB_txn *txn;
    TRY(lmdb_check(lmdb, mdb_txn_begin(lmdb->env, NULL, 0, &txn), "opening"));
    int code = mdb_dbi_open(txn, "meta", MDB_CREATE, &lmdb->meta);
    if (code == MDB_SUCCESS)
        code = mdb_dbi_open(txn, "versions", MDB_CREATE, &lmdb->versions);
    if (code == MDB_SUCCESS)
        code = mdb_dbi_open(txn, "segments", MDB_CREATE, &lmdb->segments);
    if (code == MDB_SUCCESS)
        code = mdb_dbi_open(txn, "rows", MDB_CREATE, &lmdb->rows);
    if (code == MDB_SUCCESS)
        return lmdb_check(lmdb, mdb_txn_commit(txn), "opening");
    mdb_txn_abort(txn);
    return lmdb_check(lmdb, code, "opening");
}

static enum status check_pages(struct backend_lmdb *lmdb, const char *dir)
{
    uint64_t page = 0;
    enum status status = lmdb_pages_check(dir, &page);
    if (status == ST_OK || status == ST_NOT_FOUND)
        return ST_OK;
    /* Such a number is damaged itself; no file has so many pages. */
    if (status == ST_DAMAGED && page >> 40)
        snprintf(lmdb->backend.error_text, sizeof(lmdb->backend.error_text),
                 "the checkpoint is damaged: data.mdb refers to a page that does not "
                 "exist; nothing was changed");
    else if (status == ST_DAMAGED)
        snprintf(lmdb->backend.error_text, sizeof(lmdb->backend.error_text),
                 "the checkpoint is damaged: page %llu of data.mdb; nothing was changed",
                 (unsigned long long)page);
    else
        snprintf(lmdb->backend.error_text, sizeof(lmdb->backend.error_text),
                 "checkpoint, while reading data.mdb: %s", status_text(status));
    return status;
}

/* LMDB does this for its other descriptors only. */
static void close_on_exec(MDB_env *env)
{
    int fd;
    if (mdb_env_get_fd(env, &fd) == MDB_SUCCESS)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

enum { FILE_MODE = 0600 };

static enum status create_env(struct backend_lmdb *lmdb, size_t map_bytes)
{
    enum { TABLES = 4 };
    TRY(lmdb_check(lmdb, mdb_env_create(&lmdb->env), "opening"));
    TRY(lmdb_check(lmdb, mdb_env_set_mapsize(lmdb->env, map_bytes), "reserving its map"));
    TRY(lmdb_check(lmdb, mdb_env_set_maxdbs(lmdb->env, TABLES), "opening"));
    return lmdb_check(lmdb, mdb_env_set_maxreaders(lmdb->env, READERS_MAX), "opening");
}

/* An empty file is as good as none. LMDB refuses any other that is not an environment. */
static bool is_missing(const char *dir)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    return stat(path, &st) < 0 ? errno == ENOENT : st.st_size == 0;
}

static void remove_file(const char *dir, const char *name)
{
    char path[4500];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    (void)unlink(path);
}

static void remove_unfinished(const char *new_dir)
{
    remove_file(new_dir, "data.mdb");
    (void)rmdir(new_dir);
}

void backend_lmdb_remove(const char *dir)
{
    char new_dir[4400];
    snprintf(new_dir, sizeof(new_dir), "%s/new", dir);
    remove_unfinished(new_dir);
    remove_file(dir, "data.mdb");
    remove_file(dir, "lock.mdb");
    (void)rmdir(dir);
}

static enum status make_in(struct backend_lmdb *lmdb, const char *dir, size_t map_bytes)
{
    TRY(lmdb_check(lmdb, mkdir(dir, 0700) < 0 ? errno : MDB_SUCCESS, "making"));
    TRY(create_env(lmdb, map_bytes));
    unsigned flags = MDB_NOTLS | MDB_NOLOCK | MDB_NOSYNC;
    TRY(lmdb_check(lmdb, mdb_env_open(lmdb->env, dir, flags, FILE_MODE), "making"));
    TRY(open_tables(lmdb));
    TRY(lmdb_check(lmdb, mdb_env_sync(lmdb->env, 1), "making"));
    mdb_env_close(TAKE(lmdb->env));
    return ST_OK;
}

/*
 * Makes an environment with empty tables. LMDB writes the first pages of a new file without a sync,
 * and after a power failure they would be taken for a damaged checkpoint. So it is made elsewhere,
 * and gets its name when it is durable. The name is durable when the caller has synced the
 * directory; before that, a power failure leaves no checkpoint, and the next start makes another.
 */
static enum status make_env(struct backend_lmdb *lmdb, const char *dir, size_t map_bytes)
{
    char path[4200], new_dir[4100], new_path[4200];
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    snprintf(new_dir, sizeof(new_dir), "%s/new", dir);
    snprintf(new_path, sizeof(new_path), "%s/data.mdb", new_dir);
    remove_unfinished(new_dir); /* files of an interrupted start */
    TRY(make_in(lmdb, new_dir, map_bytes));
    TRY(lmdb_check(lmdb, rename(new_path, path) < 0 ? errno : MDB_SUCCESS, "making"));
    remove_unfinished(new_dir);
    return ST_OK;
}

static enum status open_env(struct backend_lmdb *lmdb, const char *dir, size_t map_bytes)
{
    TRY(check_pages(lmdb, dir));
    if (is_missing(dir))
        TRY(make_env(lmdb, dir, map_bytes));
    TRY(create_env(lmdb, map_bytes));
    TRY(lmdb_check(lmdb, mdb_env_open(lmdb->env, dir, MDB_NOTLS, FILE_MODE), "opening"));
    close_on_exec(lmdb->env);
    TRY(open_tables(lmdb));
    return read_numbers(lmdb);
}

enum status backend_lmdb_open(const char *dir, size_t map_bytes, struct backend **ret_backend,
                              struct error *ret_error)
{
    if (is_network_disk(dir))
        return error_set(ret_error, ST_INVALID,
                         "%s: is on a network file system, where locks and mapped files cannot "
                         "be trusted: put the data directory on a local disk",
                         dir);
    struct backend_lmdb *lmdb = calloc(1, sizeof(*lmdb));
    if (!lmdb)
        return error_set(ret_error, ST_NOMEM, "%s: %s", dir, status_reason(ST_NOMEM));
    lmdb->backend.ops = &lmdb_ops;
    AUTO(backend_closep) struct backend *backend = &lmdb->backend;
    enum status status = open_env(lmdb, dir, map_bytes);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: %s", dir, backend_error_text(backend));
    backend->committed = backend->numbers;
    *ret_backend = TAKE(backend);
    return ST_OK;
}
