#include "engine/local/damage.h"

#include "base/clock.h"
#include "engine/local/local_private.h"
#include "store/log/damage.h"

#include <stdio.h>

/* Keys are any bytes: what is not plain text is shown as a dot, and not much of it. */
static void key_text(struct slice key, char text[static 65])
{
    size_t len = size_min(key.len, 64);
    for (size_t i = 0; i < len; i++) {
        bool plain = key.ptr[i] > ' ' && key.ptr[i] < 0x7f && key.ptr[i] != '"';
        text[i] = plain ? (char)key.ptr[i] : '.';
    }
    text[len] = 0;
}

void local_damage_text(char text[static LOCAL_DAMAGE_TEXT_BYTES], uint64_t segment_id,
                       uint64_t offset, struct slice key)
{
    char name[65];
    key_text(key, name);
    snprintf(text, LOCAL_DAMAGE_TEXT_BYTES,
             "log/%016llx.seg, offset %llu%s%s: put the key again, or restore a snapshot",
             (unsigned long long)segment_id, (unsigned long long)offset, key.len ? ", key " : "",
             name);
}

static void tell(struct engine_local *engine, struct slice key)
{
    char detail[LOCAL_DAMAGE_TEXT_BYTES];
    uint64_t segment, offset;
    (void)log_damage_count(store_log(engine->store), &segment, &offset);
    local_damage_text(detail, segment, offset, key);
    local_warn(engine, "a request met damage", ST_DAMAGED, detail);
}

enum status local_damage_told(struct engine_local *engine, enum status status, struct slice key)
{
    if (LIKELY(status != ST_DAMAGED))
        return status;
    struct local_damage *damage = &engine->damage;
    atomic_fetch_add(&damage->reads, 1);
    int64_t now = clock_mono_ns(clock_system()), last = atomic_load(&damage->told_ns);
    if ((!last || now - last >= NS_PER_S) &&
        atomic_compare_exchange_strong(&damage->told_ns, &last, now))
        tell(engine, key);
    return ST_CORRUPT;
}
