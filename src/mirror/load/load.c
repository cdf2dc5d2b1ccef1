#include "mirror/load/load.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "mirror/load/scratch_file.h"

/* A difference: where the file has it. */
struct entry {
    int64_t revision;
    uint64_t place; /* in the file; of a tombstone with the highest bit */
};
#define ENTRY_TOMBSTONE (UINT64_C(1) << 63)

/* Before the key and the value of each record in the file. */
struct record_head {
    int64_t create_revision, version, lease;
    uint32_t key_len, value_len;
};

struct load {
    struct load_walk walk;
    struct scratch_file *file; /* owned */
    int64_t mirrored;

    struct slice mirror_key; /* where the walk is; valid if has_mirror_key */
    int64_t mirror_mod_revision;
    bool has_mirror_key;

    struct buf last_key; /* last key of the state */
    uint64_t keys;

    struct entry *entries; /* owned; in the order of the keys, then of the revisions */
    size_t count, capacity;
    size_t taken;
    bool finished;
};

static void walk_on(struct load *load)
{
    load->has_mirror_key =
        load->walk.next(load->walk.ctx, &load->mirror_key, &load->mirror_mod_revision);
}

enum status load_new(const char *directory, struct load_walk walk, int64_t mirrored,
                     struct load **ret_load, struct error *error)
{
    struct scratch_file *file;
    TRY(scratch_file_open(directory, &file, error));
    struct load *load = xcalloc(1, sizeof(*load));
    load->walk = walk;
    load->file = file;
    load->mirrored = mirrored;
    walk_on(load);
    *ret_load = load;
    return ST_OK;
}

void load_free(struct load *load)
{
    if (!load)
        return;
    scratch_file_close(load->file);
    buf_fini(&load->last_key);
    free(load->entries);
    free(load);
}

uint64_t load_keys(const struct load *load)
{
    return load->keys;
}

uint64_t load_different(const struct load *load)
{
    return load->count;
}

/* -- Comparing -- */

static void add_entry(struct load *load, int64_t revision, uint64_t place)
{
    if (load->count == load->capacity) {
        load->capacity = size_max(1024, load->capacity + load->capacity / 2);
        load->entries = xrealloc(load->entries, load->capacity * sizeof(*load->entries));
    }
    load->entries[load->count++] = (struct entry){revision, place};
}

static enum status append_record(struct load *load, const struct record_head *head,
                                 struct slice key, struct slice value)
{
    TRY(scratch_file_append(load->file, slice_of(head, sizeof(*head))));
    TRY(scratch_file_append(load->file, key));
    return scratch_file_append(load->file, value);
}

static enum status add_put(struct load *load, const vigil_kv *kv)
{
    struct record_head head = {
        .create_revision = kv->create_revision,
        .version = kv->version,
        .lease = kv->lease,
        .key_len = (uint32_t)kv->key.size,
        .value_len = (uint32_t)kv->value.size,
    };
    add_entry(load, kv->mod_revision, scratch_file_bytes(load->file));
    return append_record(load, &head, slice_of(kv->key.data, kv->key.size),
                         slice_of(kv->value.data, kv->value.size));
}

/* The mirror's key is not in the state. */
static enum status add_tombstone(struct load *load, int64_t revision)
{
    if (revision <= load->mirrored)
        return ST_INVALID;
    struct record_head head = {.key_len = (uint32_t)load->mirror_key.len};
    add_entry(load, revision, scratch_file_bytes(load->file) | ENTRY_TOMBSTONE);
    return append_record(load, &head, load->mirror_key, SLICE_EMPTY);
}

static enum status check_order(struct load *load, int64_t revision, const vigil_kv *kv)
{
    struct slice key = slice_of(kv->key.data, kv->key.size);
    if (kv->mod_revision > revision || kv->mod_revision <= 0 || key.len == 0 ||
        slice_compare(key, buf_slice(&load->last_key)) <= 0)
        return ST_MALFORMED;
    load->last_key.len = 0;
    xalloc_check(buf_append(&load->last_key, key) == ST_OK ? load : NULL, key.len);
    load->keys++;
    return ST_OK;
}

/* The mirror has the key with this mod revision. */
static bool is_equal(struct load *load, const vigil_kv *kv)
{
    struct change_kv own;
    load->walk.get(load->walk.ctx, &own);
    return own.create_revision == kv->create_revision && own.version == kv->version &&
           own.lease == kv->lease &&
           slice_equal(own.value, slice_of(kv->value.data, kv->value.size));
}

static enum status compare(struct load *load, int64_t revision, const vigil_kv *kv)
{
    struct slice key = slice_of(kv->key.data, kv->key.size);
    int order = -1;
    /* The cluster lacks all keys that the mirror has before this one. */
    while (load->has_mirror_key && (order = slice_compare(load->mirror_key, key)) < 0) {
        TRY(add_tombstone(load, revision));
        walk_on(load);
    }
    bool is_there = load->has_mirror_key && order == 0;
    bool is_same = is_there && load->mirror_mod_revision == kv->mod_revision;
    if (is_same && !is_equal(load, kv))
        return ST_INVALID; /* one revision with two values: they have different histories */
    if (is_there)
        walk_on(load);
    if (is_same)
        return ST_OK;
    return kv->mod_revision > load->mirrored ? add_put(load, kv) : ST_INVALID;
}

enum status load_add(struct load *load, int64_t revision, const vigil_kv *kvs, size_t count)
{
    assert(!load->finished);
    for (size_t i = 0; i < count; i++) {
        TRY(check_order(load, revision, &kvs[i]));
        TRY(compare(load, revision, &kvs[i]));
    }
    return ST_OK;
}

/* -- In the order of revisions -- */

static int by_revision(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->revision != y->revision)
        return x->revision < y->revision ? -1 : 1;
    uint64_t at = x->place & ~ENTRY_TOMBSTONE, other = y->place & ~ENTRY_TOMBSTONE;
    return (at > other) - (at < other);
}

enum status load_finish(struct load *load, int64_t revision)
{
    for (; load->has_mirror_key; walk_on(load))
        TRY(add_tombstone(load, revision));
    TRY(scratch_file_finish(load->file));
    if (load->count)
        qsort(load->entries, load->count, sizeof(*load->entries), by_revision);
    load->finished = true;
    return ST_OK;
}

static size_t read_change(const struct load *load, const struct entry *entry,
                          struct imported_change *ret_change)
{
    const uint8_t *at = scratch_file_at(load->file, entry->place & ~ENTRY_TOMBSTONE);
    struct record_head head;
    memcpy(&head, at, sizeof(head));
    at += sizeof(head);
    *ret_change = (struct imported_change){
        .kv.key = slice_of(at, head.key_len),
        .kv.mod_revision = entry->revision,
        .is_tombstone = (entry->place & ENTRY_TOMBSTONE) != 0,
    };
    if (ret_change->is_tombstone)
        return head.key_len;
    ret_change->kv.create_revision = head.create_revision;
    ret_change->kv.version = head.version;
    ret_change->kv.lease = head.lease;
    ret_change->kv.value = slice_of(at + head.key_len, head.value_len);
    return head.key_len + head.value_len;
}

/* How many entries the next part has. */
static size_t part_entries(const struct load *load, size_t bytes_max)
{
    size_t bytes = 0, i = load->taken;
    struct imported_change change;
    for (; i < load->count; i++) {
        bool begins = i > load->taken && load->entries[i].revision != load->entries[i - 1].revision;
        if (begins && bytes >= bytes_max)
            break;
        bytes += sizeof(change) + read_change(load, &load->entries[i], &change);
    }
    return i - load->taken;
}

static void fill_part(const struct load *load, size_t count, struct load_part *part)
{
    struct mirror_revision *revision = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &load->entries[load->taken + i];
        if (!revision || revision->revision != entry->revision) {
            revision = &part->revisions[part->count++];
            revision->revision = entry->revision;
            revision->changes = &part->changes[i];
            revision->count = 0;
        }
        (void)read_change(load, entry, &part->changes[i]);
        part->changes[i].sub = (uint32_t)revision->count++;
    }
}

void load_take(struct load *load, size_t bytes_max, struct load_part *ret_part)
{
    assert(load->finished);
    size_t count = part_entries(load, bytes_max);
    struct load_part part = {0};
    if (count) {
        part.revisions = xmalloc(count * sizeof(*part.revisions));
        part.changes = xmalloc(count * sizeof(*part.changes));
        fill_part(load, count, &part);
    }
    load->taken += count;
    part.is_last = load->taken == load->count;
    *ret_part = part;
}

void load_part_fini(struct load_part *part)
{
    free(part->revisions);
    free(part->changes);
    *part = (struct load_part){0};
}
