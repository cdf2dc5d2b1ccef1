#include "kube/api/event_cache.h"

#include "base/xalloc.h"
#include "kube/storage/storage.h"

/* What one selector said. */
struct verdict {
    uint64_t age; /* of kube_sights; another one: none */
    const struct kube_selection *selection;
    enum kube_change change;
};

/* An object before or after; found out when somebody needs it. */
struct half {
    bool looked;
    bool whole; /* metadata too; otherwise only what sending needs */
    enum status status;
    struct kube_object object;
    /* Watches of different nodes ask for the same field: one that is behind, and walks over all
     * that happened, shall not have it searched again for each. */
    struct kube_field_memo field;
};

struct sight {
    uint64_t turn; /* of the hub; another one: nothing of the rest is true */
    const uint8_t *key;
    int64_t revision;
    struct half before, after;
    struct verdict verdicts[KUBE_SIGHT_VERDICTS];
    unsigned next_verdict;
    unsigned asked; /* bit per change: its bytes were asked for */
    struct slice wire[KUBE_CHANGE_UNDECODABLE], frames[KUBE_CHANGE_UNDECODABLE];
};

struct kube_sights {
    uint64_t turn;
    uint64_t age;   /* grows when a selection goes */
    uint8_t *bytes; /* KUBE_SIGHT_BYTES, once something is shared */
    size_t used;
    struct sight sights[KUBE_SIGHTS];
};

struct kube_sights *kube_sights_new(void)
{
    struct kube_sights *sights = xcalloc(1, sizeof(*sights));
    sights->age = 1;
    return sights;
}

void kube_sights_free(struct kube_sights *sights)
{
    if (!sights)
        return;
    free(sights->bytes);
    free(sights);
}

void kube_sights_forget(struct kube_sights *sights)
{
    sights->age++;
}

static struct sight *find(struct kube_sights *sights, const struct watch_cursor *cursor,
                          const struct watch_event *event, int64_t revision)
{
    uint64_t turn = watch_cursor_turn(cursor);
    size_t at = (size_t)revision + ((uintptr_t)event->key.ptr >> 6) * 31;
    struct sight *sight = &sights->sights[at % KUBE_SIGHTS];
    if (sights->turn != turn) {
        sights->turn = turn;
        sights->used = 0;
    }
    if (sight->turn == turn && sight->key == event->key.ptr && sight->revision == revision)
        return sight;
    *sight = (struct sight){.turn = turn, .key = event->key.ptr, .revision = revision};
    return sight;
}

/* -- Objects -- */

static enum status look(struct half *half, struct slice field, bool whole)
{
    if (half->looked && (half->whole || !whole) && half->status == ST_OK)
        return ST_OK;
    struct slice json = kube_kv_of(field).value;
    half->looked = true;
    half->whole = whole;
    half->status = (whole ? kube_object_parse : kube_object_parse_head)(json, &half->object);
    half->field.known = false;
    half->object.memo = &half->field;
    return half->status;
}

static bool look_after(struct sight *sight, const struct watch_event *event, bool whole)
{
    return look(&sight->after, event->field, whole) == ST_OK;
}

static bool look_before(struct sight *sight, struct watch_cursor *cursor,
                        const struct watch_event *event, bool whole)
{
    if (sight->before.looked && sight->before.whole >= whole)
        return sight->before.status == ST_OK;
    struct slice prev = watch_cursor_prev(cursor, event);
    return prev.len && look(&sight->before, prev, whole) == ST_OK;
}

static bool needs_whole(const struct kube_selection *selection, enum kube_shape shape)
{
    return selection->selects || shape != KUBE_WHOLE;
}

/* -- Verdicts -- */

/* What was before is looked at only if it matters. */
static enum kube_change judge(struct sight *sight, struct watch_cursor *cursor,
                              const struct watch_event *event,
                              const struct kube_selection *selection, enum kube_shape shape)
{
    bool matches = !event->tombstone, matched = !event->created;
    bool whole = needs_whole(selection, shape);
    if (matches) {
        if (!look_after(sight, event, whole))
            return KUBE_CHANGE_UNDECODABLE;
        matches = kube_selection_matches(selection, &sight->after.object);
    }
    if (matched && (event->tombstone || selection->selects)) {
        if (!look_before(sight, cursor, event, whole))
            return KUBE_CHANGE_UNDECODABLE;
        matched = kube_selection_matches(selection, &sight->before.object);
    }
    if (event->tombstone || (matched && !matches))
        return matched ? KUBE_CHANGE_DELETED : KUBE_CHANGE_NONE;
    if (!matches)
        return KUBE_CHANGE_NONE;
    return event->created || !matched ? KUBE_CHANGE_ADDED : KUBE_CHANGE_MODIFIED;
}

enum kube_change kube_sights_change(struct kube_sights *sights, struct watch_cursor *cursor,
                                    const struct watch_event *event, int64_t revision,
                                    const struct kube_selection *selection, enum kube_shape shape)
{
    struct sight *sight = find(sights, cursor, event, revision);
    if (!selection->selects)
        return judge(sight, cursor, event, selection, shape);
    for (size_t i = 0; i < KUBE_SIGHT_VERDICTS; i++) {
        const struct verdict *verdict = &sight->verdicts[i];
        if (verdict->age == sights->age && verdict->selection == selection)
            return verdict->change;
    }
    enum kube_change change = judge(sight, cursor, event, selection, shape);
    sight->verdicts[sight->next_verdict++ % KUBE_SIGHT_VERDICTS] =
        (struct verdict){sights->age, selection, change};
    return change;
}

bool kube_sights_object(struct kube_sights *sights, struct watch_cursor *cursor,
                        const struct watch_event *event, int64_t revision,
                        const struct kube_selection *selection, enum kube_shape shape,
                        enum kube_change change, struct kube_object *ret_object)
{
    struct sight *sight = find(sights, cursor, event, revision);
    bool whole = needs_whole(selection, shape);
    bool before = change == KUBE_CHANGE_DELETED;
    if (!(before ? look_before(sight, cursor, event, whole) : look_after(sight, event, whole)))
        return false;
    *ret_object = before ? sight->before.object : sight->after.object;
    ret_object->memo = NULL; /* it may outlive what the sight remembers */
    return true;
}

/* -- Bytes -- */

const char *kube_change_type(enum kube_change change)
{
    static const char *const types[] = {
        [KUBE_CHANGE_ADDED] = "ADDED",
        [KUBE_CHANGE_MODIFIED] = "MODIFIED",
        [KUBE_CHANGE_DELETED] = "DELETED",
    };
    return types[change];
}

struct slice kube_change_head(enum kube_change change)
{
    static const char *const heads[] = {
        [KUBE_CHANGE_ADDED] = "{\"type\":\"ADDED\",\"object\":",
        [KUBE_CHANGE_MODIFIED] = "{\"type\":\"MODIFIED\",\"object\":",
        [KUBE_CHANGE_DELETED] = "{\"type\":\"DELETED\",\"object\":",
    };
    return slice_from_text(heads[change]);
}

struct slice kube_change_tail(void)
{
    return SLICE_LITERAL("}\n");
}

/* Room that lasts until the turn ends; NULL: that would be too much. */
static uint8_t *take_room(struct kube_sights *sights, size_t size)
{
    if (size > KUBE_SIGHT_OBJECT_BYTES || size > KUBE_SIGHT_BYTES - sights->used)
        return NULL;
    if (!sights->bytes)
        sights->bytes = xmalloc(KUBE_SIGHT_BYTES);
    uint8_t *room = sights->bytes + sights->used;
    sights->used += size;
    return room;
}

static void make_wire(struct kube_sights *sights, struct slice *wire, enum kube_change change,
                      const struct kube_object *object, int64_t revision)
{
    struct slice head = kube_change_head(change), tail = kube_change_tail();
    size_t object_bytes = kube_object_size(object, revision, false);
    size_t size = head.len + object_bytes + tail.len;
    uint8_t *at = take_room(sights, size);
    if (!at)
        return;
    slice_copy(at, head);
    kube_object_copy(object, revision, false, 0, at + head.len, object_bytes);
    slice_copy(at + head.len + object_bytes, tail);
    *wire = slice_of(at, size);
}

bool kube_sights_wire(struct kube_sights *sights, struct watch_cursor *cursor,
                      const struct watch_event *event, int64_t revision, enum kube_change change,
                      struct slice *ret_bytes)
{
    struct sight *sight = find(sights, cursor, event, revision);
    const struct half *half = change == KUBE_CHANGE_DELETED ? &sight->before : &sight->after;
    struct slice *wire = &sight->wire[change];
    unsigned bit = 1u << change;
    if (!wire->len && sight->asked & bit && half->looked && half->status == ST_OK)
        make_wire(sights, wire, change, &half->object, revision);
    sight->asked |= bit;
    *ret_bytes = *wire;
    return wire->len > 0;
}

bool kube_sights_frame(struct kube_sights *sights, const struct watch_cursor *cursor,
                       const struct watch_event *event, int64_t revision, enum kube_change change,
                       struct slice *ret_frame)
{
    *ret_frame = find(sights, cursor, event, revision)->frames[change];
    return ret_frame->len > 0;
}

void kube_sights_keep_frame(struct kube_sights *sights, const struct watch_cursor *cursor,
                            const struct watch_event *event, int64_t revision,
                            enum kube_change change, struct slice frame)
{
    uint8_t *at = frame.len ? take_room(sights, frame.len) : NULL;
    if (!at)
        return;
    slice_copy(at, frame);
    find(sights, cursor, event, revision)->frames[change] = slice_of(at, frame.len);
}
