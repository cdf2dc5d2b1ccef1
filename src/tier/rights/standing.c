#include "tier/rights/rights_private.h"

#include "tier/rights/review.h"

enum {
    ASKED_PER_TURN = 500, /* rights that a round includes in one turn */
    /* Another kube-apiserver than the one that reported a change may have been asked, and know it a
     * little later: there is a second round. */
    ROUNDS = 2,
};

/* Rounds do not follow each other faster than this, so that roles that change all the time cause a
 * limited number of reviews. */
#define ROUND_NS_MIN (1 * NS_PER_S)
#define ROUND_NS_PER_RIGHT (5 * NS_PER_MS)
#define SECOND_ROUND_NS (5 * NS_PER_S)

static int64_t now_of(const struct tier_rights *rights)
{
    return loop_now_ns(rights->loop);
}

/* -- Duties -- */

static void on_token_again(struct timer *timer);
static void on_right_again(struct timer *timer);

void tier_duty_init(struct tier_duty *duty, bool of_token)
{
    list_init(&duty->standings);
    list_init(&duty->loss.standings);
    list_init(&duty->loss.in_rights);
    duty->loss.of_token = of_token;
    duty->again.fn = of_token ? on_token_again : on_right_again;
}

bool tier_duty_exists(const struct tier_duty *duty)
{
    return !list_empty(&duty->standings) || !list_empty(&duty->loss.standings);
}

static void set_again(struct tier_rights *rights, struct tier_duty *duty, int64_t from_ns,
                      int64_t least_ns, int64_t most_ns)
{
    int64_t wait_ns = random_between(&rights->random, least_ns, most_ns);
    int64_t at_ns = clock_add(from_ns, wait_ns);
    loop_timer_set(rights->loop, &duty->again, at_ns > now_of(rights) ? at_ns : now_of(rights));
}

/* The first time is any, so that watches that begin together are not reviewed together. */
static void begin_duty(struct tier_rights *rights, struct tier_duty *duty)
{
    int64_t again_ns = rights->options.again_ns;
    duty->due_ns = 0;
    set_again(rights, duty, now_of(rights), again_ns / 10, again_ns);
}

/* A review is missing, and repeated until it is answered. */
static void become_due(struct tier_rights *rights, struct tier_duty *duty)
{
    if (!duty->due_ns)
        duty->due_ns = now_of(rights);
    set_again(rights, duty, now_of(rights), TIER_SOON_NS, TIER_SOON_NS * 3 / 2);
}

static void be_confirmed(struct tier_rights *rights, struct tier_duty *duty, int64_t asked_ns)
{
    int64_t again_ns = rights->options.again_ns;
    duty->due_ns = 0;
    set_again(rights, duty, asked_ns, again_ns, again_ns + again_ns / 10);
}

/* At least a few reviews must have failed. */
static bool is_overdue(const struct tier_rights *rights, const struct tier_duty *duty)
{
    int64_t patience_ns = 2 * rights->options.again_ns;
    if (patience_ns < 4 * TIER_SOON_NS)
        patience_ns = 4 * TIER_SOON_NS;
    return duty->due_ns && now_of(rights) >= clock_add(duty->due_ns, patience_ns);
}

/* -- Rights and tokens with duties -- */

static size_t bytes_of(const struct tier_right *right)
{
    return sizeof(*right) + right->wish->bytes + right->user->bytes;
}

static void begin_right(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    list_push_back(&rights->standing, &right->in_standing);
    rights->standing_count++;
    rights->standing_bytes += bytes_of(right);
    right->round = rights->round;
    begin_duty(rights, &right->duty);
    /* What has allowed it may be outdated by now. */
    if (right->answered && right->allowed && right->asked_changes == rights->changes)
        return;
    become_due(rights, &right->duty);
    tier_right_ask_later(right);
}

static void end_right(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    list_remove(&right->in_standing);
    rights->standing_count--;
    rights->standing_bytes -= bytes_of(right);
    right->duty.due_ns = 0;
    loop_timer_cancel(rights->loop, &right->duty.again);
}

static void end_token(struct tier_token *token)
{
    token->duty.due_ns = 0;
    token->doubted = false;
    loop_timer_cancel(token->rights->loop, &token->duty.again);
}

/* -- Losses -- */

static void add_loss(struct tier_rights *rights, struct tier_duty *duty, enum tier_verdict verdict)
{
    duty->loss.verdict = verdict;
    list_remove(&duty->loss.in_rights);
    list_push_back(&rights->losses, &duty->loss.in_rights);
    loop_defer(rights->loop, &rights->lose);
}

static void lose_right(struct tier_right *right, enum tier_verdict verdict)
{
    list_append(&right->duty.loss.standings, &right->duty.standings);
    end_right(right);
    add_loss(right->rights, &right->duty, verdict);
}

static void lose_token(struct tier_token *token, enum tier_verdict verdict)
{
    list_append(&token->duty.loss.standings, &token->duty.standings);
    end_token(token);
    add_loss(token->rights, &token->duty, verdict);
}

static void detach_right(struct tier_standing *standing)
{
    struct tier_right *right = TAKE(standing->right);
    bool had_duty = !list_empty(&right->duty.standings);
    list_remove(&standing->in_right);
    if (had_duty && list_empty(&right->duty.standings))
        end_right(right);
    if (list_empty(&right->duty.loss.standings))
        list_remove(&right->duty.loss.in_rights);
    if (!tier_duty_exists(&right->duty) && list_empty(&right->waiters) &&
        right->ask.state == TIER_ASK_QUEUED)
        tier_line_remove(&right->ask);
    tier_right_release(right);
}

static void detach_token(struct tier_standing *standing)
{
    struct tier_token *token = TAKE(standing->token);
    if (!token)
        return;
    bool had_duty = !list_empty(&token->duty.standings);
    list_remove(&standing->in_token);
    if (had_duty && list_empty(&token->duty.standings))
        end_token(token);
    if (list_empty(&token->duty.loss.standings))
        list_remove(&token->duty.loss.in_rights);
    if (!tier_duty_exists(&token->duty) && list_empty(&token->waiters) &&
        token->ask.state == TIER_ASK_QUEUED)
        tier_line_remove(&token->ask);
    tier_token_release(token);
}

static void detach(struct tier_standing *standing)
{
    struct tier_rights *rights = standing->right->rights;
    detach_right(standing);
    detach_token(standing);
    rights->watches--;
    tier_count_standing(rights);
}

static void explain_unknown(struct kube_status *status)
{
    kube_fail(status, KUBE_SERVICE_UNAVAILABLE,
              "the kube-apiserver has not confirmed for too long that this watch is permitted");
    status->retry_after_s = 1;
}

static void tell_right(struct tier_right *right)
{
    _Alignas(ARENA_ALIGN) uint8_t first[1024];
    struct list *left = &right->duty.loss.standings;
    struct kube_status status = {0};
    enum tier_verdict verdict = right->duty.loss.verdict;
    struct arena arena;
    arena_init(&arena, first, sizeof(first), TIER_ARENA_BYTES_MAX);
    if (verdict == TIER_DENIED)
        tier_review_forbid(&arena, &status, right->user, &right->wish->access,
                           buf_slice(&right->reason));
    else
        explain_unknown(&status);
    right->busy = true;
    for (size_t n = 0; n < TIER_TOLD_PER_TURN && !list_empty(left); n++) {
        struct tier_standing *standing = LIST_ENTRY(left->next, struct tier_standing, in_right);
        detach(standing);
        standing->lost(standing, verdict, &status);
    }
    right->busy = false;
    arena_fini(&arena);
    tier_right_release(right);
}

static void tell_token(struct tier_token *token)
{
    struct list *left = &token->duty.loss.standings;
    enum tier_verdict verdict = token->duty.loss.verdict;
    struct kube_status status;
    if (verdict == TIER_DENIED)
        (void)kube_fail(&status, KUBE_UNAUTHORIZED, "Unauthorized");
    else
        explain_unknown(&status);
    token->busy = true;
    for (size_t n = 0; n < TIER_TOLD_PER_TURN && !list_empty(left); n++) {
        struct tier_standing *standing = LIST_ENTRY(left->next, struct tier_standing, in_token);
        detach(standing);
        standing->lost(standing, verdict, &status);
    }
    token->busy = false;
    tier_token_release(token);
}

/* Losses take turns. */
static void on_lose(struct deferred *deferred)
{
    struct tier_rights *rights = CONTAINER_OF(deferred, struct tier_rights, lose);
    if (list_empty(&rights->losses))
        return;
    struct tier_loss *loss = LIST_ENTRY(rights->losses.next, struct tier_loss, in_rights);
    list_remove(&loss->in_rights);
    list_push_back(&rights->losses, &loss->in_rights);
    if (loss->of_token)
        tell_token(CONTAINER_OF(loss, struct tier_token, duty.loss));
    else
        tell_right(CONTAINER_OF(loss, struct tier_right, duty.loss));
    if (!list_empty(&rights->losses))
        loop_defer(rights->loop, &rights->lose);
}

/* -- Answers -- */

void tier_right_judge(struct tier_right *right, enum tier_verdict verdict)
{
    if (list_empty(&right->duty.standings) || verdict == TIER_UNKNOWN)
        return; /* its timer repeats the question if it is due */
    if (verdict == TIER_DENIED)
        lose_right(right, verdict);
    else if (right->sent_round < right->round)
        tier_right_ask_later(right); /* it was sent before a role has changed */
    else
        be_confirmed(right->rights, &right->duty, right->asked_ns);
}

/* Those whose user was described in another way do not belong to the token any more. */
static void lose_others(struct tier_token *token)
{
    struct tier_standing *standing, *following;
    struct list *lost = &token->duty.loss.standings;
    bool any = false;
    LIST_FOREACH_SAFE (standing, following, &token->duty.standings, in_token) {
        if (slice_equal(standing->right->user->spec, token->user->spec))
            continue;
        list_remove(&standing->in_token);
        list_push_back(lost, &standing->in_token);
        any = true;
    }
    if (any && list_empty(&token->duty.standings))
        end_token(token);
    if (any)
        add_loss(token->rights, &token->duty, TIER_DENIED);
}

void tier_token_judge(struct tier_token *token, enum tier_verdict verdict)
{
    if (list_empty(&token->duty.standings) || verdict == TIER_UNKNOWN)
        return;
    if (verdict == TIER_ALLOWED) {
        token->doubted = false;
        be_confirmed(token->rights, &token->duty, token->asked_ns);
        if (token->user) /* the answer may be forgotten already */
            lose_others(token);
    } else if (token->doubted) {
        lose_token(token, verdict);
    } else {
        /* Authenticators that fail say the same as those that refuse: there is another review
         * before watches end. */
        token->doubted = true;
        become_due(token->rights, &token->duty);
    }
}

/* -- Questions -- */

static void on_token_again(struct timer *timer)
{
    struct tier_token *token = CONTAINER_OF(timer, struct tier_token, duty.again);
    if (is_overdue(token->rights, &token->duty)) {
        lose_token(token, TIER_UNKNOWN);
        return;
    }
    become_due(token->rights, &token->duty);
    tier_token_ask_later(token);
}

static void on_right_again(struct timer *timer)
{
    struct tier_right *right = CONTAINER_OF(timer, struct tier_right, duty.again);
    if (is_overdue(right->rights, &right->duty)) {
        lose_right(right, TIER_UNKNOWN);
        return;
    }
    become_due(right->rights, &right->duty);
    tier_right_ask_later(right);
}

/* -- Rounds -- */

static void on_walk(struct deferred *deferred)
{
    struct tier_rights *rights = CONTAINER_OF(deferred, struct tier_rights, walk);
    for (size_t n = 0; !list_empty(&rights->standing); n++) {
        struct tier_right *right =
            LIST_ENTRY(rights->standing.next, struct tier_right, in_standing);
        if (right->round == rights->round)
            return;
        if (n == ASKED_PER_TURN) {
            loop_defer(rights->loop, &rights->walk);
            return;
        }
        list_remove(&right->in_standing);
        list_push_back(&rights->standing, &right->in_standing);
        right->round = rights->round;
        become_due(rights, &right->duty);
        tier_right_ask_later(right);
    }
}

static int64_t round_gap(const struct tier_rights *rights)
{
    int64_t gap_ns = (int64_t)rights->standing_count * ROUND_NS_PER_RIGHT;
    return gap_ns > ROUND_NS_MIN ? gap_ns : ROUND_NS_MIN;
}

static void set_next_round(struct tier_rights *rights, int64_t gap_ns)
{
    int64_t at_ns = rights->round ? clock_add(rights->round_ns, gap_ns) : 0;
    loop_timer_set(rights->loop, &rights->next_round,
                   at_ns > now_of(rights) ? at_ns : now_of(rights));
}

static void on_next_round(struct timer *timer)
{
    struct tier_rights *rights = CONTAINER_OF(timer, struct tier_rights, next_round);
    rights->rounds_wanted--;
    rights->round++;
    rights->round_ns = now_of(rights);
    loop_defer(rights->loop, &rights->walk);
    int64_t gap_ns = round_gap(rights);
    if (rights->rounds_wanted)
        set_next_round(rights, gap_ns > SECOND_ROUND_NS ? gap_ns : SECOND_ROUND_NS);
}

void tier_rights_changed(struct tier_rights *rights)
{
    rights->changes++;
    if (list_empty(&rights->standing))
        return;
    rights->rounds_wanted = ROUNDS;
    set_next_round(rights, round_gap(rights));
}

/* -- For watches -- */

enum status tier_standing_add(struct tier_rights *rights, struct tier_standing *standing,
                              struct tier_user *user, const struct tier_access *access)
{
    struct tier_token *token = NULL;
    struct tier_right *right;
    TRY(tier_right_of(rights, user, access, &right));
    enum status status = ST_OK;
    if (list_empty(&right->duty.standings) &&
        rights->standing_bytes + bytes_of(right) > TIER_STANDING_BYTES_MAX)
        status = ST_LIMIT;
    else if (user->token.len && !(token = tier_token_of(rights, user)))
        status = ST_NOMEM;
    if (status != ST_OK) {
        tier_right_release(right);
        return status;
    }
    standing->right = right;
    standing->token = token;
    list_init(&standing->in_token);
    if (list_empty(&right->duty.standings))
        begin_right(right);
    list_push_back(&right->duty.standings, &standing->in_right);
    if (token && list_empty(&token->duty.standings))
        begin_duty(rights, &token->duty);
    if (token)
        list_push_back(&token->duty.standings, &standing->in_token);
    rights->watches++;
    tier_count_standing(rights);
    return ST_OK;
}

void tier_standing_remove(struct tier_standing *standing)
{
    if (standing->right)
        detach(standing);
}

/* -- Life -- */

void tier_standing_init(struct tier_rights *rights)
{
    list_init(&rights->standing);
    list_init(&rights->losses);
    rights->next_round.fn = on_next_round;
    rights->walk.fn = on_walk;
    rights->lose.fn = on_lose;
}

void tier_standing_fini(struct tier_rights *rights)
{
    assert(list_empty(&rights->standing) && list_empty(&rights->losses) && !rights->watches);
    loop_timer_cancel(rights->loop, &rights->next_round);
    loop_defer_cancel(&rights->walk);
    loop_defer_cancel(&rights->lose);
}

void tier_standing_check(const struct tier_rights *rights)
{
    const struct tier_right *right;
    size_t count = 0, bytes = 0, watches = 0;
    uint64_t round = 0;
    LIST_FOREACH (right, &rights->standing, in_standing) {
        assert(!list_empty(&right->duty.standings) && right->duty.again.set);
        assert(right->wish && right->user);
        assert(right->round >= round && right->round <= rights->round);
        round = right->round;
        count++;
        bytes += bytes_of(right);
        watches += list_length(&right->duty.standings);
    }
    assert(count == rights->standing_count && bytes == rights->standing_bytes);
    assert(watches <= rights->watches);
}
