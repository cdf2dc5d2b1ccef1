#include "mirror/follow/history_check.h"

#include "base/crc32c.h"
#include "base/xalloc.h"
#include "engine/local/mirror/mirror_store.h"

void history_check_fini(struct history_check *check)
{
    buf_fini(&check->key);
    buf_fini(&check->gone_key);
    *check = (struct history_check){0};
}

static void set_key(struct buf *to, struct slice key)
{
    to->len = 0;
    xalloc_check(buf_append(to, key) == ST_OK ? to : NULL, key.len);
}

void history_check_note(struct history_check *check, const struct imported_change *change)
{
    const struct change_kv *kv = &change->kv;
    if (change->is_tombstone) {
        set_key(&check->gone_key, kv->key);
        check->gone_revision = kv->mod_revision;
        return;
    }
    set_key(&check->key, kv->key);
    check->revision = kv->mod_revision;
    check->create_revision = kv->create_revision;
    check->version = kv->version;
    check->lease = kv->lease;
    check->value_bytes = kv->value.len;
    check->value_crc = crc32c(0, kv->value);
}

void history_check_note_last(struct history_check *check, const struct imported_change *changes,
                             size_t count)
{
    size_t i = count;
    while (i > 0 && changes[i - 1].is_tombstone)
        i--;
    if (i > 0)
        history_check_note(check, &changes[i - 1]);
    if (i < count)
        history_check_note(check, &changes[count - 1]);
}

void history_check_find(struct history_check *check, struct engine *mirror)
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
        history_check_note(check, &newest);
    }
    local_mirror_walk_free(walk);
}

bool history_check_question(const struct history_check *check, enum history_check_kind kind,
                            struct slice *ret_key, int64_t *ret_revision)
{
    bool is_put = kind == HISTORY_CHECK_PUT;
    if (is_put ? !check->revision : check->gone_revision <= check->revision)
        return false;
    *ret_key = buf_slice(is_put ? &check->key : &check->gone_key);
    *ret_revision = is_put ? check->revision : check->gone_revision;
    if (kind == HISTORY_CHECK_WAS_THERE)
        *ret_revision -= 1;
    return *ret_revision > 0;
}

static bool is_same(const struct history_check *check, const vigil_kv *kv)
{
    return kv->mod_revision == check->revision && kv->create_revision == check->create_revision &&
           kv->version == check->version && kv->lease == check->lease &&
           kv->value.size == check->value_bytes &&
           crc32c(0, slice_of(kv->value.data, kv->value.size)) == check->value_crc;
}

bool history_check_agrees(const struct history_check *check, enum history_check_kind kind,
                          const vigil_kv *kv)
{
    if (kind == HISTORY_CHECK_PUT)
        return kv && is_same(check, kv);
    return (kv != NULL) == (kind == HISTORY_CHECK_WAS_THERE);
}
