#include "tier/rights/rights_private.h"

#include "tier/rights/review.h"
#include "tier/rights/selectors.h"

#include <stdlib.h>

struct slice tier_right_key(const void *value)
{
    return slice_of(((const struct tier_right *)value)->id, TIER_ID_BYTES);
}

/* -- What is kept of a right -- */

static bool is_needed(const struct tier_right *right)
{
    return right->busy || !list_empty(&right->waiters) || !list_empty(&right->news.waiters) ||
           right->ask.state != TIER_ASK_IDLE || tier_duty_exists(&right->duty);
}

static void drop_reason(struct tier_right *right)
{
    tier_keep(right->rights, 0, right->reason.capacity);
    buf_fini(&right->reason);
}

static void drop_wish(struct tier_right *right)
{
    tier_user_unref(TAKE(right->user));
    free(TAKE(right->wish));
}

void tier_right_destroy(struct tier_right *right)
{
    assert(list_empty(&right->waiters) && !right->busy && !tier_duty_exists(&right->duty));
    tier_line_remove(&right->ask);
    list_remove(&right->in_kept);
    drop_reason(right);
    drop_wish(right);
    free(right);
}

static void forget_right(struct tier_right *right)
{
    hash_map_remove(&right->rights->rights, tier_right_key(right));
    tier_right_destroy(right);
}

void tier_right_release(struct tier_right *right)
{
    if (is_needed(right))
        return;
    drop_wish(right);
    if (!right->answered)
        forget_right(right);
    else if (list_empty(&right->in_kept)) {
        list_push_back(&right->rights->kept_rights, &right->in_kept);
        tier_keep(right->rights, 0, 0);
    }
}

void tier_right_forget(struct tier_right *right)
{
    right->answered = false;
    list_remove(&right->in_kept);
    drop_reason(right);
    tier_right_release(right);
}

/* -- Wishes -- */

static struct slice put(uint8_t **at, struct slice bytes)
{
    uint8_t *copy = *at;
    slice_copy(copy, bytes);
    *at += bytes.len;
    return slice_of(copy, bytes.len);
}

/* NULL: no memory. */
static struct tier_wish *wish_new(const struct tier_access *access, struct slice attributes)
{
    const struct slice verb = slice_of(access->verb, strlen(access->verb) + 1);
    size_t bytes = sizeof(struct tier_wish) + verb.len + access->group.len + access->version.len +
                   access->resource.len + access->subresource.len + access->namespace.len +
                   access->name.len + attributes.len;
    struct tier_wish *wish = malloc(bytes);
    if (!wish)
        return NULL;
    uint8_t *at = wish->texts;
    *wish = (struct tier_wish){.bytes = bytes};
    wish->access.verb = (const char *)put(&at, verb).ptr;
    wish->access.group = put(&at, access->group);
    wish->access.version = put(&at, access->version);
    wish->access.resource = put(&at, access->resource);
    wish->access.subresource = put(&at, access->subresource);
    wish->access.namespace = put(&at, access->namespace);
    wish->access.name = put(&at, access->name);
    wish->attributes = put(&at, attributes);
    return wish;
}

/* -- Questions -- */

enum { FIRST_BYTES = 4096 };

/* A question while it is looked up. */
struct draft {
    struct tier_access access; /* with the name that the field selector requires */
    struct buf attributes;
    uint8_t id[TIER_ID_BYTES];
    struct arena arena;
    _Alignas(ARENA_ALIGN) uint8_t first[FIRST_BYTES];
};

static void draft_fini(struct draft *draft)
{
    buf_fini(&draft->attributes);
    arena_fini(&draft->arena);
}

static bool is_of_many(const struct tier_access *access)
{
    return !access->name.len &&
           (strcmp(access->verb, "list") == 0 || strcmp(access->verb, "watch") == 0);
}

static enum status draft_init(struct draft *draft, const struct tier_user *user,
                              const struct tier_access *access)
{
    draft->access = *access;
    draft->attributes = (struct buf){0};
    arena_init(&draft->arena, draft->first, sizeof(draft->first), TIER_ARENA_BYTES_MAX);
    if (is_of_many(access))
        draft->access.name = tier_selected_name(&draft->arena, access->field_selector);
    TRY(tier_review_write_access(&draft->arena, &draft->access, &draft->attributes));
    return tier_digest(user->spec, buf_slice(&draft->attributes), draft->id);
}

static enum status on_write(struct tier_ask *ask, struct buf *to)
{
    struct tier_right *right = CONTAINER_OF(ask, struct tier_right, ask);
    right->sent_changes = tier_rights_changes(right->rights, right->wish->access.namespace);
    right->sent_rounds = right->rounds;
    return tier_review_write(right->user, right->wish->attributes, to);
}

static void on_answered(struct tier_ask *ask, const struct tier_ask_answer *answer);

/* Forgets the oldest answer that nothing needs. */
static bool make_room(struct tier_rights *rights)
{
    if (rights->rights.count < TIER_ANSWERS_MAX)
        return true;
    if (list_empty(&rights->kept_rights))
        return false;
    forget_right(LIST_ENTRY(rights->kept_rights.next, struct tier_right, in_kept));
    return true;
}

static enum status add(struct tier_rights *rights, const uint8_t id[TIER_ID_BYTES],
                       struct tier_right **ret_right)
{
    void *replaced;
    if (!make_room(rights))
        return ST_LIMIT;
    struct tier_right *right = calloc(1, sizeof(*right));
    if (!right)
        return ST_NOMEM;
    right->rights = rights;
    memcpy(right->id, id, TIER_ID_BYTES);
    right->ask.path = TIER_ACCESS_REVIEWS;
    right->ask.write = on_write;
    right->ask.answered = on_answered;
    list_init(&right->waiters);
    list_init(&right->in_kept);
    list_init(&right->in_all.in_rounds);
    list_init(&right->in_namespace.in_rounds);
    right->in_all.right = right->in_namespace.right = right;
    list_init(&right->news.in_rights);
    list_init(&right->news.waiters);
    tier_duty_init(&right->duty, false);
    if (hash_map_put(&rights->rights, right, &replaced) != ST_OK) {
        free(right);
        return ST_NOMEM;
    }
    *ret_right = right;
    return ST_OK;
}

static enum status find_or_add(struct tier_rights *rights, const struct draft *draft,
                               struct tier_user *user, struct tier_right **ret_right)
{
    struct tier_right *right =
        hash_map_get(&rights->rights, slice_of(draft->id, sizeof(draft->id)));
    if (!right)
        TRY(add(rights, draft->id, &right));
    if (!right->wish) {
        right->wish = wish_new(&draft->access, buf_slice(&draft->attributes));
        if (!right->wish) {
            tier_right_release(right);
            return ST_NOMEM;
        }
        right->user = tier_user_ref(user);
    }
    list_remove(&right->in_kept);
    *ret_right = right;
    return ST_OK;
}

enum status tier_right_of(struct tier_rights *rights, struct tier_user *user,
                          const struct tier_access *access, struct tier_right **ret_right)
{
    AUTO(draft_fini) struct draft draft;
    TRY(draft_init(&draft, user, access));
    return find_or_add(rights, &draft, user, ret_right);
}

/* -- Asking -- */

/* "u" and the name of the user. */
static enum status enqueue(struct tier_right *right, enum tier_urgency urgency)
{
    static const uint8_t kind = TIER_KEY_OF_USER;
    AUTO(buf_fini) struct buf key = {0};
    TRY(buf_append(&key, slice_of(&kind, 1)));
    TRY(buf_append(&key, right->user->name));
    return tier_line_add(&right->rights->line, &right->ask, buf_slice(&key), urgency,
                         sizeof(*right) + right->wish->bytes);
}

static enum status ask_now(struct tier_right *right)
{
    if (right->ask.state != TIER_ASK_IDLE)
        return tier_line_urge(&right->ask);
    return enqueue(right, TIER_URGENT);
}

void tier_right_ask_later(struct tier_right *right)
{
    /* Without memory it is tried again soon. */
    if (right->ask.state == TIER_ASK_IDLE)
        (void)!enqueue(right, TIER_LATER);
}

/* -- Answers -- */

static void finish(struct tier_right_wait *wait, enum tier_verdict verdict,
                   const struct kube_status *status)
{
    wait->answer = NULL;
    wait->done(wait, verdict, status);
}

static void refuse(struct tier_right_wait *wait, enum status why)
{
    struct kube_status status;
    tier_not_asked(&status, why);
    finish(wait, TIER_UNKNOWN, &status);
}

static bool is_usable(const struct tier_right *right, const struct tier_right_wait *wait)
{
    return right->answered && right->asked_changes >= wait->since_changes &&
           tier_is_fresh(right->rights, right->asked_ns, wait->since_ns);
}

/* By what is known. */
static void finish_decided(const struct tier_right *right, struct tier_right_wait *wait,
                           struct draft *draft, const struct tier_user *user)
{
    struct kube_status status = {0};
    bool allowed = right->allowed;
    if (!allowed)
        tier_review_forbid(&draft->arena, &status, user, &draft->access, buf_slice(&right->reason));
    finish(wait, allowed ? TIER_ALLOWED : TIER_DENIED, &status);
}

/* Without memory for the reason there is none. */
static void keep(struct tier_right *right, bool allowed, struct slice reason)
{
    drop_reason(right);
    if (!allowed && buf_append(&right->reason, reason) != ST_OK)
        buf_fini(&right->reason);
    right->answered = true;
    right->allowed = allowed;
    right->asked_ns = right->ask.sent_ns;
    right->asked_changes = right->sent_changes;
    tier_keep(right->rights, right->reason.capacity, 0);
}

/* What an answer means, and keeps it. Unknown: *status says why. */
static enum tier_verdict take_answer(struct tier_right *right, const struct tier_ask_answer *answer,
                                     struct kube_status *status)
{
    struct arena arena;
    struct slice reason = SLICE_EMPTY;
    char garbage[TIER_REASON_BYTES_MAX + 1] = "";
    enum tier_answer says = TIER_ANSWER_NONE;
    if (answer->code >= 200 && answer->code <= 206) {
        arena_init(&arena, NULL, 0, TIER_ARENA_BYTES_MAX);
        says = tier_review_read_access(&arena, answer->body, &reason);
        if (says == TIER_ANSWER_NONE)
            slice_copy(garbage, slice_sub(reason, 0, size_min(reason.len, sizeof(garbage) - 1)));
        else
            keep(right, says == TIER_ANSWER_YES, reason);
        arena_fini(&arena);
    }
    if (says == TIER_ANSWER_NONE) {
        tier_unanswered(right->rights, TIER_OF_RIGHTS, answer, garbage, status);
        return TIER_UNKNOWN;
    }
    return says == TIER_ANSWER_YES ? TIER_ALLOWED : TIER_DENIED;
}

/* Those for which the answer is too old ask again. */
static void take_waiters(struct tier_right *right, bool all)
{
    struct tier_right_wait *wait, *following;
    LIST_FOREACH_SAFE (wait, following, &right->waiters, in_answer) {
        if (!all && !is_usable(right, wait))
            continue;
        list_remove(&wait->in_answer);
        list_push_back(&right->news.waiters, &wait->in_answer);
    }
}

/* The right is busy. */
static void tell_some(struct tier_right *right, struct kube_status *status)
{
    _Alignas(ARENA_ALIGN) uint8_t first[1024];
    struct tier_news *news = &right->news;
    enum tier_verdict verdict = news->verdict;
    struct arena arena;
    arena_init(&arena, first, sizeof(first), TIER_ARENA_BYTES_MAX);
    if (verdict == TIER_DENIED)
        tier_review_forbid(&arena, status, right->user, &right->wish->access,
                           buf_slice(&right->reason));
    for (int n = 0; n < TIER_TOLD_PER_TURN && !list_empty(&news->waiters); n++) {
        struct list *link = list_pop_front(&news->waiters);
        finish(LIST_ENTRY(link, struct tier_right_wait, in_answer), verdict, status);
    }
    arena_fini(&arena);
    if (list_empty(&news->waiters))
        list_remove(&news->in_rights);
    else
        tier_tell_later(right->rights, news);
}

void tier_right_tell(struct tier_right *right)
{
    struct kube_status status = {0};
    if (right->news.verdict == TIER_UNKNOWN)
        tier_not_answered(&status, TIER_OF_RIGHTS);
    right->busy = true;
    tell_some(right, &status);
    right->busy = false;
    tier_right_release(right);
}

/* The waiters that are left ask again, or are refused if they cannot. */
static void ask_again(struct tier_right *right)
{
    enum status why = list_empty(&right->waiters) ? ST_OK : ask_now(right);
    struct list *link;
    while (why != ST_OK && (link = list_pop_front(&right->waiters)))
        refuse(LIST_ENTRY(link, struct tier_right_wait, in_answer), why);
}

static void on_answered(struct tier_ask *ask, const struct tier_ask_answer *answer)
{
    struct tier_right *right = CONTAINER_OF(ask, struct tier_right, ask);
    struct kube_status status = {0};
    right->busy = true;
    enum tier_verdict verdict = take_answer(right, answer, &status);
    tier_count_verdict(right->rights, TIER_OF_RIGHTS, verdict);
    right->news.verdict = verdict;
    take_waiters(right, verdict == TIER_UNKNOWN);
    ask_again(right);
    tier_right_judge(right, verdict);
    tell_some(right, &status);
    right->busy = false;
    tier_right_release(right);
}

/* -- For requests -- */

static void wait_for(struct tier_right *right, struct tier_right_wait *wait)
{
    enum status status = ask_now(right);
    if (status != ST_OK) {
        tier_right_release(right);
        refuse(wait, status);
        return;
    }
    wait->answer = right;
    list_push_back(&right->waiters, &wait->in_answer);
}

void tier_may(struct tier_rights *rights, struct tier_right_wait *wait, struct tier_user *user,
              const struct tier_access *access)
{
    AUTO(draft_fini) struct draft draft;
    wait->answer = NULL;
    list_init(&wait->in_answer);
    wait->since_ns = loop_now_ns(rights->loop);
    wait->since_changes = tier_rights_changes(rights, access->namespace);
    enum status status = draft_init(&draft, user, access);
    if (status != ST_OK) {
        refuse(wait, status);
        return;
    }
    struct tier_right *right = hash_map_get(&rights->rights, slice_of(draft.id, sizeof(draft.id)));
    if (right && is_usable(right, wait)) {
        tier_count_hit(rights, TIER_OF_RIGHTS);
        finish_decided(right, wait, &draft, user);
        return;
    }
    status = find_or_add(rights, &draft, user, &right);
    if (status == ST_OK)
        wait_for(right, wait);
    else
        refuse(wait, status);
}

void tier_right_wait_cancel(struct tier_right_wait *wait)
{
    struct tier_right *right = TAKE(wait->answer);
    if (!right)
        return;
    list_remove(&wait->in_answer);
    if (list_empty(&right->news.waiters))
        list_remove(&right->news.in_rights);
    /* A question without waiters is not sent; one that was sent is answered for the next. */
    if (list_empty(&right->waiters) && !tier_duty_exists(&right->duty) &&
        right->ask.state == TIER_ASK_QUEUED)
        tier_line_remove(&right->ask);
    tier_right_release(right);
}
