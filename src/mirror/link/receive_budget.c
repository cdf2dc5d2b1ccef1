#include "mirror/link/receive_budget.h"

#include "base/slice.h"

static const size_t limits[UPSTREAM_ROOM_KINDS] = {
    [UPSTREAM_ROOM_SHORT] = UPSTREAM_SHORT_BYTES_MAX,
    [UPSTREAM_ROOM_LONG] = UPSTREAM_LONG_BYTES_MAX,
    [UPSTREAM_ROOM_HELD] = UPSTREAM_LONG_BYTES_MAX,
    [UPSTREAM_ROOM_WAITING] = UPSTREAM_STALLED_BYTES_MAX,
    [UPSTREAM_ROOM_PAUSED] = UPSTREAM_STALLED_BYTES_MAX,
};

void upstream_room_init(struct upstream_room *room)
{
    *room = (struct upstream_room){0};
    list_init(&room->line);
    list_init(&room->held_line);
}

static size_t bytes_as(enum upstream_room_kind kind, size_t message)
{
    if (kind == UPSTREAM_ROOM_NONE)
        return 0;
    return kind >= UPSTREAM_ROOM_WAITING ? size_min(message, UPSTREAM_WINDOW_BYTES) : message;
}

/* False: the kind has no room for it, and nothing has changed. */
static bool become(struct upstream_room *room, struct upstream_claim *claim,
                   enum upstream_room_kind kind)
{
    size_t bytes = bytes_as(kind, claim->message);
    if (room->held[kind] + bytes > limits[kind])
        return false;
    room->held[claim->kind] -= bytes_as(claim->kind, claim->message);
    room->held[kind] += bytes;
    claim->kind = kind;
    return true;
}

static bool become_whole(struct upstream_room *room, struct upstream_claim *claim)
{
    enum upstream_room_kind kind = claim->holds ? UPSTREAM_ROOM_HELD : UPSTREAM_ROOM_LONG;
    bool is_short = claim->message <= UPSTREAM_WINDOW_BYTES;
    return become(room, claim, is_short ? UPSTREAM_ROOM_SHORT : kind);
}

static struct list *line_of(struct upstream_room *room, const struct upstream_claim *claim)
{
    return claim->holds ? &room->held_line : &room->line;
}

/* A long message does not overtake others. */
static bool wait_if_needed(struct upstream_room *room, struct upstream_claim *claim)
{
    bool first = list_empty(line_of(room, claim)) || claim->message <= UPSTREAM_WINDOW_BYTES;
    if (first && become_whole(room, claim))
        return true;
    if (!become(room, claim, UPSTREAM_ROOM_WAITING) && claim->kind == UPSTREAM_ROOM_NONE)
        return false;
    list_push_back(line_of(room, claim), &claim->in_line);
    return true;
}

bool upstream_room_claim(struct upstream_room *room, struct upstream_claim *claim, size_t message,
                         bool holds, bool paused)
{
    assert(claim->kind == UPSTREAM_ROOM_NONE);
    *claim = (struct upstream_claim){.message = message, .holds = holds};
    list_init(&claim->in_line);
    return paused ? become(room, claim, UPSTREAM_ROOM_PAUSED) : wait_if_needed(room, claim);
}

void upstream_room_release(struct upstream_room *room, struct upstream_claim *claim)
{
    if (claim->kind == UPSTREAM_ROOM_NONE)
        return;
    list_remove(&claim->in_line);
    room->held[claim->kind] -= bytes_as(claim->kind, claim->message);
    claim->kind = UPSTREAM_ROOM_NONE;
}

void upstream_room_pause(struct upstream_room *room, struct upstream_claim *claim, bool paused)
{
    if (!upstream_claim_is_stalled(claim))
        return; /* nothing begun, or all of it may come already */
    bool in_line = !list_empty(&claim->in_line);
    if (paused && in_line) {
        list_remove(&claim->in_line);
        (void)become(room, claim, UPSTREAM_ROOM_PAUSED); /* or it stays counted as it is */
    } else if (!paused && !in_line) {
        (void)wait_if_needed(room, claim); /* it has room for what has arrived */
    }
}

void upstream_claim_move(struct upstream_claim *to, struct upstream_claim *from)
{
    assert(from->kind && list_empty(&from->in_line));
    *to = *from;
    list_init(&to->in_line);
    from->kind = UPSTREAM_ROOM_NONE;
}

bool upstream_room_is_awaited(const struct upstream_room *room)
{
    return !list_empty(&room->held_line);
}

static struct upstream_claim *grant_from(struct upstream_room *room, struct list *line)
{
    if (list_empty(line))
        return NULL;
    struct upstream_claim *first = LIST_ENTRY(line->next, struct upstream_claim, in_line);
    if (!become_whole(room, first))
        return NULL;
    list_remove(&first->in_line);
    return first;
}

struct upstream_claim *upstream_room_grant(struct upstream_room *room)
{
    struct upstream_claim *first = grant_from(room, &room->line);
    return first ? first : grant_from(room, &room->held_line);
}
