/*
 * migrate, which etcdctl 3.4 has:
 *
 *   snapshots in member/snap, member/wal ──► v2 store ──► transformer ──► member/snap/db
 *
 * The keys are written at the end and at once; whatever fails before leaves the directory as it
 * was. A key that expires loses its time to live, unless a program is given as the transformer.
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/offline/db_file.h"
#include "cmd/ctl/offline/kv_frames.h"
#include "cmd/ctl/offline/offline.h"
#include "cmd/ctl/offline/transformer.h"
#include "cmd/ctl/offline/v2_nodes.h"
#include "cmd/ctl/session.h"
#include "codec/utf8.h"
#include "import/v2/replay.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* One run. */
struct migration {
    struct ctl *ctl;
    const struct migrate_flags *flags;
    char data_dir[PATH_BYTES], snap_dir[PATH_BYTES], wal_dir[PATH_BYTES];
    struct transformer transformer;
    struct db_file *db;
    struct v2_store store;
    struct kv_frames frames;
    struct error error;
};

/* -- Directories -- */

/* As Go joins paths: without "./" in front and slashes at the end. */
static void clean_path(const char *path, char ret_path[PATH_BYTES])
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len == 1 && path[0] == '.')
        len = 0;
    snprintf(ret_path, PATH_BYTES, "%.*s", (int)size_min(len, 3000), path);
}

static void find_directories(struct migration *migration)
{
    const struct migrate_flags *flags = migration->flags;
    clean_path(flags->data_dir, migration->data_dir);
    const char *dir = migration->data_dir, *slash = *dir ? "/" : "";
    snprintf(migration->snap_dir, PATH_BYTES, "%.3000s%smember/snap", dir, slash);
    if (*flags->wal_dir)
        snprintf(migration->wal_dir, PATH_BYTES, "%.4000s", flags->wal_dir);
    else
        snprintf(migration->wal_dir, PATH_BYTES, "%.3000s%smember/wal", dir, slash);
}

static bool exists(const struct migration *migration, const char *name)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof(path), "%s%s%s", migration->data_dir, *migration->data_dir ? "/" : "",
             name);
    return access(path, F_OK) == 0;
}

static enum status check_directory(struct migration *migration, const char *path)
{
    DIR *dir = opendir(path);
    if (dir) {
        closedir(dir);
        return ST_OK;
    }
    char reason[128];
    snprintf(reason, sizeof(reason), "%s", strerrordesc_np(errno));
    reason[0] = (char)(reason[0] | 0x20); /* in Go's words */
    return error_set(&migration->error, ST_NOT_FOUND, "open %.380s: %s", path, reason);
}

/* -- Reading -- */

/* The lock is taken first, so that no etcd changes what is read. */
static enum status load(struct migration *migration)
{
    struct v2_store_options options = {
        .fs = fs_posix(),
        .snap_dir = migration->snap_dir,
        .wal_dir = migration->wal_dir,
        .notes = migration->ctl->out,
    };
    struct db_file_options db = {.data_dir = migration->data_dir, .creates = true, .advice = ""};
    TRY(check_directory(migration, migration->snap_dir));
    TRY(check_directory(migration, migration->wal_dir));
    TRY(db_file_open(&db, &migration->db, &migration->error));
    return v2_store_load(&migration->store, &options, &migration->error);
}

/* -- Transforming -- */

/* The text as it is after it was JSON: bytes that are not UTF-8 are replaced. */
static struct slice as_text(struct slice bytes, struct buf *scratch)
{
    if (utf8_valid(bytes))
        return bytes;
    scratch->len = 0;
    while (bytes.len) {
        size_t len = utf8_char_len(bytes);
        struct slice part = len ? slice_sub(bytes, 0, len) : SLICE_LITERAL("\xef\xbf\xbd");
        if (buf_append(scratch, part) != ST_OK)
            xalloc_check(NULL, part.len);
        len = len ? len : 1;
        bytes = slice_sub(bytes, len, bytes.len - len);
    }
    return buf_slice(scratch);
}

/* A file becomes a key of the same name, value and indexes; directories have no counterpart. */
static enum status transform_node(void *ctx, const struct v2_node *node)
{
    struct migration *migration = ctx;
    /* This node is a directory. */
    if (node->node->children)
        return ST_OK;
    struct buf key = {0}, value = {0};
    struct pb_key_value kv = {
        .key = as_text(node->key, &key),
        .value = as_text(node->node->value, &value),
        .create_revision = (int64_t)node->node->created,
        .mod_revision = (int64_t)node->node->modified,
        .version = 1,
    };
    enum status status = kv_frames_add(&migration->frames, &kv, &migration->error);
    buf_fini(&key);
    buf_fini(&value);
    return status;
}

static enum status write_node(void *ctx, const struct v2_node *node)
{
    v2_nodes_write(ctx, node);
    return ST_OK;
}

static enum status transform_outside(struct migration *migration,
                                     const struct v2_nodes_options *options)
{
    char *nodes = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&nodes, &len);
    xalloc_check(to, 1);
    enum status status = v2_nodes_walk(&migration->store.tree, options, write_node, to);
    bool written = !ferror(to);
    if (fclose(to) != 0 || !written)
        xalloc_check(NULL, len + 1);
    fflush(migration->ctl->out); /* before what the program writes */
    if (status == ST_OK)
        status = transformer_run(&migration->transformer, slice_of(nodes, len), &migration->frames,
                                 &migration->error);
    free(nodes);
    return status;
}

/* ST_NOT_FOUND: there are no keys. */
static enum status transform(struct migration *migration)
{
    struct v2_nodes_options options = {
        .without_expiring = migration->flags->no_ttl,
        .now_ns = clock_real_ns(clock_system()),
    };
    if (migration->transformer.pid >= 0)
        return transform_outside(migration, &options);
    TRY(v2_nodes_walk(&migration->store.tree, &options, transform_node, migration));
    return kv_frames_end(&migration->frames, &migration->error);
}

/* -- Writing -- */

/* The index of raft up to which the database is complete never moves back. */
static enum status newer_index(struct migration *migration, bool *ret_is_newer)
{
    struct buf old = {0};
    enum status status = db_file_get(migration->db, bolt_bucket_name(BOLT_BUCKET_META),
                                     BOLT_META_INDEX, &old, &migration->error);
    *ret_is_newer = status == ST_NOT_FOUND || old.len != BOLT_NUMBER_BYTES ||
                    bolt_number_read(old.ptr) < migration->store.raft_index;
    buf_fini(&old);
    return status == ST_NOT_FOUND ? ST_OK : status;
}

static enum status write_keys(struct migration *migration)
{
    const struct kv_frames *frames = &migration->frames;
    struct db_row *rows = xcalloc(frames->count + 1, sizeof(*rows));
    uint8_t index[BOLT_NUMBER_BYTES];
    size_t count = 0;
    bool is_newer;
    for (; count < frames->count; count++)
        rows[count] = (struct db_row){
            .bucket = bolt_bucket_name(BOLT_BUCKET_KEY),
            .key = slice_of(frames->all[count].key, BOLT_REVISION_BYTES),
            .value = frames->all[count].value,
        };
    enum status status = newer_index(migration, &is_newer);
    bolt_number_write(migration->store.raft_index, index);
    if (status == ST_OK && is_newer)
        rows[count++] = (struct db_row){
            .bucket = bolt_bucket_name(BOLT_BUCKET_META),
            .key = BOLT_META_INDEX,
            .value = slice_of(index, sizeof(index)),
        };
    if (status == ST_OK)
        status = db_file_rewrite(migration->db, rows, count, &migration->error);
    free(rows);
    return status;
}

/* -- The command -- */

static int fail(struct migration *migration)
{
    fflush(migration->ctl->out);
    return ctl_fail(migration->ctl, CTL_ERROR, "%s", migration->error.text);
}

static int run(struct migration *migration)
{
    struct ctl *ctl = migration->ctl;
    const char *program = migration->flags->transformer;
    /* This file is in every data directory of Vigil, and in none of etcd. */
    if (exists(migration, "FORMAT") && !exists(migration, "member"))
        return ctl_fail(ctl, CTL_ERROR,
                        "%s is a data directory of Vigil, which has no v2 store: migrate is for "
                        "those of etcd",
                        migration->flags->data_dir);
    if (!*program)
        fprintf(ctl->out, "using default transformer\n");
    else if (transformer_start(&migration->transformer, program, &migration->error) != ST_OK)
        return fail(migration);
    if (load(migration) != ST_OK)
        return fail(migration);
    enum status status = transform(migration);
    if (status == ST_NOT_FOUND) {
        fprintf(ctl->out, "no v2 keys to migrate\n");
        return CTL_OK;
    }
    if (status != ST_OK) {
        fprintf(ctl->out, "failed to transform keys\n");
        return fail(migration);
    }
    if (write_keys(migration) != ST_OK)
        return fail(migration);
    fprintf(ctl->out, "finished transforming keys\n");
    return CTL_OK;
}

int offline_migrate(struct ctl *ctl)
{
    struct migration *migration = xcalloc(1, sizeof(*migration));
    migration->ctl = ctl;
    migration->flags = ctl->flags;
    migration->transformer = (struct transformer){.pid = -1, .from = -1, .to = -1};
    kv_frames_init(&migration->frames, KV_FRAMES_BYTES_MAX);
    find_directories(migration);
    int code = run(migration);
    transformer_stop(&migration->transformer);
    db_file_close(migration->db);
    v2_store_fini(&migration->store);
    kv_frames_fini(&migration->frames);
    free(migration);
    return code;
}
