#include "mirror/link/receive_budget.h"

#include "base/slice.h"

static const size_t limits[RECEIVE_KINDS] = {
    [RECEIVE_SHORT] = UPSTREAM_SHORT_BYTES_MAX,    [RECEIVE_LONG] = UPSTREAM_LONG_BYTES_MAX,
    [RECEIVE_HELD] = UPSTREAM_LONG_BYTES_MAX,      [RECEIVE_WAITING] = UPSTREAM_STALLED_BYTES_MAX,
    [RECEIVE_PAUSED] = UPSTREAM_STALLED_BYTES_MAX,
};

void receive_budget_init(struct receive_budget *budget)
{
    *budget = (struct receive_budget){0};
    list_init(&budget->line);
    list_init(&budget->held_line);
}

static size_t bytes_as(enum receive_kind kind, size_t message)
{
    if (kind == RECEIVE_NONE)
        return 0;
    return kind >= RECEIVE_WAITING ? size_min(message, UPSTREAM_WINDOW_BYTES) : message;
}

/* False: the kind has no room for it, and nothing has changed. */
static bool become(struct receive_budget *budget, struct receive_share *share,
                   enum receive_kind kind)
{
    size_t bytes = bytes_as(kind, share->message);
    if (budget->held[kind] + bytes > limits[kind])
        return false;
    budget->held[share->kind] -= bytes_as(share->kind, share->message);
    budget->held[kind] += bytes;
    share->kind = kind;
    return true;
}

static bool become_whole(struct receive_budget *budget, struct receive_share *share)
{
    enum receive_kind kind = share->keeps ? RECEIVE_HELD : RECEIVE_LONG;
    bool is_short = share->message <= UPSTREAM_WINDOW_BYTES;
    return become(budget, share, is_short ? RECEIVE_SHORT : kind);
}

static struct list *line_of(struct receive_budget *budget, const struct receive_share *share)
{
    return share->keeps ? &budget->held_line : &budget->line;
}

/* A long message does not overtake others. */
static bool wait_if_needed(struct receive_budget *budget, struct receive_share *share)
{
    bool first = list_empty(line_of(budget, share)) || share->message <= UPSTREAM_WINDOW_BYTES;
    if (first && become_whole(budget, share))
        return true;
    if (!become(budget, share, RECEIVE_WAITING) && share->kind == RECEIVE_NONE)
        return false;
    list_push_back(line_of(budget, share), &share->in_line);
    return true;
}

bool receive_budget_take(struct receive_budget *budget, struct receive_share *share, size_t message,
                         bool keeps, bool paused)
{
    assert(share->kind == RECEIVE_NONE);
    *share = (struct receive_share){.message = message, .keeps = keeps};
    list_init(&share->in_line);
    return paused ? become(budget, share, RECEIVE_PAUSED) : wait_if_needed(budget, share);
}

void receive_budget_release(struct receive_budget *budget, struct receive_share *share)
{
    if (share->kind == RECEIVE_NONE)
        return;
    list_remove(&share->in_line);
    budget->held[share->kind] -= bytes_as(share->kind, share->message);
    share->kind = RECEIVE_NONE;
}

void receive_budget_pause(struct receive_budget *budget, struct receive_share *share, bool paused)
{
    if (!receive_share_is_stalled(share))
        return; /* nothing begun, or all of it may come already */
    bool in_line = !list_empty(&share->in_line);
    if (paused && in_line) {
        list_remove(&share->in_line);
        (void)become(budget, share, RECEIVE_PAUSED); /* or it stays counted as it is */
    } else if (!paused && !in_line) {
        (void)wait_if_needed(budget, share); /* it has room for what has arrived */
    }
}

void receive_share_move(struct receive_share *to, struct receive_share *from)
{
    assert(from->kind && list_empty(&from->in_line));
    *to = *from;
    list_init(&to->in_line);
    from->kind = RECEIVE_NONE;
}

bool receive_budget_is_awaited(const struct receive_budget *budget)
{
    return !list_empty(&budget->held_line);
}

static struct receive_share *grant_from(struct receive_budget *budget, struct list *line)
{
    if (list_empty(line))
        return NULL;
    struct receive_share *first = LIST_ENTRY(line->next, struct receive_share, in_line);
    if (!become_whole(budget, first))
        return NULL;
    list_remove(&first->in_line);
    return first;
}

struct receive_share *receive_budget_next(struct receive_budget *budget)
{
    struct receive_share *first = grant_from(budget, &budget->line);
    return first ? first : grant_from(budget, &budget->held_line);
}
