#include "mirror/shared_calls/grants.h"

#include "base/container/hash_map.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "mirror/answer/answer.h"
#include "mirror/link/state.h"
#include "mirror/link/upstream.h"

#include <stdlib.h>

static const int64_t answer_within_ns = 5 * NS_PER_S;
static const int64_t confirmed_ns = GRANTS_CONFIRMED_S * NS_PER_S;
static const int64_t linearizable_within_ns = 1 * NS_PER_S; /* then it is sent again */

/* What the cluster has answered last. */
enum grant_answer { GRANT_UNKNOWN, GRANT_PERMITTED, GRANT_REFUSED };

/*
 * What is known of one caller and one range.
 *
 *     idle ──► queued ──► asked ──► idle ──► evicted
 */
enum grant_state { GRANT_IDLE, GRANT_QUEUED, GRANT_ASKED };

/* Questions with waiters are sent before the others, except that every fourth is one of those. */
enum grant_queue { QUEUE_URGENT, QUEUE_LATER, QUEUES };
enum { LATER_EVERY = 4 };

/* A token, and what its questions take. Freed with the last of its entries. */
struct caller {
    struct slice token;
    size_t count, bytes; /* number and size of its entries */
    struct list idle;    /* the least recently used first */
    struct list queued[QUEUES];
    struct list in_turns[QUEUES]; /* links grants.turns if it may have queued some */
};

struct grant {
    struct grants *grants; /* which owns it */
    struct caller *caller;
    enum grant_state state;
    enum grant_answer answer;
    enum status status;                 /* status of the answer */
    int64_t asked_ns;                   /* when the question was sent that was answered so */
    int64_t sent_ns;                    /* when the question under way was sent */
    uint64_t asked_changes;             /* mirror_state.rights_changes at asked_ns */
    uint64_t sent_changes;              /* the same at sent_ns */
    bool watched;                       /* a running watch has caused the question under way */
    bool linearizable;                  /* the question under way is */
    struct upstream_call *call;         /* GRANT_ASKED */
    struct list waiters;                /* grants_waiter: wait for the question */
    struct list in_state;               /* links caller.idle or .queued, or grants.asked */
    struct list in_idle;                /* links grants.idle */
    struct slice id;                    /* what the map finds it by: see id_make */
    struct slice token, key, range_end; /* parts of the id */
};

struct grants {
    struct grants_options options;
    struct hash_map map;       /* struct grant, owned, except open */
    struct grant *open;        /* owned: callers without a token and all keys; never evicted */
    struct hash_map callers;   /* struct caller, owned */
    struct caller open_caller; /* caller of `open` alone, which goes first and has no share */
    struct list idle;          /* all callers, the least recently used first */
    struct list turns[QUEUES]; /* callers, the next first */
    struct list asked;
    size_t asked_count, bytes;
    unsigned sent; /* questions, for LATER_EVERY */
    struct timer tick;
    struct deferred notify; /* calls options.changed */
    struct buf id;          /* for lookups */
    bool sending;           /* questions are being sent */
    bool is_away;           /* the last question about `open` had no answer in time */
    int64_t covered;        /* the mirror's revision when the answer about `open` last counted */
};

/* The questions that can decide about a waiter, in this order. A refusal of one leads to the next.
 */
enum { LEVEL_OPEN, LEVEL_ALL_KEYS, LEVEL_RANGE };

#define ALL_KEYS SLICE_LITERAL("\0")

/* -- Entries -- */

static struct slice grant_id(const void *value)
{
    return ((const struct grant *)value)->id;
}

/* The lengths first, so that no two callers and ranges have the same id. */
static void id_make(struct grants *grants, struct slice token, struct slice key,
                    struct slice range_end)
{
    uint64_t lengths[2] = {token.len, key.len};
    struct slice parts[] = {slice_of(lengths, sizeof(lengths)), token, key, range_end};
    grants->id.len = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (buf_append(&grants->id, parts[i]) != ST_OK)
            xalloc_check(NULL, parts[i].len);
}

static struct grant *grant_new(struct slice token, struct slice key, struct slice range_end,
                               struct slice id)
{
    struct grant *grant = xmalloc(sizeof(*grant) + id.len);
    uint8_t *bytes = (uint8_t *)(grant + 1);
    slice_copy(bytes, id);
    *grant = (struct grant){.id = slice_of(bytes, id.len)};
    list_init(&grant->waiters);
    list_init(&grant->in_state);
    list_init(&grant->in_idle);
    grant->token = slice_sub(grant->id, 2 * sizeof(uint64_t), token.len);
    grant->key = slice_sub(grant->id, 2 * sizeof(uint64_t) + token.len, key.len);
    grant->range_end = slice_sub(grant->id, id.len - range_end.len, range_end.len);
    return grant;
}

static size_t grant_bytes(const struct grant *grant)
{
    return sizeof(*grant) + grant->id.len;
}

static struct slice caller_token(const void *value)
{
    return ((const struct caller *)value)->token;
}

static void caller_init(struct caller *caller)
{
    list_init(&caller->idle);
    for (int i = 0; i < QUEUES; i++) {
        list_init(&caller->queued[i]);
        list_init(&caller->in_turns[i]);
    }
}

static struct caller *caller_of(struct grants *grants, struct slice token)
{
    void *replaced;
    struct caller *caller = hash_map_get(&grants->callers, token);
    if (caller)
        return caller;
    caller = xmalloc(sizeof(*caller) + token.len);
    slice_copy((uint8_t *)(caller + 1), token);
    *caller = (struct caller){.token = slice_of(caller + 1, token.len)};
    caller_init(caller);
    if (hash_map_put(&grants->callers, caller, &replaced) != ST_OK)
        xalloc_check(NULL, sizeof(*caller));
    return caller;
}

static void caller_take(struct caller *caller, size_t bytes)
{
    caller->count++;
    caller->bytes += bytes;
}

static void caller_release(struct grants *grants, struct caller *caller, size_t bytes)
{
    caller->bytes -= bytes;
    if (--caller->count)
        return;
    for (int i = 0; i < QUEUES; i++)
        list_remove(&caller->in_turns[i]);
    hash_map_remove(&grants->callers, caller->token);
    free(caller);
}

static void become_idle(struct grants *grants, struct grant *grant)
{
    grant->state = GRANT_IDLE;
    list_remove(&grant->in_state);
    list_remove(&grant->in_idle);
    if (grant == grants->open)
        return;
    list_push_back(&grant->caller->idle, &grant->in_state);
    list_push_back(&grants->idle, &grant->in_idle);
}

static void grant_free(struct grants *grants, struct grant *grant)
{
    assert(list_empty(&grant->waiters));
    if (grant->call)
        upstream_cancel(grant->call);
    list_remove(&grant->in_state);
    list_remove(&grant->in_idle);
    if (grant != grants->open) {
        hash_map_remove(&grants->map, grant->id);
        grants->bytes -= grant_bytes(grant);
        caller_release(grants, grant->caller, grant_bytes(grant));
    }
    free(grant);
}

/* Makes room by removing the least recently used entries: the caller's own if it has used up its
 * share, to which the new one is counted. False: all are in use. */
static bool make_room(struct grants *grants, struct caller *caller, size_t bytes)
{
    while (caller->count > GRANTS_SHARE_MAX || caller->bytes > GRANTS_SHARE_BYTES_MAX) {
        if (list_empty(&caller->idle))
            return false;
        grant_free(grants, LIST_ENTRY(caller->idle.next, struct grant, in_state));
    }
    while (grants->map.count >= GRANTS_MAX || grants->bytes + bytes > GRANTS_BYTES_MAX) {
        if (list_empty(&grants->idle))
            return false;
        grant_free(grants, LIST_ENTRY(grants->idle.next, struct grant, in_idle));
    }
    return true;
}

static bool is_long(struct slice key, struct slice range_end)
{
    return key.len + range_end.len > GRANTS_RANGE_BYTES_MAX;
}

static struct grant *find(struct grants *grants, struct slice token, struct slice key,
                          struct slice range_end)
{
    id_make(grants, token, key, range_end);
    struct grant *grant = hash_map_get(&grants->map, buf_slice(&grants->id));
    if (grant && grant->state == GRANT_IDLE)
        become_idle(grants, grant); /* as the last */
    return grant;
}

/* NULL: there is no room. */
static struct grant *find_or_add(struct grants *grants, struct slice token, struct slice key,
                                 struct slice range_end)
{
    void *replaced;
    struct grant *grant = find(grants, token, key, range_end);
    if (grant)
        return grant;
    struct caller *caller = caller_of(grants, token);
    size_t size = sizeof(*grant) + grants->id.len;
    caller_take(caller, size);
    if (!make_room(grants, caller, size)) {
        caller_release(grants, caller, size);
        return NULL;
    }
    grant = grant_new(token, key, range_end, buf_slice(&grants->id));
    if (hash_map_put(&grants->map, grant, &replaced) != ST_OK)
        xalloc_check(NULL, sizeof(*grant));
    grant->grants = grants;
    grant->caller = caller;
    grants->bytes += size;
    become_idle(grants, grant);
    return grant;
}

/* -- Questions -- */

static void send_questions(struct grants *grants);
static void decide(struct grants *grants, struct grants_waiter *waiter);

static int64_t age_ns(const struct grants *grants, const struct grant *grant)
{
    return loop_now_ns(grants->options.loop) - grant->asked_ns;
}

/* Users or roles were changed through this server since the question was sent. */
static bool is_outdated(const struct grants *grants, const struct grant *grant)
{
    return grant->asked_changes != atomic_load(&grants->options.state->rights_changes);
}

static bool is_fresh(const struct grants *grants, const struct grant *grant)
{
    return grant->answer != GRANT_UNKNOWN && age_ns(grants, grant) < grants->options.fresh_ns &&
           !is_outdated(grants, grant);
}

/* The answer is still used, but will be too old soon. */
static bool is_aging(const struct grants *grants, const struct grant *grant)
{
    return grant->answer == GRANT_UNKNOWN || age_ns(grants, grant) >= grants->options.fresh_ns / 2;
}

/* A cluster without authentication that does not answer continues to have none: its mirror is all
 * that is left to readers. But what the mirror has received since the last answer may be from a
 * time with authentication: the follower has a connection of its own. */
static bool is_believed(const struct grants *grants, const struct grant *grant)
{
    return grant == grants->open && grants->is_away && grant->answer == GRANT_PERMITTED &&
           !is_outdated(grants, grant) &&
           atomic_load(&grants->options.state->mirrored) <= grants->covered;
}

/* What the mirror has now may be shown to all. A tick that comes a little late counts. */
static void cover(struct grants *grants)
{
    int64_t late_ns = grants->options.fresh_ns / 4;
    if (grants->open->answer == GRANT_PERMITTED && !is_outdated(grants, grants->open) &&
        age_ns(grants, grants->open) <= grants->options.fresh_ns + late_ns)
        grants->covered = atomic_load(&grants->options.state->mirrored);
}

static void enqueue(struct grants *grants, struct grant *grant, enum grant_queue queue)
{
    struct caller *caller = grant->caller;
    if (grant->state == GRANT_ASKED)
        return;
    grant->state = GRANT_QUEUED;
    list_remove(&grant->in_state);
    list_remove(&grant->in_idle);
    list_push_back(&caller->queued[queue], &grant->in_state);
    if (list_empty(&caller->in_turns[queue]))
        list_insert_before(grant == grants->open ? grants->turns[queue].next
                                                 : &grants->turns[queue],
                           &caller->in_turns[queue]);
    send_questions(grants);
}

/* The callers take turns. NULL: none has queued any. */
static struct grant *next_in(struct grants *grants, enum grant_queue queue)
{
    struct list *link;
    while ((link = list_pop_front(&grants->turns[queue]))) {
        struct caller *caller = LIST_ENTRY(link - queue, struct caller, in_turns[0]);
        struct list *first = list_pop_front(&caller->queued[queue]);
        if (!first)
            continue; /* it was freed, or is in the other queue now */
        if (!list_empty(&caller->queued[queue]))
            list_push_back(&grants->turns[queue], link);
        return LIST_ENTRY(first, struct grant, in_state);
    }
    return NULL;
}

static struct grant *next_queued(struct grants *grants)
{
    enum grant_queue first = ++grants->sent % LATER_EVERY ? QUEUE_URGENT : QUEUE_LATER;
    struct grant *grant = next_in(grants, first);
    return grant ? grant : next_in(grants, first == QUEUE_URGENT ? QUEUE_LATER : QUEUE_URGENT);
}

/* Without a waiter. */
static void refresh(struct grants *grants, struct grant *grant)
{
    if (grant->state == GRANT_IDLE)
        enqueue(grants, grant, grant == grants->open ? QUEUE_URGENT : QUEUE_LATER);
}

static void waiter_finish(struct grants_waiter *waiter, enum status status, enum grpc_code code,
                          struct slice text)
{
    waiter->status = status;
    waiter->code = code;
    waiter->text = text;
    waiter->done(waiter);
}

static void permit(struct grants_waiter *waiter, int64_t asked_ns, uint64_t asked_changes)
{
    waiter->asked_ns = asked_ns;
    waiter->asked_changes = asked_changes;
    waiter_finish(waiter, ST_OK, GRPC_OK, SLICE_EMPTY);
}

static void on_notify(struct deferred *deferred)
{
    struct grants *grants = CONTAINER_OF(deferred, struct grants, notify);
    grants->options.changed(grants->options.ctx);
}

static enum grant_answer answer_of(enum grpc_code code, enum status status)
{
    if (status == ST_FUTURE_REV || code == GRPC_OK)
        return GRANT_PERMITTED;
    bool refused = code == GRPC_PERMISSION_DENIED || code == GRPC_UNAUTHENTICATED ||
                   status == ST_USER_EMPTY || status == ST_AUTH_OLD_REVISION ||
                   status == ST_USER_NOT_FOUND;
    return refused ? GRANT_REFUSED : GRANT_UNKNOWN;
}

/* The waiters of a question that is answered. The entry may be evicted by what they do. */
static void answer_waiters(struct grants *grants, struct list *waiters, const struct grant *grant,
                           enum grant_answer answer, enum grpc_code code, struct slice text)
{
    struct list *link;
    bool permitted =
        answer == GRANT_PERMITTED || (answer == GRANT_UNKNOWN && is_believed(grants, grant));
    int64_t asked_ns = grant->asked_ns;
    uint64_t asked_changes = grant->asked_changes;
    while ((link = list_pop_front(waiters))) {
        struct grants_waiter *waiter = LIST_ENTRY(link, struct grants_waiter, in_question);
        if (permitted) {
            permit(waiter, asked_ns, asked_changes);
        } else if (answer == GRANT_REFUSED && waiter->level < LEVEL_RANGE) {
            waiter->level++;
            decide(grants, waiter);
        } else {
            waiter_finish(waiter, cluster_status_of(code, text), code, text);
        }
    }
}

static void grant_answered(struct grants *grants, struct grant *grant, enum grpc_code code,
                           struct slice text)
{
    enum status status = cluster_status_of(code, text);
    enum grant_answer answer = answer_of(code, status);
    bool lost = answer == GRANT_REFUSED && (grant->answer == GRANT_PERMITTED || grant->watched);
    struct list waiters;
    list_init(&waiters);
    list_append(&waiters, &grant->waiters);
    become_idle(grants, grant);
    grant->watched = false;
    grants->asked_count--;
    if (answer != GRANT_UNKNOWN) {
        grant->answer = answer;
        grant->status = answer == GRANT_PERMITTED ? ST_OK : status;
        grant->asked_ns = grant->sent_ns;
        grant->asked_changes = grant->sent_changes;
    }
    if (grant == grants->open) {
        grants->is_away = code == GRPC_UNAVAILABLE;
        cover(grants);
    }
    if (lost)
        loop_defer(grants->options.loop, &grants->notify);
    if (answer == GRANT_PERMITTED && is_outdated(grants, grant) && !list_empty(&waiters)) {
        /* Perhaps some of them have asked after that change. */
        list_append(&grant->waiters, &waiters);
        enqueue(grants, grant, QUEUE_URGENT);
        return;
    }
    answer_waiters(grants, &waiters, grant, answer, code, text);
    send_questions(grants);
}

/* The range itself is not of interest: the revision does not exist. */
static void on_message(struct upstream_call *call, struct slice message)
{
    (void)call;
    (void)message;
}

static enum status send_question(struct grants *grants, struct grant *grant);

/*
 * Without a quorum a linearizable question has no answer; once the follower has noticed that, it is
 * sent as a serializable one. That authentication is disabled is believed meanwhile.
 */
static bool ask_again(struct grants *grants, struct grant *grant, enum grpc_code code)
{
    bool connected = atomic_load(&grants->options.state->connected);
    bool in_time = loop_now_ns(grants->options.loop) - grant->sent_ns < answer_within_ns;
    bool is_known = grant == grants->open && grant->answer == GRANT_PERMITTED;
    bool helps = code == GRPC_DEADLINE_EXCEEDED || (code == GRPC_UNAVAILABLE && !connected);
    return grant->linearizable && helps && in_time && !is_known &&
           send_question(grants, grant) == ST_OK;
}

static void on_end(struct upstream_call *call, enum grpc_code code, struct slice text)
{
    struct grant *grant = upstream_call_user(call);
    grant->call = NULL;
    if (ask_again(grant->grants, grant, code))
        return;
    if (code == GRPC_DEADLINE_EXCEEDED) {
        /* Ours, of which the client knows nothing. */
        code = status_code(ST_TIMEOUT);
        text = slice_from_text(status_text(ST_TIMEOUT));
    }
    grant_answered(grant->grants, grant, code, text);
}

static enum status send_message(struct grant *grant)
{
    struct pb_range_request request = {
        .key = grant->key,
        .range_end = grant->range_end,
        .revision = INT64_MAX,
        .serializable = !grant->linearizable,
    };
    struct buf message = {0};
    enum status status = pb_append(&pb_range_request_table, &request, &message);
    if (status == ST_OK)
        status = upstream_send(grant->call, buf_slice(&message));
    buf_fini(&message);
    if (status == ST_OK)
        upstream_half_close(grant->call);
    return status;
}

/*
 * A member that is cut off from the others does not know which rights were taken back, and while
 * the mirror follows the others it would show new data. So the question is linearizable as long as
 * the mirror follows.
 */
static enum status send_question(struct grants *grants, struct grant *grant)
{
    static const struct upstream_ops ops = {.on_message = on_message, .on_end = on_end};
    grant->linearizable = atomic_load(&grants->options.state->connected);
    int64_t within_ns = grant->linearizable ? linearizable_within_ns : answer_within_ns;
    struct upstream_request request = {
        .path = SLICE_LITERAL(PB_KV_RANGE_PATH),
        .caller = {.token = grant->token},
        .deadline_ns = loop_now_ns(grants->options.loop) + within_ns,
        .reads = true,
        .require_leader = grant->linearizable,
    };
    TRY(upstream_start(grants->options.upstream, &request, &ops, grant, &grant->call));
    enum status status = send_message(grant);
    if (status != ST_OK)
        upstream_cancel(TAKE(grant->call));
    return status;
}

static void ask_cluster(struct grants *grants, struct grant *grant)
{
    grant->state = GRANT_ASKED;
    grant->sent_ns = loop_now_ns(grants->options.loop);
    grant->sent_changes = atomic_load(&grants->options.state->rights_changes);
    grants->asked_count++;
    list_push_back(&grants->asked, &grant->in_state);
    atomic_fetch_add_explicit(&grants->options.state->grants_asked, 1, memory_order_relaxed);
    enum status status = send_question(grants, grant);
    if (status != ST_OK)
        grant_answered(grants, grant, status_code(status), slice_from_text(status_text(status)));
}

/* Answers that come from within, for lack of memory, do not begin a second loop. */
static void send_questions(struct grants *grants)
{
    struct grant *grant;
    if (grants->sending)
        return;
    grants->sending = true;
    while (grants->asked_count < GRANTS_QUESTIONS_MAX && (grant = next_queued(grants)))
        ask_cluster(grants, grant);
    grants->sending = false;
}

/* -- Waiters -- */

/* The entry of a waiter's question of this level; NULL: no room, or the cluster decides itself. */
static struct grant *grant_of(struct grants *grants, const struct grants_waiter *waiter)
{
    if (waiter->level == LEVEL_OPEN)
        return grants->open;
    if (waiter->level == LEVEL_ALL_KEYS)
        return find_or_add(grants, waiter->token, ALL_KEYS, ALL_KEYS);
    if (is_long(waiter->key, waiter->range_end))
        return NULL;
    return find_or_add(grants, waiter->token, waiter->key, waiter->range_end);
}

/*
 * A refusal is never taken from an earlier answer, so that a permission holds as soon as it was
 * granted. Only whether the caller may read all keys, which most may not, is not asked each time.
 */
static void decide(struct grants *grants, struct grants_waiter *waiter)
{
    for (;; waiter->level++) {
        /* Without a token, the question of all keys has been asked already. */
        if (waiter->level == LEVEL_ALL_KEYS && waiter->token.len == 0)
            continue;
        struct grant *grant = grant_of(grants, waiter);
        if (!grant) {
            /* There is no room; or the range is too long for a question, and authentication was
             * enabled meanwhile: the cluster itself decides about the next attempt. */
            bool too_long = is_long(waiter->key, waiter->range_end);
            enum status status = too_long ? ST_AGAIN : ST_REQUEST_TOO_MANY_REQUESTS;
            waiter_finish(waiter, status, status_code(status),
                          slice_from_text(status_text(status)));
            return;
        }
        if (is_aging(grants, grant) && grant->answer != GRANT_UNKNOWN)
            refresh(grants, grant);
        if (grant->answer == GRANT_PERMITTED &&
            (is_fresh(grants, grant) || is_believed(grants, grant))) {
            permit(waiter, grant->asked_ns, grant->asked_changes);
            return;
        }
        if (waiter->level == LEVEL_RANGE || grant->answer != GRANT_REFUSED) {
            /* Only the cluster knows: the waiter waits for its answer. */
            list_push_back(&grant->waiters, &waiter->in_question);
            enqueue(grants, grant, QUEUE_URGENT);
            return;
        }
    }
}

void grants_ask(struct grants *grants, struct grants_waiter *waiter)
{
    waiter->level = LEVEL_OPEN;
    list_init(&waiter->in_question);
    decide(grants, waiter);
}

bool grants_is_current(const struct grants *grants, const struct grants_waiter *waiter)
{
    int64_t age = loop_now_ns(grants->options.loop) - waiter->asked_ns;
    return age < grants->options.fresh_ns &&
           waiter->asked_changes == atomic_load(&grants->options.state->rights_changes);
}

void grants_cancel(struct grants_waiter *waiter)
{
    if (waiter->in_question.next)
        list_remove(&waiter->in_question);
}

/* -- Running watches -- */

/* While it does not, watches keep their last answer. */
static bool cluster_answers(const struct grants *grants)
{
    return grants->open->answer != GRANT_UNKNOWN && !grants->is_away &&
           age_ns(grants, grants->open) < confirmed_ns;
}

static bool is_confirmed(const struct grants *grants, const struct grant *grant)
{
    return !cluster_answers(grants) ||
           (grant && grant->answer == GRANT_PERMITTED && age_ns(grants, grant) < confirmed_ns);
}

static bool was_permitted(struct grants *grants, struct grant *grant)
{
    if (!grant || grant->answer != GRANT_PERMITTED)
        return false;
    if (is_aging(grants, grant))
        refresh(grants, grant);
    return is_confirmed(grants, grant);
}

enum status grants_known(struct grants *grants, struct slice token, struct slice key,
                         struct slice range_end)
{
    if (was_permitted(grants, grants->open) ||
        was_permitted(grants, find(grants, token, ALL_KEYS, ALL_KEYS)))
        return ST_OK;
    struct grant *grant = find_or_add(grants, token, key, range_end);
    if (grant && grant->answer == GRANT_REFUSED &&
        (is_fresh(grants, grant) || !cluster_answers(grants)))
        return grant->status;
    if (grant && is_aging(grants, grant)) {
        grant->watched = true;
        refresh(grants, grant);
    }
    return is_confirmed(grants, grant) ? ST_OK : ST_AGAIN;
}

bool grants_can_decide(const struct grants *grants, struct slice key, struct slice range_end)
{
    return !is_long(key, range_end) || grants->open->answer == GRANT_PERMITTED;
}

bool grants_enabled(const struct grants *grants)
{
    return grants->open->answer == GRANT_REFUSED;
}

/* Whether authentication is enabled must be known even without reads: watches may be running. */
static void on_tick(struct timer *timer)
{
    struct grants *grants = CONTAINER_OF(timer, struct grants, tick);
    struct loop *loop = grants->options.loop;
    loop_timer_set(loop, timer, loop_now_ns(loop) + grants->options.fresh_ns);
    cover(grants);
    refresh(grants, grants->open);
    if (grants_enabled(grants))
        grants->options.changed(grants->options.ctx);
}

/* -- Life -- */

struct grants *grants_new(const struct grants_options *options)
{
    struct grants *grants = xcalloc(1, sizeof(*grants));
    grants->options = *options;
    if (!grants->options.fresh_ns)
        grants->options.fresh_ns = NS_PER_S;
    hash_map_init(&grants->map, grant_id, random_seed_system());
    hash_map_init(&grants->callers, caller_token, random_seed_system());
    caller_init(&grants->open_caller);
    list_init(&grants->idle);
    for (int i = 0; i < QUEUES; i++)
        list_init(&grants->turns[i]);
    list_init(&grants->asked);
    id_make(grants, SLICE_EMPTY, ALL_KEYS, ALL_KEYS);
    grants->open = grant_new(SLICE_EMPTY, ALL_KEYS, ALL_KEYS, buf_slice(&grants->id));
    grants->open->grants = grants;
    grants->open->caller = &grants->open_caller;
    grants->notify.fn = on_notify;
    grants->tick.fn = on_tick;
    loop_timer_set(options->loop, &grants->tick, loop_now_ns(options->loop));
    return grants;
}

/* Both are removed from their lists. */
static struct grant *next_asked(struct grants *grants)
{
    struct list *link = list_pop_front(&grants->asked);
    return link ? LIST_ENTRY(link, struct grant, in_state) : NULL;
}

static struct grant *next_idle(struct grants *grants)
{
    struct list *link = list_pop_front(&grants->idle);
    return link ? LIST_ENTRY(link, struct grant, in_idle) : NULL;
}

void grants_free(struct grants *grants)
{
    if (!grants)
        return;
    loop_timer_cancel(grants->options.loop, &grants->tick);
    loop_defer_cancel(&grants->notify);
    struct grant *grant;
    while ((grant = next_queued(grants)) || (grant = next_asked(grants)) ||
           (grant = next_idle(grants)))
        if (grant != grants->open)
            grant_free(grants, grant);
    grant_free(grants, grants->open);
    assert(grants->bytes == 0 && grants->callers.count == 0);
    hash_map_fini(&grants->callers);
    hash_map_fini(&grants->map);
    buf_fini(&grants->id);
    free(grants);
}

void grants_check(const struct grants *grants)
{
    const struct grant *grant;
    const struct caller *caller;
    size_t bytes = 0, count = 0, asked = grants->open->state == GRANT_ASKED;
    hash_map_check(&grants->map);
    MAP_FOREACH (caller, &grants->callers) {
        assert(caller->count && caller->count <= GRANTS_SHARE_MAX);
        assert(caller->bytes <= GRANTS_SHARE_BYTES_MAX);
        count += caller->count;
    }
    assert(count == grants->map.count);
    MAP_FOREACH (grant, &grants->map) {
        bytes += grant_bytes(grant);
        asked += grant->state == GRANT_ASKED;
        assert((grant->state == GRANT_ASKED) == (grant->call != NULL));
        assert(grant->state != GRANT_IDLE || list_empty(&grant->waiters));
    }
    assert(bytes == grants->bytes && bytes <= GRANTS_BYTES_MAX);
    assert(asked == grants->asked_count && asked == list_length(&grants->asked));
    assert(asked <= GRANTS_QUESTIONS_MAX);
    assert(grants->map.count <= GRANTS_MAX);
}
