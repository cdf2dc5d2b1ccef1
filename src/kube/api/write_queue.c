#include "kube/api/write_queue.h"

/* Changes begun in one turn of the loop; each may read and decide at once. */
enum { BEGUN_PER_TURN = 16 };

static struct slice key_of(const void *value)
{
    return ((const struct kube_turn *)value)->key;
}

static struct kube_turn *turn_of(struct list *link)
{
    return CONTAINER_OF(link, struct kube_turn, link);
}

static void on_next(struct deferred *deferred)
{
    struct kube_line *line = CONTAINER_OF(deferred, struct kube_line, next);
    for (size_t i = 0; i < BEGUN_PER_TURN; i++) {
        struct list *link = list_pop_front(&line->ready);
        if (!link)
            return;
        turn_of(link)->begin(turn_of(link));
    }
    if (!list_empty(&line->ready))
        loop_defer(line->loop, &line->next);
}

void kube_line_init(struct kube_line *line, struct loop *loop, uint64_t seed)
{
    *line = (struct kube_line){.loop = loop, .next = {.fn = on_next}};
    hash_map_init(&line->heads, key_of, seed);
    list_init(&line->ready);
}

void kube_line_fini(struct kube_line *line)
{
    assert(line->heads.count == 0);
    loop_defer_cancel(&line->next);
    hash_map_fini(&line->heads);
}

/* In the place of the head that has left, if any; those behind it stay in line. */
static enum status become_head(struct kube_line *line, struct kube_turn *turn, struct list *behind,
                               size_t waiting)
{
    void *replaced;
    TRY(hash_map_put(&line->heads, turn, &replaced));
    turn->line = line;
    turn->heads = true;
    turn->waiting = waiting;
    list_init(&turn->link);
    list_init(&turn->behind);
    list_append(&turn->behind, behind);
    return ST_OK;
}

enum kube_entry kube_line_enter(struct kube_line *line, struct kube_turn *turn)
{
    struct kube_turn *head = hash_map_get(&line->heads, turn->key);
    struct list nobody;
    assert(!turn->line);
    if (!head) {
        list_init(&nobody);
        /* Without memory it is in no line: its order is for speed alone. */
        (void)!become_head(line, turn, &nobody, 0);
        return KUBE_LINE_FIRST;
    }
    if (head->waiting == KUBE_LINE_WAITING_MAX)
        return KUBE_LINE_REFUSED;
    turn->line = line;
    turn->heads = false;
    head->waiting++;
    list_push_back(&head->behind, &turn->link);
    return KUBE_LINE_WAITS;
}

static void leave_as_head(struct kube_turn *turn)
{
    struct kube_line *line = turn->line;
    struct list *link = list_pop_front(&turn->behind);
    list_remove(&turn->link); /* from those that are ready */
    (void)hash_map_remove(&line->heads, turn->key);
    if (!link)
        return;
    /* A removal has just made room for it. */
    enum status status = become_head(line, turn_of(link), &turn->behind, turn->waiting - 1);
    assert(status == ST_OK);
    (void)status;
    list_push_back(&line->ready, link);
    loop_defer(line->loop, &line->next);
}

static void leave_waiting(struct kube_turn *turn)
{
    struct kube_turn *head = hash_map_get(&turn->line->heads, turn->key);
    list_remove(&turn->link);
    head->waiting--;
}

void kube_line_leave(struct kube_turn *turn)
{
    if (!turn->line)
        return;
    if (turn->heads)
        leave_as_head(turn);
    else
        leave_waiting(turn);
    turn->line = NULL;
}

void kube_line_check(const struct kube_line *line)
{
    const struct kube_turn *head;
    MAP_FOREACH (head, &line->heads) {
        size_t waiting = 0;
        const struct kube_turn *turn;
        assert(head->line == line && head->heads);
        LIST_FOREACH (turn, &head->behind, link) {
            assert(turn->line == line && !turn->heads && slice_equal(turn->key, head->key));
            waiting++;
        }
        assert(waiting == head->waiting && waiting <= KUBE_LINE_WAITING_MAX);
    }
}
