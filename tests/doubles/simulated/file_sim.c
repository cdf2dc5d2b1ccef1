#include "simulated/file_sim.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { SECTOR_BYTES = 512, ROT_ATTEMPTS = 64 };

/* A write that is not synced yet. Without bytes: a new length. */
struct sim_write {
    struct sim_write *next;
    uint64_t offset; /* or the new length */
    size_t len;
    uint8_t bytes[];
};

struct sim_bytes {
    uint8_t *ptr; /* owned */
    size_t len, capacity;
};

/* A file apart from its names. Referenced by names and open files. */
struct sim_node {
    int refs, mappings;
    bool dead;                              /* from before a crash */
    bool rotten, locked;                    /* rotten: changed by fs_sim_rot */
    struct sim_bytes now;                   /* what reads return */
    struct sim_bytes durable;               /* the content at the last sync */
    struct sim_write *writes, **writes_end; /* since the last sync */
};

struct sim_name {
    char *path;            /* owned */
    struct sim_node *node; /* NULL for a directory */
};

struct sim_names {
    struct sim_name *items;
    size_t count, capacity;
};

/* A change of names that is not synced yet: `from` (may be NULL) is removed, `to` (may be NULL)
 * names the node. */
struct name_change {
    struct name_change *next;
    char *from, *to;
    struct sim_node *node;
};

struct fs_sim {
    struct fs fs;
    struct random random;
    struct sim_names now, durable;
    struct name_change *changes, **changes_end;
    uint64_t space_bytes;

    uint64_t calls[FS_SIM_CALL_COUNT];
    enum fs_sim_call fail_call;
    uint64_t fail_at; /* index among calls[fail_call]; 0: no failure is planned */
    enum status fail_status;
    bool fail_sticky, misdirects;
    struct fs_sim_cuts cuts;
};

struct sim_file {
    struct file file;
    struct fs_sim *sim;
    struct sim_node *node; /* a reference */
    bool holds_lock;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static struct fs_sim *sim_of(struct fs *fs)
{
    return CONTAINER_OF(fs, struct fs_sim, fs);
}

static struct sim_file *file_of(struct file *file)
{
    return CONTAINER_OF(file, struct sim_file, file);
}

/* Counts the call and returns its planned failure, if any. */
static enum status enter(struct fs_sim *sim, enum fs_sim_call call)
{
    sim->calls[call]++;
    sim->calls[FS_SIM_ANY]++;
    if (!sim->fail_at || (sim->fail_call != FS_SIM_ANY && sim->fail_call != call))
        return ST_OK;
    uint64_t count = sim->calls[sim->fail_call];
    bool fails = sim->fail_sticky ? count >= sim->fail_at : count == sim->fail_at;
    return fails ? sim->fail_status : ST_OK;
}

static enum status enter_file(struct sim_file *file, enum fs_sim_call call)
{
    return file->node->dead ? ST_IO : enter(file->sim, call);
}

/* -- bytes -- */

static void bytes_resize(struct sim_bytes *bytes, size_t len)
{
    if (len > bytes->capacity) {
        bytes->capacity = size_max(len, bytes->capacity * 2);
        bytes->ptr = must(realloc(bytes->ptr, bytes->capacity));
    }
    if (len > bytes->len)
        memset(bytes->ptr + bytes->len, 0, len - bytes->len);
    bytes->len = len;
}

static void bytes_write(struct sim_bytes *bytes, uint64_t offset, const uint8_t *from, size_t len)
{
    if (offset + len > bytes->len)
        bytes_resize(bytes, (size_t)offset + len);
    memcpy(bytes->ptr + offset, from, len);
}

static void bytes_copy(struct sim_bytes *to, const struct sim_bytes *from)
{
    bytes_resize(to, from->len);
    if (from->len)
        memcpy(to->ptr, from->ptr, from->len);
}

/* -- nodes -- */

static struct sim_node *node_new(void)
{
    struct sim_node *node = must(calloc(1, sizeof(*node)));
    node->refs = 1;
    node->writes_end = &node->writes;
    return node;
}

static struct sim_node *node_ref(struct sim_node *node)
{
    node->refs++;
    return node;
}

static void node_forget_writes(struct sim_node *node)
{
    while (node->writes) {
        struct sim_write *next = node->writes->next;
        free(node->writes);
        node->writes = next;
    }
    node->writes_end = &node->writes;
}

static void node_unref(struct sim_node *node)
{
    if (!node || --node->refs)
        return;
    assert(!node->mappings);
    node_forget_writes(node);
    free(node->now.ptr);
    free(node->durable.ptr);
    free(node);
}

static void node_note(struct sim_node *node, uint64_t offset, struct slice bytes)
{
    struct sim_write *write = must(malloc(sizeof(*write) + bytes.len));
    *write = (struct sim_write){.offset = offset, .len = bytes.len};
    slice_copy(write->bytes, bytes);
    *node->writes_end = write;
    node->writes_end = &write->next;
}

static void node_write(struct sim_node *node, uint64_t offset, struct slice bytes)
{
    if (!bytes.len)
        return;
    assert(!node->mappings || offset + bytes.len <= node->now.capacity);
    bytes_write(&node->now, offset, bytes.ptr, bytes.len);
    node_note(node, offset, bytes);
}

/* How many of the unsynced changes reach the disk. Sector s has the first reached(s) of them. */
struct fate {
    enum fs_sim_fate kind;
    uint64_t changes, prefix, seed;
};

static struct fate fate_draw(struct random *random, uint64_t changes)
{
    return (struct fate){
        .kind = (enum fs_sim_fate)random_below(random, FS_SIM_FATES),
        .changes = changes,
        .prefix = random_below(random, changes + 1),
        .seed = random_u64(random),
    };
}

static uint64_t fate_reached(const struct fate *fate, uint64_t sector)
{
    uint64_t drawn = (fate->seed ^ sector * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u >> 20;
    switch (fate->kind) {
    case FS_SIM_NONE:
        return 0;
    case FS_SIM_ALL:
        return fate->changes;
    case FS_SIM_PREFIX: /* the last write is torn */
        return fate->prefix + (fate->prefix < fate->changes ? drawn % 2 : 0);
    default: /* each sector for itself */
        return drawn % (fate->changes + 1);
    }
}

static struct fate node_fate(struct random *random, const struct sim_node *node)
{
    uint64_t writes = 0;
    for (const struct sim_write *write = node->writes; write; write = write->next)
        writes++;
    return fate_draw(random, writes);
}

static void apply_write(struct sim_bytes *to, const struct sim_write *write, uint64_t number,
                        const struct fate *fate)
{
    for (size_t done = 0; done < write->len;) {
        uint64_t at = write->offset + done;
        size_t len = size_min(write->len - done, SECTOR_BYTES - at % SECTOR_BYTES);
        if (number < fate_reached(fate, at / SECTOR_BYTES))
            bytes_write(to, at, write->bytes + done, len);
        done += len;
    }
}

/* Applies the unsynced writes to the durable bytes, as far as fate decides. */
static void node_settle(struct sim_node *node, const struct fate *fate)
{
    uint64_t number = 0;
    for (const struct sim_write *write = node->writes; write; write = write->next)
        apply_write(&node->durable, write, number++, fate);
    node_forget_writes(node);
}

/* -- names -- */

static size_t names_find(const struct sim_names *names, const char *path)
{
    size_t at = 0;
    while (at < names->count && strcmp(names->items[at].path, path) != 0)
        at++;
    return at;
}

static void names_remove(struct sim_names *names, const char *path)
{
    size_t at = names_find(names, path);
    if (at == names->count)
        return;
    free(names->items[at].path);
    node_unref(names->items[at].node);
    names->items[at] = names->items[--names->count];
}

static void names_set(struct sim_names *names, const char *path, struct sim_node *node)
{
    names_remove(names, path);
    if (names->count == names->capacity) {
        names->capacity = names->capacity * 2 + 8;
        names->items = must(realloc(names->items, names->capacity * sizeof(*names->items)));
    }
    names->items[names->count++] =
        (struct sim_name){.path = must(strdup(path)), .node = node ? node_ref(node) : NULL};
}

static void names_fini(struct sim_names *names)
{
    while (names->count)
        names_remove(names, names->items[names->count - 1].path);
    free(names->items);
    *names = (struct sim_names){0};
}

static void names_change(struct sim_names *names, const struct name_change *change)
{
    if (change->from)
        names_remove(names, change->from);
    if (change->to)
        names_set(names, change->to, change->node);
}

static void change_free(struct name_change *change)
{
    free(change->from);
    free(change->to);
    node_unref(change->node);
    free(change);
}

/* Makes a change visible immediately and durable later. */
static void change_names(struct fs_sim *sim, const char *from, const char *to,
                         struct sim_node *node)
{
    struct name_change *change = must(calloc(1, sizeof(*change)));
    change->from = from ? must(strdup(from)) : NULL;
    change->to = to ? must(strdup(to)) : NULL;
    change->node = node ? node_ref(node) : NULL;
    names_change(&sim->now, change);
    *sim->changes_end = change;
    sim->changes_end = &change->next;
}

/* The name within dir; NULL: the path is not directly in dir. */
static const char *name_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (strncmp(path, dir, len) != 0 || path[len] != '/' || strchr(path + len + 1, '/'))
        return NULL;
    return path + len + 1;
}

/* Applies the changes in dir (NULL: everywhere) as far as fate decides; the others in dir are lost.
 */
static void settle_names(struct fs_sim *sim, const char *dir, const struct fate *fate)
{
    uint64_t number = 0;
    struct name_change **link = &sim->changes;
    while (*link) {
        struct name_change *change = *link;
        const char *path = change->to ? change->to : change->from;
        if (dir && !name_in(path, dir)) {
            link = &change->next;
            continue;
        }
        if (number < fate_reached(fate, number))
            names_change(&sim->durable, change);
        number++;
        *link = change->next;
        change_free(change);
    }
    sim->changes_end = link;
}

/* -- calls on a file -- */

static enum status sim_pread(struct file *base, void *to, size_t len, uint64_t offset)
{
    struct sim_file *file = file_of(base);
    TRY(enter_file(file, FS_SIM_PREAD));
    const struct sim_bytes *now = &file->node->now;
    if (offset > now->len || len > now->len - offset)
        return ST_IO;
    slice_copy(to, slice_of(len ? now->ptr + offset : NULL, len));
    return ST_OK;
}

static uint64_t used_bytes(const struct fs_sim *sim)
{
    uint64_t used = 0;
    for (size_t i = 0; i < sim->now.count; i++)
        used += sim->now.items[i].node ? sim->now.items[i].node->now.len : 0;
    return used;
}

static enum status check_space(const struct fs_sim *sim, const struct sim_node *node, uint64_t end)
{
    if (end <= node->now.len || sim->space_bytes == UINT64_MAX)
        return ST_OK;
    return used_bytes(sim) + (end - node->now.len) > sim->space_bytes ? ST_DISK_FULL : ST_OK;
}

static enum status sim_pwrite(struct file *base, struct slice bytes, uint64_t offset)
{
    struct sim_file *file = file_of(base);
    enum status status = enter_file(file, FS_SIM_PWRITE);
    if (file->node->dead)
        return status;
    if (status == ST_OK)
        status = check_space(file->sim, file->node, offset + bytes.len);
    if (status != ST_OK && bytes.len) {
        /* Some whole sectors may be written; a full disk still takes what fits. */
        uint64_t end = offset + random_below(&file->sim->random, bytes.len);
        end -= end % SECTOR_BYTES;
        size_t part = end > offset ? (size_t)(end - offset) : 0;
        if (check_space(file->sim, file->node, offset + part) == ST_OK)
            node_write(file->node, offset, slice_sub(bytes, 0, part));
        return status;
    }
    node_write(file->node, offset, bytes);
    return status;
}

static enum status sim_sync(struct file *base)
{
    struct sim_file *file = file_of(base);
    enum status status = enter_file(file, FS_SIM_SYNC);
    if (file->node->dead)
        return status;
    struct fate fate = node_fate(&file->sim->random, file->node);
    if (status == ST_OK)
        fate.kind = FS_SIM_ALL;
    node_settle(file->node, &fate);
    return status;
}

static enum status sim_size(struct file *base, uint64_t *ret_bytes)
{
    struct sim_file *file = file_of(base);
    if (file->node->dead)
        return ST_IO;
    *ret_bytes = file->node->now.len;
    return ST_OK;
}

static enum status sim_map(struct file *base, size_t len, const uint8_t **ret_base)
{
    struct sim_file *file = file_of(base);
    TRY(enter_file(file, FS_SIM_MAP));
    if (len > file->node->now.len)
        return ST_INVALID;
    file->node->mappings++;
    *ret_base = file->node->now.ptr;
    return ST_OK;
}

static void sim_unmap(struct file *base, const uint8_t *at, size_t len)
{
    struct sim_file *file = file_of(base);
    assert(file->node->mappings > 0);
    assert(at == file->node->now.ptr && len <= file->node->now.len);
    file->node->mappings--;
}

static void sim_close(struct file *base)
{
    struct sim_file *file = file_of(base);
    if (file->holds_lock)
        file->node->locked = false;
    node_unref(file->node);
    free(file);
}

static const struct file_ops sim_file_ops = {
    .pread = sim_pread,
    .pwrite = sim_pwrite,
    .sync = sim_sync,
    .size = sim_size,
    .map = sim_map,
    .unmap = sim_unmap,
    .close = sim_close,
};

/* -- calls on names -- */

static struct sim_file *file_new(struct fs_sim *sim, struct sim_node *node)
{
    struct sim_file *file = must(calloc(1, sizeof(*file)));
    file->file.ops = &sim_file_ops;
    file->sim = sim;
    file->node = node_ref(node);
    return file;
}

static enum status sim_open(struct fs *fs, const char *path, int flags, struct file **ret_file)
{
    struct fs_sim *sim = sim_of(fs);
    TRY(enter(sim, FS_SIM_OPEN));
    size_t at = names_find(&sim->now, path);
    bool there = at < sim->now.count;
    if (there == ((flags & FILE_CREATE) != 0))
        return there ? ST_EXISTS : ST_NOT_FOUND;
    if (there && !sim->now.items[at].node)
        return ST_IO;
    if (!there) {
        struct sim_node *node = node_new();
        change_names(sim, NULL, path, node);
        node_unref(node);
    }
    *ret_file = &file_new(sim, sim->now.items[names_find(&sim->now, path)].node)->file;
    return ST_OK;
}

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == 0);
}

/* Changes of names in a directory that is moved or removed become durable before. */
static void settle_tree(struct fs_sim *sim, const char *dir)
{
    struct name_change **link = &sim->changes, *change;
    while ((change = *link)) {
        if (!is_below(change->to ? change->to : change->from, dir)) {
            link = &change->next;
            continue;
        }
        names_change(&sim->durable, change);
        *link = change->next;
        change_free(change);
    }
    sim->changes_end = link;
}

static void names_move_tree(struct sim_names *names, const char *from, const char *to)
{
    for (size_t i = 0; i < names->count; i++) {
        struct sim_name *name = &names->items[i];
        if (!is_below(name->path, from))
            continue;
        size_t size = strlen(name->path) - strlen(from) + strlen(to) + 1;
        char *path = must(malloc(size));
        snprintf(path, size, "%s%s", to, name->path + strlen(from));
        free(name->path);
        name->path = path;
    }
}

static void names_remove_tree(struct sim_names *names, const char *dir)
{
    for (size_t i = names->count; i-- > 0;)
        if (is_below(names->items[i].path, dir))
            names_remove(names, names->items[i].path);
}

void fs_sim_remove_tree(struct fs_sim *sim, const char *path)
{
    settle_tree(sim, path); /* nothing of it comes back */
    names_remove_tree(&sim->now, path);
    names_remove_tree(&sim->durable, path);
}

static enum status sim_rename(struct fs *fs, const char *from, const char *to)
{
    struct fs_sim *sim = sim_of(fs);
    TRY(enter(sim, FS_SIM_RENAME));
    size_t at = names_find(&sim->now, from);
    if (at == sim->now.count)
        return ST_NOT_FOUND;
    if (!sim->now.items[at].node) {
        settle_tree(sim, from);
        names_move_tree(&sim->now, from, to);
        names_move_tree(&sim->durable, from, to);
        return ST_OK;
    }
    struct sim_node *node = node_ref(sim->now.items[at].node);
    change_names(sim, from, to, node);
    node_unref(node);
    return ST_OK;
}

static enum status sim_unlink(struct fs *fs, const char *path)
{
    struct fs_sim *sim = sim_of(fs);
    TRY(enter(sim, FS_SIM_UNLINK));
    if (names_find(&sim->now, path) == sim->now.count)
        return ST_NOT_FOUND;
    change_names(sim, path, NULL, NULL);
    return ST_OK;
}

static enum status sim_make_dir(struct fs *fs, const char *path)
{
    struct fs_sim *sim = sim_of(fs);
    if (names_find(&sim->now, path) < sim->now.count)
        return ST_EXISTS;
    names_set(&sim->now, path, NULL);
    names_set(&sim->durable, path, NULL);
    return ST_OK;
}

static enum status sim_sync_dir(struct fs *fs, const char *path)
{
    struct fs_sim *sim = sim_of(fs);
    TRY(enter(sim, FS_SIM_SYNC_DIR));
    struct fate all = {.kind = FS_SIM_ALL, .changes = UINT64_MAX};
    settle_names(sim, path, &all);
    return ST_OK;
}

static enum status sim_list(struct fs *fs, const char *path,
                            void (*fn)(void *ctx, const char *name), void *ctx)
{
    struct fs_sim *sim = sim_of(fs);
    TRY(enter(sim, FS_SIM_LIST));
    if (names_find(&sim->now, path) == sim->now.count)
        return ST_NOT_FOUND;
    for (size_t i = 0; i < sim->now.count; i++) {
        const char *name = name_in(sim->now.items[i].path, path);
        if (name)
            fn(ctx, name);
    }
    return ST_OK;
}

static enum status sim_lock(struct fs *fs, const char *path, struct file **ret_file)
{
    struct fs_sim *sim = sim_of(fs);
    struct file *base;
    bool there = names_find(&sim->now, path) < sim->now.count;
    TRY(sim_open(fs, path, there ? FILE_READ_WRITE : FILE_CREATE, &base));
    struct sim_file *file = file_of(base);
    if (file->node->locked) {
        file_close(base);
        return ST_IN_USE;
    }
    file->node->locked = file->holds_lock = true;
    *ret_file = base;
    return ST_OK;
}

static enum status sim_space(struct fs *fs, const char *path, uint64_t *ret_bytes)
{
    const struct fs_sim *sim = sim_of(fs);
    uint64_t used = used_bytes(sim);
    (void)path;
    *ret_bytes = used < sim->space_bytes ? sim->space_bytes - used : 0;
    return ST_OK;
}

static const struct fs_ops sim_fs_ops = {
    .open = sim_open,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .make_dir = sim_make_dir,
    .sync_dir = sim_sync_dir,
    .list = sim_list,
    .lock = sim_lock,
    .space = sim_space,
};

/* -- the disk -- */

struct fs_sim *fs_sim_new(uint64_t seed)
{
    struct fs_sim *sim = must(calloc(1, sizeof(*sim)));
    sim->fs.ops = &sim_fs_ops;
    random_init(&sim->random, seed);
    sim->changes_end = &sim->changes;
    sim->space_bytes = UINT64_MAX;
    return sim;
}

void fs_sim_free(struct fs_sim *sim)
{
    if (!sim)
        return;
    settle_names(sim, NULL, &(struct fate){.kind = FS_SIM_NONE});
    names_fini(&sim->now);
    names_fini(&sim->durable);
    free(sim);
}

struct fs *fs_sim_fs(struct fs_sim *sim)
{
    return &sim->fs;
}

struct fs_sim *fs_sim_of(struct file *file)
{
    return file->ops == &sim_file_ops ? file_of(file)->sim : NULL;
}

void fs_sim_fail(struct fs_sim *sim, enum fs_sim_call call, uint64_t n, enum status status,
                 bool sticky)
{
    sim->fail_call = call;
    sim->fail_at = n ? sim->calls[call] + n : 0;
    sim->fail_status = status;
    sim->fail_sticky = sticky;
}

uint64_t fs_sim_calls(const struct fs_sim *sim, enum fs_sim_call call)
{
    return sim->calls[call];
}

void fs_sim_set_space(struct fs_sim *sim, uint64_t bytes)
{
    sim->space_bytes = bytes;
}

/* A part of an unsynced write that is in one sector. */
struct sim_piece {
    uint64_t offset, len;
    uint8_t bytes[SECTOR_BYTES];
};

/* A start repeats its last records; damage to these would look like a torn write. */
static bool piece_repeats(const struct sim_node *node, const struct sim_piece *piece)
{
    return piece->offset + piece->len <= node->durable.len &&
           memcmp(node->durable.ptr + piece->offset, piece->bytes, piece->len) == 0;
}

/* One of those that change something. False: there is none. */
static bool piece_draw(struct random *random, const struct sim_node *node, struct sim_piece *ret)
{
    uint64_t count = 0;
    for (const struct sim_write *write = node->writes; write; write = write->next) {
        struct sim_piece piece;
        for (size_t done = 0; done < write->len; done += piece.len) {
            piece.offset = write->offset + done;
            piece.len = size_min(write->len - done, SECTOR_BYTES - piece.offset % SECTOR_BYTES);
            memcpy(piece.bytes, write->bytes + done, piece.len);
            if (!piece_repeats(node, &piece) && random_below(random, ++count) == 0)
                *ret = piece;
        }
    }
    return count > 0;
}

/* The content of a file after a power cut, as a new file: the old one stays with its users. */
static struct sim_node *node_after_crash(struct fs_sim *sim, struct sim_node *node)
{
    struct sim_piece from, to;
    bool misdirected = sim->misdirects && random_chance(&sim->random, 1, 2) &&
                       piece_draw(&sim->random, node, &from) && piece_draw(&sim->random, node, &to);
    struct fate fate = node_fate(&sim->random, node);
    node_settle(node, &fate);
    sim->cuts.files[fate.kind] += fate.changes > 0;
    sim->cuts.misdirected += misdirected;
    if (misdirected)
        bytes_write(&node->durable, to.offset, from.bytes, size_min(from.len, to.len));
    struct sim_node *after = node_new();
    bytes_copy(&after->durable, &node->durable);
    bytes_copy(&after->now, &node->durable);
    after->rotten = node->rotten;
    return after;
}

void fs_sim_crash(struct fs_sim *sim)
{
    for (size_t i = 0; i < sim->now.count; i++)
        if (sim->now.items[i].node)
            sim->now.items[i].node->dead = true;
    uint64_t changes = 0;
    for (const struct name_change *change = sim->changes; change; change = change->next)
        changes++;
    struct fate fate = fate_draw(&sim->random, changes);
    settle_names(sim, NULL, &fate);
    names_fini(&sim->now);
    for (size_t i = 0; i < sim->durable.count; i++) {
        struct sim_name *name = &sim->durable.items[i];
        if (name->node) {
            struct sim_node *after = node_after_crash(sim, name->node);
            name->node->dead = true;
            node_unref(name->node);
            name->node = after;
        }
        names_set(&sim->now, name->path, name->node);
    }
}

const struct fs_sim_cuts *fs_sim_cuts(const struct fs_sim *sim)
{
    return &sim->cuts;
}

void fs_sim_set_misdirects(struct fs_sim *sim, bool misdirects)
{
    sim->misdirects = misdirects;
}

bool fs_sim_rot(struct fs_sim *sim)
{
    struct sim_node *chosen = NULL;
    uint64_t count = 0;
    for (size_t i = 0; i < sim->now.count; i++) {
        struct sim_node *node = sim->now.items[i].node;
        if (node && node->now.len && random_below(&sim->random, ++count) == 0)
            chosen = node;
    }
    if (!chosen)
        return false;
    assert(!chosen->mappings);
    /* A byte that is not zero, if one is found soon: most of a file is unused. */
    size_t at = random_below(&sim->random, chosen->now.len);
    for (int i = 1; i < ROT_ATTEMPTS && !chosen->now.ptr[at]; i++)
        at = random_below(&sim->random, chosen->now.len);
    uint8_t bit = (uint8_t)(1u << random_below(&sim->random, 8));
    chosen->now.ptr[at] ^= bit;
    if (at < chosen->durable.len)
        chosen->durable.ptr[at] ^= bit;
    chosen->rotten = true;
    return true;
}

bool fs_sim_is_rotten(const struct fs_sim *sim)
{
    bool is_rotten = false;
    for (size_t i = 0; i < sim->now.count; i++)
        is_rotten |= sim->now.items[i].node && sim->now.items[i].node->rotten;
    return is_rotten;
}
