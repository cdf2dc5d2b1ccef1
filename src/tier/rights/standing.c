#include "tier/rights/rights_private.h"

#include "tier/rights/review.h"

/* A kube-apiserver that has just started denies what it has not loaded the roles for yet. A right
 * is lost if it is denied again, one to two times this later, by one that is ready; and after the
 * longest doubt by any. */
#define DOUBT_NS (1 * NS_PER_S)
#define DOUBT_NS_MAX (30 * NS_PER_S)

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

static bool is_overdue(const struct tier_rights *rights, const struct tier_duty *duty)
{
    return duty->due_ns && now_of(rights) >= clock_add(duty->due_ns, TIER_PATIENCE_NS);
}

/* -- Rights and tokens with duties -- */

static size_t bytes_of(const struct tier_right *right)
{
    return sizeof(*right) + right->wish->bytes + right->user->bytes +
           sizeof(struct tier_namespace) + right->wish->access.namespace.len;
}

static void begin_right(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    rights->standing_bytes += bytes_of(right);
    begin_duty(rights, &right->duty);
    /* What has allowed it may be outdated by now. */
    if (right->answered && right->allowed &&
        right->asked_changes == tier_rights_changes(rights, right->wish->access.namespace))
        return;
    become_due(rights, &right->duty);
    tier_right_ask_later(right);
}

static void end_right(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    tier_rounds_leave(right);
    rights->standing_bytes -= bytes_of(right);
    right->duty.due_ns = 0;
    right->doubted_ns = 0;
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
    if (!rights->watches && rights->options.stands)
        rights->options.stands(rights->options.ctx, false);
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

/* Whether a denial is not the first one, and comes from a server that knows its roles. */
static bool is_confirmed(const struct tier_right *right)
{
    int64_t doubted_ns = right->doubted_ns, asked_ns = right->asked_ns;
    if (!doubted_ns || asked_ns < clock_add(doubted_ns, DOUBT_NS))
        return false;
    return asked_ns >= clock_add(doubted_ns, DOUBT_NS_MAX) ||
           tier_readiness_covers(&right->rights->readiness, right->ask.connection, asked_ns);
}

static void right_denied(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    struct tier_duty *duty = &right->duty;
    if (is_confirmed(right)) {
        lose_right(right, TIER_DENIED);
        return;
    }
    tier_readiness_ask(&rights->readiness);
    if (!right->doubted_ns)
        right->doubted_ns = now_of(rights);
    if (!duty->due_ns)
        duty->due_ns = now_of(rights);
    bool is_early = right->asked_ns < clock_add(right->doubted_ns, DOUBT_NS);
    set_again(rights, duty, is_early ? right->doubted_ns : now_of(rights), DOUBT_NS, 2 * DOUBT_NS);
}

void tier_right_judge(struct tier_right *right, enum tier_verdict verdict)
{
    if (list_empty(&right->duty.standings) || verdict == TIER_UNKNOWN)
        return; /* its timer repeats the question if it is due */
    if (verdict == TIER_DENIED) {
        right_denied(right);
        return;
    }
    right->doubted_ns = 0;
    if (right->sent_rounds < right->rounds)
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

void tier_right_include(struct tier_right *right)
{
    right->rounds++;
    become_due(right->rights, &right->duty);
    tier_right_ask_later(right);
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
    else if (list_empty(&right->duty.standings))
        status = tier_rounds_join(right);
    if (status != ST_OK) {
        if (token)
            tier_token_release(token);
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
    if (rights->watches == 1 && rights->options.stands)
        rights->options.stands(rights->options.ctx, true);
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
    tier_rounds_init(rights);
    list_init(&rights->losses);
    rights->lose.fn = on_lose;
}

void tier_standing_fini(struct tier_rights *rights)
{
    assert(list_empty(&rights->losses) && !rights->watches);
    tier_rounds_fini(rights);
    loop_defer_cancel(&rights->lose);
}

void tier_standing_check(const struct tier_rights *rights)
{
    const struct tier_member *member;
    size_t bytes = 0, watches = 0;
    tier_rounds_check(rights);
    LIST_FOREACH (member, &rights->standing.members, in_rounds) {
        const struct tier_right *right = member->right;
        assert(!list_empty(&right->duty.standings) && right->duty.again.set);
        assert(right->wish && right->user);
        bytes += bytes_of(right);
        watches += list_length(&right->duty.standings);
    }
    assert(bytes == rights->standing_bytes);
    assert(watches <= rights->watches);
}
