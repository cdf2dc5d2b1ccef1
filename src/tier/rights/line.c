#include "tier/rights/line.h"

#include "tier/rights/limits.h"

#include <stdio.h>
#include <stdlib.h>

enum { LATER_EVERY = 4 };

/* Pauses while the server is away: doubled each time, and varied by a half. */
#define PAUSE_NS_MIN (100 * NS_PER_MS)
#define PAUSE_NS_MAX (2 * NS_PER_S)
/* The same while no connection can be made: requests fail until the next attempt. */
#define PAUSE_UNREACHED_NS_MAX (500 * NS_PER_MS)

/* A user or an address. Exists as long as it has questions. */
struct tier_asker {
    struct slice key;
    size_t asked;        /* reviews under way */
    size_t urgent_count; /* queued */
    size_t bytes;        /* what waits with these */
    size_t count;        /* all its questions */
    struct list queued[TIER_URGENCIES];
    struct list in_turns[TIER_URGENCIES]; /* links line.turns if it may send one of these */
};

#define TO(state) (1u << TIER_ASK_##state)

/* Drawn in line.h. */
static const unsigned moves[] = {
    [TIER_ASK_IDLE] = TO(QUEUED),
    [TIER_ASK_QUEUED] = TO(ASKED) | TO(IDLE),
    [TIER_ASK_ASKED] = TO(QUEUED) | TO(IDLE),
};

/* -- Askers -- */

static struct slice asker_key(const void *value)
{
    return ((const struct tier_asker *)value)->key;
}

static struct tier_asker *find_asker(struct tier_line *line, struct slice key)
{
    void *replaced;
    struct tier_asker *asker = hash_map_get(&line->askers, key);
    if (asker)
        return asker;
    asker = calloc(1, sizeof(*asker) + key.len);
    if (!asker)
        return NULL;
    slice_copy(asker + 1, key);
    asker->key = slice_of(asker + 1, key.len);
    for (int i = 0; i < TIER_URGENCIES; i++) {
        list_init(&asker->queued[i]);
        list_init(&asker->in_turns[i]);
    }
    if (hash_map_put(&line->askers, asker, &replaced) != ST_OK) {
        free(asker);
        return NULL;
    }
    return asker;
}

static void asker_free_if_idle(struct tier_line *line, struct tier_asker *asker)
{
    if (asker->count)
        return;
    hash_map_remove(&line->askers, asker->key);
    for (int i = 0; i < TIER_URGENCIES; i++)
        list_remove(&asker->in_turns[i]);
    free(asker);
}

/* It takes part in the turns if it has something to send and may do so. */
static void take_place(struct tier_line *line, struct tier_asker *asker)
{
    for (int i = 0; i < TIER_URGENCIES; i++) {
        bool may_send = !list_empty(&asker->queued[i]) && asker->asked < TIER_USER_REVIEWS_MAX;
        if (!may_send)
            list_remove(&asker->in_turns[i]);
        else if (list_empty(&asker->in_turns[i]))
            list_push_back(&line->turns[i], &asker->in_turns[i]);
    }
}

static void send_soon(struct tier_line *line)
{
    loop_defer(line->loop, &line->send);
}

/* -- Queues -- */

static void enqueue(struct tier_ask *ask, bool first)
{
    struct tier_line *line = ask->line;
    struct tier_asker *asker = ask->asker;
    struct list *queue = &asker->queued[ask->urgency];
    STATE_MOVE(ask->state, moves, TIER_ASK_QUEUED);
    if (first)
        list_push_front(queue, &ask->in_asker);
    else
        list_push_back(queue, &ask->in_asker);
    line->queued_count++;
    if (ask->urgency == TIER_URGENT) {
        line->urgent_count++;
        line->bytes += ask->bytes;
        asker->urgent_count++;
        asker->bytes += ask->bytes;
        loop_timer_set(line->loop, &ask->deadline, ask->deadline_ns);
    }
    take_place(line, asker);
    send_soon(line);
}

/* It is still counted for the asker. */
static void dequeue(struct tier_ask *ask)
{
    struct tier_line *line = ask->line;
    struct tier_asker *asker = ask->asker;
    list_remove(&ask->in_asker);
    line->queued_count--;
    if (ask->urgency == TIER_URGENT) {
        line->urgent_count--;
        line->bytes -= ask->bytes;
        asker->urgent_count--;
        asker->bytes -= ask->bytes;
        loop_timer_cancel(line->loop, &ask->deadline);
    }
}

static void leave(struct tier_ask *ask)
{
    struct tier_line *line = ask->line;
    struct tier_asker *asker = TAKE(ask->asker);
    STATE_MOVE(ask->state, moves, TIER_ASK_IDLE);
    asker->count--;
    take_place(line, asker);
    asker_free_if_idle(line, asker);
    send_soon(line);
}

static void stop_asking(struct tier_ask *ask)
{
    list_remove(&ask->in_asker);
    ask->asker->asked--;
    ask->line->asked_count--;
}

static void answer(struct tier_ask *ask, unsigned code, struct slice body, const char *reason)
{
    leave(ask);
    ask->answered(ask, &(struct tier_ask_answer){code, body, reason});
}

/* How long an urgent question may wait from now on. */
static int64_t deadline_of(const struct tier_line *line)
{
    bool waits = !line->resume.set || !line->unreached;
    return clock_add(loop_now_ns(line->loop), waits ? TIER_ANSWER_NS : 0);
}

static void on_deadline(struct timer *timer)
{
    struct tier_ask *ask = CONTAINER_OF(timer, struct tier_ask, deadline);
    char reason[sizeof(ask->line->reason)];
    assert(ask->state == TIER_ASK_QUEUED);
    snprintf(reason, sizeof(reason), "%s",
             ask->line->resume.set ? ask->line->reason
             : tier_lane_waits(&ask->line->lane)
                 ? "more reviews are needed than the tier's --upstream-qps allows"
                 : "the kube-apiserver has not answered in time");
    dequeue(ask);
    answer(ask, 0, SLICE_EMPTY, reason);
}

/* -- Answers -- */

/* The server will answer when it can be reached again, has started, or throttles less. */
static bool is_away(const struct tier_ask *ask, unsigned code)
{
    int64_t until_ns =
        ask->urgency == TIER_URGENT ? ask->deadline_ns : clock_add(ask->sent_ns, TIER_ANSWER_NS);
    bool timed_out = loop_now_ns(ask->line->loop) >= until_ns;
    return !timed_out && (code == 0 || code == 429 || code == 502 || code == 503);
}

/* No request waits for a server that cannot be reached. */
static void hurry(struct tier_line *line)
{
    struct tier_asker *asker;
    struct tier_ask *ask;
    MAP_FOREACH (asker, &line->askers) {
        LIST_FOREACH (ask, &asker->queued[TIER_URGENT], in_asker) {
            ask->deadline_ns = loop_now_ns(line->loop);
            loop_timer_set(line->loop, &ask->deadline, ask->deadline_ns);
        }
    }
}

static void pause_line(struct tier_line *line, bool unreached, const char *reason)
{
    int64_t pause_ns = PAUSE_NS_MIN << (line->failures < 10 ? line->failures : 10);
    int64_t max_ns = unreached ? PAUSE_UNREACHED_NS_MAX : PAUSE_NS_MAX;
    bool is_new = unreached && !(line->resume.set && line->unreached);
    snprintf(line->reason, sizeof(line->reason), "%s", reason);
    line->unreached = unreached;
    if (is_new)
        hurry(line);
    if (line->resume.set)
        return; /* it was sent before the pause began */
    line->failures++;
    if (pause_ns > max_ns)
        pause_ns = max_ns;
    pause_ns += random_between(&line->random, 0, pause_ns / 2);
    loop_timer_set(line->loop, &line->resume, clock_add(loop_now_ns(line->loop), pause_ns));
}

static const char *reason_of(unsigned code, const char *reason)
{
    if (code == 429)
        return "the kube-apiserver refuses reviews because it has too many requests";
    return code ? "the kube-apiserver is not available" : reason;
}

static void on_call_done(struct tier_call *call, unsigned code, struct slice body,
                         const char *reason)
{
    struct tier_ask *ask = CONTAINER_OF(call, struct tier_ask, call);
    struct tier_line *line = ask->line;
    bool away = is_away(ask, code);
    ask->connection = call->connection;
    stop_asking(ask);
    if (line->ended)
        line->ended(line, code, loop_now_ns(line->loop) - ask->sent_ns);
    if (away)
        pause_line(line, call->unreached, reason_of(code, reason));
    if (away && !(call->unreached && ask->urgency == TIER_URGENT)) {
        enqueue(ask, true);
    } else {
        line->failures = code ? 0 : line->failures;
        answer(ask, code, body, reason);
    }
}

static void on_resume(struct timer *timer)
{
    send_soon(CONTAINER_OF(timer, struct tier_line, resume));
}

/* -- Sending -- */

static struct tier_ask *next_in(struct tier_line *line, enum tier_urgency urgency)
{
    struct list *link = list_pop_front(&line->turns[urgency]);
    if (!link)
        return NULL;
    struct tier_asker *asker = LIST_ENTRY(link - urgency, struct tier_asker, in_turns[0]);
    return LIST_ENTRY(asker->queued[urgency].next, struct tier_ask, in_asker);
}

static bool has_next(const struct tier_line *line)
{
    return !list_empty(&line->turns[TIER_URGENT]) || !list_empty(&line->turns[TIER_LATER]);
}

/* There is one. */
static struct tier_ask *next_ask(struct tier_line *line)
{
    enum tier_urgency first = ++line->sent % LATER_EVERY ? TIER_URGENT : TIER_LATER;
    struct tier_ask *ask = next_in(line, first);
    return ask ? ask : next_in(line, first == TIER_URGENT ? TIER_LATER : TIER_URGENT);
}

static enum status start_call(struct tier_ask *ask)
{
    struct tier_line *line = ask->line;
    int64_t now_ns = loop_now_ns(line->loop);
    int64_t timeout_ns = ask->urgency == TIER_URGENT ? ask->deadline_ns - now_ns : TIER_ANSWER_NS;
    line->body.len = 0;
    ask->sent_ns = now_ns;
    ask->call.done = on_call_done;
    enum status status = ask->write(ask, &line->body);
    if (status == ST_OK)
        status = tier_call_start(line->link, &ask->call, "POST", ask->path, buf_slice(&line->body),
                                 timeout_ns);
    /* It may contain a token. */
    if (line->body.len)
        explicit_bzero(line->body.ptr, line->body.len);
    buf_reset(&line->body, 64 * 1024);
    return status;
}

static void send_one(struct tier_line *line, struct tier_ask *ask)
{
    dequeue(ask);
    STATE_MOVE(ask->state, moves, TIER_ASK_ASKED);
    ask->asker->asked++;
    line->asked_count++;
    list_push_back(&line->asked, &ask->in_asker);
    enum status status = start_call(ask);
    take_place(line, ask->asker);
    if (status == ST_OK)
        return;
    stop_asking(ask);
    answer(ask, 0, SLICE_EMPTY, status == ST_NOMEM ? "out of memory" : "the tier is being stopped");
}

static void on_send(struct deferred *deferred)
{
    struct tier_line *line = CONTAINER_OF(deferred, struct tier_line, send);
    while (!line->resume.set && line->asked_count < TIER_REVIEWS_MAX && has_next(line) &&
           tier_lane_take(&line->lane))
        send_one(line, next_ask(line));
    if (line->changed)
        line->changed(line);
}

static void on_ready(struct tier_lane *lane)
{
    send_soon(CONTAINER_OF(lane, struct tier_line, lane));
}

/* -- For the owners -- */

void tier_line_init(struct tier_line *line, struct loop *loop, struct tier_link *link,
                    struct tier_rate *rate, uint64_t seed)
{
    *line =
        (struct tier_line){.loop = loop, .link = link, .send.fn = on_send, .resume.fn = on_resume};
    tier_lane_init(&line->lane, rate, loop, on_ready);
    random_init(&line->random, seed);
    hash_map_init(&line->askers, asker_key, seed);
    list_init(&line->asked);
    for (int i = 0; i < TIER_URGENCIES; i++)
        list_init(&line->turns[i]);
}

void tier_line_fini(struct tier_line *line)
{
    if (!line->loop)
        return;
    assert(!line->queued_count && !line->asked_count && !line->askers.count);
    loop_defer_cancel(&line->send);
    tier_lane_fini(&line->lane);
    loop_timer_cancel(line->loop, &line->resume);
    hash_map_fini(&line->askers);
    buf_fini(&line->body);
}

static bool has_room(const struct tier_line *line, const struct tier_asker *asker, size_t bytes)
{
    return line->urgent_count < TIER_QUESTIONS_MAX &&
           asker->urgent_count < TIER_USER_QUESTIONS_MAX &&
           line->bytes + bytes <= TIER_QUESTION_BYTES_MAX &&
           asker->bytes + bytes <= TIER_USER_QUESTION_BYTES_MAX;
}

enum status tier_line_add(struct tier_line *line, struct tier_ask *ask, struct slice key,
                          enum tier_urgency urgency, size_t bytes)
{
    assert(ask->state == TIER_ASK_IDLE);
    struct tier_asker *asker = find_asker(line, key);
    if (!asker)
        return ST_NOMEM;
    if (urgency == TIER_URGENT && !has_room(line, asker, bytes)) {
        asker_free_if_idle(line, asker);
        return ST_REQUEST_TOO_MANY_REQUESTS;
    }
    asker->count++;
    ask->line = line;
    ask->asker = asker;
    ask->urgency = urgency;
    ask->bytes = bytes;
    ask->deadline.fn = on_deadline;
    ask->deadline_ns = deadline_of(line);
    enqueue(ask, false);
    return ST_OK;
}

enum status tier_line_urge(struct tier_ask *ask)
{
    assert(ask->state != TIER_ASK_IDLE);
    if (ask->urgency == TIER_URGENT)
        return ST_OK;
    if (!has_room(ask->line, ask->asker, ask->bytes))
        return ST_REQUEST_TOO_MANY_REQUESTS;
    if (ask->state == TIER_ASK_QUEUED)
        dequeue(ask);
    ask->urgency = TIER_URGENT;
    ask->deadline_ns = clock_add(loop_now_ns(ask->line->loop), TIER_ANSWER_NS);
    if (ask->state == TIER_ASK_ASKED)
        return ST_OK; /* it counts if it comes back */
    ask->deadline_ns = deadline_of(ask->line);
    ask->state = TIER_ASK_IDLE;
    enqueue(ask, false);
    return ST_OK;
}

void tier_line_remove(struct tier_ask *ask)
{
    if (ask->state == TIER_ASK_IDLE)
        return;
    if (ask->state == TIER_ASK_QUEUED) {
        dequeue(ask);
    } else {
        tier_call_cancel(&ask->call);
        stop_asking(ask);
    }
    leave(ask);
}

/* -- Tests -- */

static void check_asker(const struct tier_asker *asker, size_t *queued, size_t *urgent)
{
    const struct tier_ask *ask;
    size_t count = 0, bytes = 0;
    for (int i = 0; i < TIER_URGENCIES; i++) {
        LIST_FOREACH (ask, &asker->queued[i], in_asker) {
            assert(ask->state == TIER_ASK_QUEUED && ask->asker == asker);
            assert(ask->urgency == (enum tier_urgency)i);
            assert(ask->deadline.set == (i == TIER_URGENT));
            bytes += i == TIER_URGENT ? ask->bytes : 0;
            count++;
        }
        bool may_send = !list_empty(&asker->queued[i]) && asker->asked < TIER_USER_REVIEWS_MAX;
        assert(may_send == !list_empty(&asker->in_turns[i]));
    }
    assert(asker->asked <= TIER_USER_REVIEWS_MAX);
    assert(asker->count == count + asker->asked && asker->count);
    assert(asker->bytes == bytes);
    assert(asker->urgent_count == list_length(&asker->queued[TIER_URGENT]));
    *queued += count;
    *urgent += asker->urgent_count;
}

void tier_line_check(const struct tier_line *line)
{
    const struct tier_asker *asker;
    const struct tier_ask *ask;
    size_t queued = 0, urgent = 0, asked = 0;
    hash_map_check(&line->askers);
    MAP_FOREACH (asker, &line->askers) {
        check_asker(asker, &queued, &urgent);
        asked += asker->asked;
    }
    LIST_FOREACH (ask, &line->asked, in_asker)
        assert(ask->state == TIER_ASK_ASKED && ask->call.state);
    assert(queued == line->queued_count && urgent == line->urgent_count);
    assert(asked == line->asked_count && asked == list_length(&line->asked));
    assert(asked <= TIER_REVIEWS_MAX);
}
