#include "import/v2/snapshot.h"

#include "base/crc32c.h"
#include "base/xalloc.h"
#include "codec/json/number.h"
#include "codec/json/string.h"
#include "codec/pb/raft.pb.h"
#include "import/v2/notes.h"

#include <inttypes.h>
#include <time.h>

#define SUFFIX ".snap"
#define ORPHAN "db.tmp"
#define NS_PER_S INT64_C(1000000000)

enum {
    NAME_BYTES_MAX = 256,
    PATH_BYTES = 4096 + NAME_BYTES_MAX,
    NAMES_MAX = 10000,
    YEAR_1 = -1899
};

/* -- Times -- */

/* Digits at the beginning, exactly that many. */
static bool take_digits(struct slice *text, size_t count, int *ret_number)
{
    uint64_t number;
    if (text->len < count || !slice_decimal(slice_sub(*text, 0, count), &number))
        return false;
    *ret_number = (int)number;
    *text = slice_sub(*text, count, text->len - count);
    return true;
}

static bool take_char(struct slice *text, char wanted)
{
    if (text->len == 0 || text->ptr[0] != (uint8_t)wanted)
        return false;
    *text = slice_sub(*text, 1, text->len - 1);
    return true;
}

static bool take_fraction(struct slice *text, int64_t *ret_ns)
{
    int64_t unit = NS_PER_S / 10;
    *ret_ns = 0;
    if (!take_char(text, '.'))
        return true;
    for (int digit; take_digits(text, 1, &digit); unit /= 10)
        *ret_ns += digit * unit;
    return true;
}

static bool take_offset(struct slice *text, int64_t *ret_seconds)
{
    int hours, minutes;
    *ret_seconds = 0;
    if (take_char(text, 'Z'))
        return true;
    int sign = take_char(text, '-') ? -1 : 1;
    if (sign > 0 && !take_char(text, '+'))
        return false;
    if (!take_digits(text, 2, &hours) || !take_char(text, ':') || !take_digits(text, 2, &minutes))
        return false;
    *ret_seconds = sign * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return true;
}

bool v2_snapshot_time(struct slice text, int64_t *ret_ns)
{
    struct tm tm = {0};
    int64_t ns, offset_s, seconds;
    if (!take_digits(&text, 4, &tm.tm_year) || !take_char(&text, '-') ||
        !take_digits(&text, 2, &tm.tm_mon) || !take_char(&text, '-') ||
        !take_digits(&text, 2, &tm.tm_mday) || !take_char(&text, 'T') ||
        !take_digits(&text, 2, &tm.tm_hour) || !take_char(&text, ':') ||
        !take_digits(&text, 2, &tm.tm_min) || !take_char(&text, ':') ||
        !take_digits(&text, 2, &tm.tm_sec) || !take_fraction(&text, &ns) ||
        !take_offset(&text, &offset_s) || text.len)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (tm.tm_year == YEAR_1) {
        *ret_ns = 0;
        return true;
    }
    seconds = timegm(&tm) - offset_s;
    int64_t whole;
    if (__builtin_mul_overflow(seconds, NS_PER_S, &whole) ||
        __builtin_add_overflow(whole, ns, ret_ns))
        return false;
    return true;
}

/* -- The JSON of the store -- */

struct reading {
    struct json_scanner scanner;
    struct v2_tree *tree;
    struct buf scratch; /* a decoded text */
    unsigned depth;     /* depth of the current node; the root's is 0 */
    struct error *error;
};

/* In the object of a node, or in that of its children. */
struct place {
    struct v2_tree_node *node; /* NULL: behind the root */
    bool in_children;
};

static enum status damaged(struct reading *reading, const char *what)
{
    return error_set(reading->error, ST_DAMAGED, "the v2 store is damaged at byte %zu: %s",
                     json_position(&reading->scanner), what);
}

/* The text of the token just returned, until the next one is decoded. */
static enum status take_text(struct reading *reading, struct slice *ret_text)
{
    reading->scratch.len = 0;
    TRY(buf_reserve(&reading->scratch, reading->scanner.raw.len + 1));
    if (json_string_get(&reading->scanner, reading->scratch.ptr, ret_text) != JSON_STRING_FINE)
        return damaged(reading, "a text is not UTF-8");
    return ST_OK;
}

static enum status next_text(struct reading *reading, struct slice *ret_text)
{
    if (json_next(&reading->scanner) != JSON_STRING)
        return damaged(reading, "there is no text");
    return take_text(reading, ret_text);
}

static enum status next_number(struct reading *reading, uint64_t *ret_number)
{
    if (json_next(&reading->scanner) != JSON_NUMBER ||
        !json_number_u64(reading->scanner.raw, ret_number))
        return damaged(reading, "there is no number");
    return ST_OK;
}

static enum status skip_value(struct reading *reading)
{
    if (!json_skip(&reading->scanner, JSON_KEY))
        return damaged(reading, "it is not JSON");
    return ST_OK;
}

static enum status read_expiry(struct reading *reading, struct v2_tree_node *node)
{
    struct slice text;
    int64_t expires_ns;
    TRY(next_text(reading, &text));
    if (!v2_snapshot_time(text, &expires_ns))
        return damaged(reading, "there is no time");
    v2_tree_set_expiry(reading->tree, node, expires_ns);
    return ST_OK;
}

/* Expects the children of a node, whose key was just returned. */
static enum status open_children(struct reading *reading, struct v2_tree_node *node,
                                 bool *ret_has_children)
{
    enum json_token token = json_next(&reading->scanner);
    *ret_has_children = token == JSON_OBJECT;
    if (token == JSON_NULL)
        return ST_OK; /* a file */
    if (token != JSON_OBJECT)
        return damaged(reading, "the children are not an object");
    if (reading->depth == V2_TREE_DEPTH_MAX)
        return error_set(reading->error, ST_LIMIT,
                         "the v2 store has directories of more than %d levels", V2_TREE_DEPTH_MAX);
    if (!node->children)
        v2_tree_make_dir(reading->tree, node);
    return ST_OK;
}

/* Adds a child, whose name was just returned, and expects its members. */
static enum status open_child(struct reading *reading, struct v2_tree_node *dir,
                              struct v2_tree_node **ret_child)
{
    struct slice name;
    TRY(take_text(reading, &name));
    if (name.len == 0 || memchr(name.ptr, '/', name.len))
        return damaged(reading, "a name is empty or has a slash");
    if (reading->tree->node_count >= reading->tree->nodes_max)
        return error_set(reading->error, ST_LIMIT, "the v2 store has more than %zu nodes",
                         reading->tree->nodes_max);
    *ret_child = v2_tree_add(reading->tree, dir, name);
    if (!*ret_child)
        return damaged(reading, "a name occurs twice");
    if (json_next(&reading->scanner) != JSON_OBJECT)
        return damaged(reading, "a node is not an object");
    return ST_OK;
}

/* The value of one member of a node but its children; its key was just returned. */
static enum status read_member(struct reading *reading, struct v2_tree_node *node)
{
    const struct json_scanner *scanner = &reading->scanner;
    struct slice text;
    if (json_token_is(scanner, SLICE_LITERAL("CreatedIndex")))
        return next_number(reading, &node->created);
    if (json_token_is(scanner, SLICE_LITERAL("ModifiedIndex")))
        return next_number(reading, &node->modified);
    if (json_token_is(scanner, SLICE_LITERAL("ExpireTime")))
        return read_expiry(reading, node);
    if (!json_token_is(scanner, SLICE_LITERAL("Value")))
        return skip_value(reading); /* the path, which is known from the tree */
    TRY(next_text(reading, &text));
    v2_tree_set_value(node, text);
    return ST_OK;
}

/* The next member of a node, or its end. */
static enum status step_in_node(struct reading *reading, struct place *place)
{
    enum json_token token = json_next(&reading->scanner);
    if (token == JSON_OBJECT_END) {
        place->node = place->node->parent;
        place->in_children = true;
        reading->depth--;
        return ST_OK;
    }
    if (token != JSON_KEY)
        return damaged(reading, "it is not JSON");
    if (json_token_is(&reading->scanner, SLICE_LITERAL("Children")))
        return open_children(reading, place->node, &place->in_children);
    return read_member(reading, place->node);
}

/* The next child of a node, or the end of them. */
static enum status step_in_children(struct reading *reading, struct place *place)
{
    enum json_token token = json_next(&reading->scanner);
    if (token != JSON_KEY && token != JSON_OBJECT_END)
        return damaged(reading, "it is not JSON");
    place->in_children = false;
    if (token == JSON_OBJECT_END)
        return ST_OK;
    reading->depth++;
    return open_child(reading, place->node, &place->node);
}

/* Everything below the root. The way back is in the tree, so that deep directories take no stack.
 */
static enum status read_root(struct reading *reading)
{
    if (json_next(&reading->scanner) != JSON_OBJECT)
        return damaged(reading, "a node is not an object");
    struct place place = {.node = reading->tree->root};
    reading->depth = 0;
    while (place.node)
        TRY(place.in_children ? step_in_children(reading, &place) : step_in_node(reading, &place));
    return ST_OK;
}

static enum status read_store(struct reading *reading)
{
    bool has_root = false;
    enum json_token token;
    if (json_next(&reading->scanner) != JSON_OBJECT)
        return damaged(reading, "it is not JSON");
    while ((token = json_next(&reading->scanner)) == JSON_KEY) {
        if (json_token_is(&reading->scanner, SLICE_LITERAL("CurrentIndex"))) {
            TRY(next_number(reading, &reading->tree->index));
        } else if (json_token_is(&reading->scanner, SLICE_LITERAL("Root"))) {
            TRY(read_root(reading));
            has_root = true;
        } else {
            TRY(skip_value(reading));
        }
    }
    if (token != JSON_OBJECT_END || json_next(&reading->scanner) != JSON_END)
        return damaged(reading, "it is not JSON");
    return has_root ? ST_OK : damaged(reading, "it has no root");
}

enum status v2_snapshot_read(struct slice json, struct v2_tree *tree, struct error *ret_error)
{
    struct reading *reading = xcalloc(1, sizeof(*reading));
    reading->tree = tree;
    reading->error = ret_error;
    json_scanner_init(&reading->scanner, json);
    enum status status = read_store(reading);
    buf_fini(&reading->scratch);
    free(reading);
    return status;
}

/* -- Files -- */

struct names {
    char (*all)[NAME_BYTES_MAX]; /* names of snapshots */
    size_t count, left_out;
    struct fs *fs;
    const char *dir;
    FILE *notes;
};

static void path_of(const char *dir, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4095s/%.*s", dir, NAME_BYTES_MAX - 1, name);
}

/* What a defragmentation left behind is removed. */
static void remove_orphan(const struct names *names, const char *name)
{
    char path[PATH_BYTES];
    v2_note_write(names->notes, &(struct v2_note){
                                    "info",
                                    "found orphaned defragmentation file; deleting",
                                    {{.name = "path", .text = name}},
                                });
    path_of(names->dir, name, path);
    (void)!fs_unlink(names->fs, path);
}

static bool is_orphan(const char *name)
{
    return strncmp(name, ORPHAN, strlen(ORPHAN)) == 0;
}

static void note_orphan(void *ctx, const char *name)
{
    if (is_orphan(name))
        remove_orphan(ctx, name);
}

static void note_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    size_t len = strlen(name);
    if (is_orphan(name))
        return;
    if (len < strlen(SUFFIX) || strcmp(name + len - strlen(SUFFIX), SUFFIX) != 0) {
        if (strcmp(name, "db") != 0)
            v2_note_write(names->notes, &(struct v2_note){
                                            "warn",
                                            "found unexpected non-snap file; skipping",
                                            {{.name = "path", .text = name}},
                                        });
        return;
    }
    if (len >= NAME_BYTES_MAX || names->count == NAMES_MAX) {
        names->left_out++;
        return;
    }
    names->all = xrealloc(names->all, (names->count + 1) * sizeof(*names->all));
    memcpy(names->all[names->count++], name, len + 1);
}

static int compare_newest_first(const void *left, const void *right)
{
    return -strcmp(left, right);
}

static enum status read_file(struct fs *fs, const char *path, struct buf *ret_bytes,
                             struct error *ret_error)
{
    AUTO(file_closep) struct file *file = NULL;
    uint64_t bytes = 0;
    enum status status = fs_open(fs, path, FILE_READ_ONLY, &file);
    if (status == ST_OK)
        status = file_size(file, &bytes);
    if (status == ST_OK && bytes > V2_SNAPSHOT_BYTES_MAX)
        return error_set(ret_error, ST_LIMIT, "%s has %" PRIu64 " bytes, and the limit is %" PRIu64,
                         path, bytes, V2_SNAPSHOT_BYTES_MAX);
    if (status == ST_OK)
        status = buf_reserve(ret_bytes, (size_t)bytes + 1);
    if (status == ST_OK)
        status = file_pread(file, ret_bytes->ptr, (size_t)bytes, 0);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read %s: %s", path, status_reason(status));
    ret_bytes->len = (size_t)bytes;
    return ST_OK;
}

/* etcd's words for a file that is not a whole snapshot. */
static enum status refuse(FILE *notes, const char *path, const char *message, const char *why,
                          struct error *ret_error)
{
    v2_note_write(notes, &(struct v2_note){"warn", message, {{.name = "path", .text = path}}});
    return error_set(ret_error, ST_DAMAGED, "%s", why);
}

static enum status check_sum(const char *path, const struct pb_snapshot_file *file, FILE *notes,
                             struct error *ret_error)
{
    char said[16], found[16];
    uint32_t crc = crc32c(0, file->data);
    if (crc == file->crc)
        return ST_OK;
    snprintf(said, sizeof(said), "%" PRIu32, file->crc);
    snprintf(found, sizeof(found), "%" PRIu32, crc);
    v2_note_write(notes, &(struct v2_note){
                             "warn",
                             "snap file is corrupt",
                             {{.name = "path", .text = path},
                              {.name = "prev-crc", .number = said},
                              {.name = "new-crc", .number = found}},
                         });
    return error_set(ret_error, ST_DAMAGED, "snap: crc mismatch");
}

/* The snapshot in a file, of which it is a part. */
static enum status open_file(struct slice bytes, const char *path, FILE *notes, struct arena *arena,
                             struct pb_raft_snapshot *ret_snapshot, struct error *ret_error)
{
    struct pb_snapshot_file file;
    if (bytes.len == 0)
        return refuse(notes, path, "failed to read empty snapshot file", "snap: empty snapshot",
                      ret_error);
    if (pb_decode(&pb_snapshot_file_table, bytes, arena, &file) != ST_OK)
        return refuse(notes, path, "failed to unmarshal snappb.Snapshot", "unexpected EOF",
                      ret_error);
    if (file.data.len == 0 || file.crc == 0)
        return refuse(notes, path, "failed to read empty snapshot data", "snap: empty snapshot",
                      ret_error);
    TRY(check_sum(path, &file, notes, ret_error));
    if (pb_decode(&pb_raft_snapshot_table, file.data, arena, ret_snapshot) != ST_OK)
        return refuse(notes, path, "failed to unmarshal raftpb.Snapshot", "unexpected EOF",
                      ret_error);
    return ST_OK;
}

static void set_aside(struct fs *fs, const char *path, const char *why, FILE *notes)
{
    char broken[PATH_BYTES + 8];
    snprintf(broken, sizeof(broken), "%s.broken", path);
    v2_note_write(notes, &(struct v2_note){
                             "warn",
                             "failed to read a snap file",
                             {{.name = "path", .text = path}, {.name = "error", .text = why}},
                         });
    if (fs_rename(fs, path, broken) == ST_OK)
        v2_note_write(notes,
                      &(struct v2_note){
                          "warn",
                          "renamed to a broken snap file",
                          {{.name = "path", .text = path}, {.name = "broken-path", .text = broken}},
                      });
}

/* ST_END: this file is set aside. */
static enum status load_file(struct names *names, const char *name, struct v2_tree *tree,
                             struct v2_snapshot *ret_snapshot, struct error *ret_error)
{
    char path[PATH_BYTES];
    path_of(names->dir, name, path);
    struct buf bytes = {0};
    struct arena arena;
    struct pb_raft_snapshot snapshot;
    arena_init(&arena, NULL, 0, (size_t)1 << 20);
    enum status status = read_file(names->fs, path, &bytes, ret_error);
    if (status == ST_OK)
        status = open_file(buf_slice(&bytes), path, names->notes, &arena, &snapshot, ret_error);
    if (status == ST_DAMAGED) {
        set_aside(names->fs, path, ret_error->text, names->notes);
        status = ST_END;
    } else if (status == ST_OK) {
        ret_snapshot->exists = true;
        ret_snapshot->index = snapshot.metadata ? snapshot.metadata->index : 0;
        ret_snapshot->term = snapshot.metadata ? snapshot.metadata->term : 0;
        status = v2_snapshot_read(snapshot.data, tree, ret_error);
    }
    arena_fini(&arena);
    buf_fini(&bytes);
    return status;
}

enum status v2_snapshot_load(struct fs *fs, const char *dir, FILE *notes, struct v2_tree *tree,
                             struct v2_snapshot *ret_snapshot, struct error *ret_error)
{
    *ret_snapshot = (struct v2_snapshot){0};
    struct names names = {.fs = fs, .dir = dir, .notes = notes};
    enum status status = fs_list(fs, dir, note_orphan, &names);
    if (status == ST_OK)
        status = fs_list(fs, dir, note_name, &names);
    if (status != ST_OK)
        status = error_set(ret_error, status, "cannot read the directory %s: %s", dir,
                           status_reason(status));
    else if (names.left_out)
        status = error_set(ret_error, ST_LIMIT, "%s has more than %d snapshots", dir, NAMES_MAX);
    if (status == ST_OK && names.count)
        qsort(names.all, names.count, sizeof(*names.all), compare_newest_first);
    if (status == ST_OK)
        status = ST_END;
    for (size_t i = 0; i < names.count && status == ST_END; i++)
        status = load_file(&names, names.all[i], tree, ret_snapshot, ret_error);
    free(names.all);
    return status == ST_END ? ST_OK : status;
}
