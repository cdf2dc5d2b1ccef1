#include "mirror/follow/history_check.h"

#include "base/crc32c.h"
#include "base/xalloc.h"
#include "engine/local/mirror/mirror_store.h"

void witness_fini(struct witness *witness)
{
    buf_fini(&witness->key);
    buf_fini(&witness->gone_key);
    *witness = (struct witness){0};
}

static void set_key(struct buf *to, struct slice key)
{
    to->len = 0;
    xalloc_check(buf_append(to, key) == ST_OK ? to : NULL, key.len);
}

void witness_note(struct witness *witness, const struct imported_change *change)
{
    const struct change_kv *kv = &change->kv;
    if (change->is_tombstone) {
        set_key(&witness->gone_key, kv->key);
        witness->gone_revision = kv->mod_revision;
        return;
    }
    set_key(&witness->key, kv->key);
    witness->revision = kv->mod_revision;
    witness->create_revision = kv->create_revision;
    witness->version = kv->version;
    witness->lease = kv->lease;
    witness->value_bytes = kv->value.len;
    witness->value_crc = crc32c(0, kv->value);
}

void witness_note_last(struct witness *witness, const struct imported_change *changes, size_t count)
{
    size_t i = count;
    while (i > 0 && changes[i - 1].is_tombstone)
        i--;
    if (i > 0)
        witness_note(witness, &changes[i - 1]);
    if (i < count)
        witness_note(witness, &changes[count - 1]);
}

void witness_find(struct witness *witness, struct engine *mirror)
{
    struct imported_change newest = {0};
    struct slice key;
    int64_t revision, highest = 0;
    struct mirror_walk *walk = local_mirror_walk_new(mirror);
    while (local_mirror_walk_next(walk, &key, &revision))
        highest = revision > highest ? revision : highest;
    local_mirror_walk_free(walk);
    /* Again, because reading the values of all keys on the way would take long. */
    walk = local_mirror_walk_new(mirror);
    while (local_mirror_walk_next(walk, &key, &revision) && revision != highest)
        ;
    if (highest) {
        local_mirror_walk_get(walk, &newest.kv);
        witness_note(witness, &newest);
    }
    local_mirror_walk_free(walk);
}

bool witness_question(const struct witness *witness, enum witness_kind kind, struct slice *ret_key,
                      int64_t *ret_revision)
{
    bool is_put = kind == WITNESS_PUT;
    if (is_put ? !witness->revision : witness->gone_revision <= witness->revision)
        return false;
    *ret_key = buf_slice(is_put ? &witness->key : &witness->gone_key);
    *ret_revision = is_put ? witness->revision : witness->gone_revision;
    if (kind == WITNESS_WAS_THERE)
        *ret_revision -= 1;
    return *ret_revision > 0;
}

static bool is_same(const struct witness *witness, const vigil_kv *kv)
{
    return kv->mod_revision == witness->revision &&
           kv->create_revision == witness->create_revision && kv->version == witness->version &&
           kv->lease == witness->lease && kv->value.size == witness->value_bytes &&
           crc32c(0, slice_of(kv->value.data, kv->value.size)) == witness->value_crc;
}

bool witness_agrees(const struct witness *witness, enum witness_kind kind, const vigil_kv *kv)
{
    if (kind == WITNESS_PUT)
        return kv && is_same(witness, kv);
    return (kv != NULL) == (kind == WITNESS_WAS_THERE);
}
