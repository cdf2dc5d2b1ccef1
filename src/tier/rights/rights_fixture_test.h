/*
 * For tests of rights: a scripted kube-apiserver that answers reviews, on a simulated network, and
 * questions and watches that record what becomes of them. One file of a program includes this.
 *
 * A token "jane" is valid, and its user has that name, unless the script says otherwise. The script
 * also says which accesses are allowed.
 */
#ifndef VIGIL_TIER_RIGHTS_RIGHTS_FIXTURE_TEST_H
#define VIGIL_TIER_RIGHTS_RIGHTS_FIXTURE_TEST_H

#include "base/metric/page.h"
#include "tier/link/link_fixture_test.h"
#include "tier/rights/rights.h"
#include "wire/http/certificate.h"

/* What the server answers, and what it has seen. */
struct review_script {
    bool holds;        /* it does not answer, until rights_world_answer */
    unsigned code;     /* 0: it decides; otherwise the answer has this code and */
    const char *body;  /* this body */
    const char *allow; /* accesses whose review contains this are allowed; NULL: all */
    const char *never; /* and those with this are not; NULL: none */
    const char *reason;
    const char *bad_token;     /* this one is not valid; NULL: all are */
    const char *groups;        /* those of all users, as JSON */
    int64_t delay_ns;          /* it takes so long to answer */
    unsigned unready;          /* the code of its /readyz; 0: 200 */
    unsigned readyz;           /* requests for that, so far */
    unsigned tokens, accesses; /* reviews, so far */
    size_t asked, asked_most;  /* reviews without an answer: now, and at most */
    char last_token[2048], last_access[2048];
    char order[4096]; /* the users of accesses in the order of their reviews, with spaces */
};

struct rights_world {
    struct link_world base;
    struct review_script script;
    struct tier_rights *rights;
    struct tier_rights_options options;
};

static struct rights_world *rights_checked;
static unsigned rights_turns; /* those of the loop, so far */

static inline void rights_world_check(void)
{
    faults.turns = 0;
    rights_turns++;
    link_world_check();
    if (rights_checked && rights_checked->rights)
        tier_rights_check(rights_checked->rights);
}

/* -- The server -- */

/* The text of a member "name":"…" that has no escapes; "" if there is none. */
static inline void find_text(const char *json, const char *name, char *to, size_t size)
{
    char pattern[64];
    snprintf(pattern, sizeof(pattern), "\"%s\":\"", name);
    const char *at = strstr(json, pattern);
    *to = 0;
    if (at)
        snprintf(to, size, "%.*s", (int)strcspn(at + strlen(pattern), "\""), at + strlen(pattern));
}

static inline void answer_token(struct sim_reply *reply, const struct review_script *s,
                                const char *review)
{
    char token[256], json[1024];
    find_text(review, "token", token, sizeof(token));
    if (s->bad_token && strcmp(token, s->bad_token) == 0)
        snprintf(json, sizeof(json),
                 "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
                 "\"metadata\":{},\"spec\":{},\"status\":{\"user\":{},\"error\":\"bad\"}}");
    else
        snprintf(json, sizeof(json),
                 "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
                 "\"metadata\":{},\"spec\":{},\"status\":{\"authenticated\":true,\"user\":{"
                 "\"username\":\"%s\",\"uid\":\"u-%s\",\"groups\":%s,"
                 "\"extra\":{\"b\":[\"2\",\"3\"],\"a\":[\"1\"]}}}}",
                 token, token, s->groups ? s->groups : "[\"g\",\"system:authenticated\"]");
    sim_reply_json(reply, 201, json);
}

static inline void answer_access(struct sim_reply *reply, const struct review_script *s,
                                 const char *review)
{
    bool allowed =
        (!s->allow || strstr(review, s->allow)) && !(s->never && strstr(review, s->never));
    char json[1024];
    snprintf(json, sizeof(json),
             "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\","
             "\"metadata\":{},\"spec\":{},\"status\":{\"allowed\":%s,\"reason\":\"%s\"}}",
             allowed ? "true" : "false", s->reason ? s->reason : "");
    sim_reply_json(reply, 201, json);
}

static inline void answer_now(struct sim_reply *reply, struct review_script *s, const char *review)
{
    s->asked--;
    if (s->code)
        sim_reply_json(reply, s->code, s->body ? s->body : "");
    else if (strstr(review, "\"TokenReview\""))
        answer_token(reply, s, review);
    else
        answer_access(reply, s, review);
}

/* A review that is answered later. */
struct held_review {
    struct list in_held;
    struct review_script *script;
    struct sim_reply *reply;
    char review[2048];
};

static struct list held_reviews;

static inline void answer_later(struct sim_reply *reply, void *ctx)
{
    struct held_review *held = ctx;
    list_remove(&held->in_held);
    answer_now(reply, held->script, held->review);
    free(held);
}

static inline void on_review(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct rights_world *w = ctx;
    struct review_script *s = &w->script;
    bool of_token = strstr(request->target, "tokenreviews");
    assert_string_equal(request->method, "POST");
    snprintf(of_token ? s->last_token : s->last_access, sizeof(s->last_token), "%s", request->body);
    s->tokens += of_token;
    s->accesses += !of_token;
    s->asked++;
    s->asked_most = size_max(s->asked, s->asked_most);
    if (!of_token) {
        char user[64];
        size_t len = strlen(s->order);
        find_text(request->body, "user", user, sizeof(user));
        snprintf(s->order + len, sizeof(s->order) - len, "%s ", user);
    }
    w->base.server.request_count = 0; /* there may be many */
    if (!s->holds && !s->delay_ns) {
        answer_now(reply, s, request->body);
        return;
    }
    struct held_review *held = calloc(1, sizeof(*held));
    assert_non_null(held);
    held->script = s;
    held->reply = reply;
    snprintf(held->review, sizeof(held->review), "%s", request->body);
    list_push_back(&held_reviews, &held->in_held);
    if (!s->holds)
        sim_reply_after(reply, s->delay_ns, answer_later, held);
}

/* Answers those that were held back. */
static inline void rights_world_answer(struct rights_world *w)
{
    (void)w;
    while (!list_empty(&held_reviews)) {
        struct held_review *held = LIST_ENTRY(held_reviews.next, struct held_review, in_held);
        answer_later(held->reply, held);
    }
}

/* They are not answered any more. */
static inline void rights_world_drop(struct rights_world *w)
{
    while (!list_empty(&held_reviews)) {
        free(LIST_ENTRY(list_pop_front(&held_reviews), struct held_review, in_held));
        w->script.asked--;
    }
}

static inline void on_readyz(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    struct rights_world *w = ctx;
    (void)request;
    w->base.server.request_count = 0;
    w->script.readyz++;
    sim_reply_whole(reply, w->script.unready ? w->script.unready : 200, "text/plain",
                    SLICE_LITERAL("so"));
}

/* -- The world -- */

static inline void rights_world_make(struct rights_world *w)
{
    w->options.loop = w->base.loop;
    w->options.link = w->base.link;
    w->rights = tier_rights_new(&w->options);
}

static inline void rights_world_init(struct rights_world *w)
{
    memset(w, 0, sizeof(*w));
    list_init(&held_reviews);
    link_world_init(&w->base, SIM_HTTP2, NULL);
    kube_server_route(&w->base.server, "GET", "/readyz", on_readyz, w);
    kube_server_route(&w->base.server, NULL, "*", on_review, w);
    assert_int_equal(link_world_start(&w->base), ST_OK);
    w->options.ttl_ns = 10 * NS_PER_S;
    w->options.seed = 1;
    rights_world_make(w);
    rights_checked = w;
    faults.check = rights_world_check;
}

static inline void rights_world_fini(struct rights_world *w)
{
    rights_checked = NULL;
    tier_rights_free(w->rights);
    rights_world_drop(w);
    link_world_fini(&w->base);
}

static inline int64_t rights_now(const struct rights_world *w)
{
    return link_world_now(&w->base);
}

static inline void on_tick(struct timer *timer)
{
    (void)timer;
}

/* The loop has a turn at that time, so that its clock is right. */
static inline void rights_run_until(struct rights_world *w, int64_t at_ns)
{
    struct timer tick = {.fn = on_tick};
    loop_timer_set(w->base.loop, &tick, at_ns);
    sim_run_until(w->base.sim, at_ns);
    assert_false(tick.set);
    tier_rights_check(w->rights);
}

static inline void rights_run(struct rights_world *w, int64_t ns)
{
    rights_run_until(w, rights_now(w) + ns);
}

/* -- Who -- */

struct test_question {
    struct tier_question question;
    struct tier_user *user;
    unsigned ends, code, turn;
    char message[1024];
};

static inline void on_identified(struct tier_question *question, struct tier_user *user,
                                 const struct kube_status *status)
{
    struct test_question *q = CONTAINER_OF(question, struct test_question, question);
    q->ends++;
    q->turn = rights_turns;
    tier_user_unref(q->user);
    q->user = user;
    q->code = user ? 200 : kube_status_code(status);
    snprintf(q->message, sizeof(q->message), "%s", status->message);
}

static inline void identify_from(struct rights_world *w, struct test_question *q,
                                 const char *authorization, void (*address)(void *, char *))
{
    struct http_field field = {SLICE_LITERAL("Authorization"),
                               slice_from_text(authorization ? authorization : "")};
    struct http_request request = {.fields = &field,
                                   .field_count = authorization ? 1 : 0,
                                   .peer = {.address = address, .owner = w}};
    q->question.done = on_identified;
    faulty_memory_begin();
    tier_identify(w->rights, &q->question, &request);
    faulty_memory_end();
}

static inline void identify(struct rights_world *w, struct test_question *q,
                            const char *authorization)
{
    identify_from(w, q, authorization, NULL);
}

static inline void question_fini(struct test_question *q)
{
    tier_question_cancel(&q->question);
    tier_user_unref(q->user);
    *q = (struct test_question){0};
}

/* The user of a token, after the review; NULL: not valid. */
static inline struct tier_user *user_of(struct rights_world *w, const char *token)
{
    struct test_question q = {0};
    char field[256];
    snprintf(field, sizeof(field), "Bearer %s", token);
    identify(w, &q, field);
    if (!q.ends)
        rights_run(w, NS_PER_S);
    assert_int_equal(q.ends, 1);
    return q.user;
}

/* -- May they -- */

struct test_wait {
    struct tier_right_wait wait;
    unsigned ends, turn;
    enum tier_verdict verdict;
    unsigned code;
    char message[1024];
    char json[2048];
    int64_t ended_ns;
    void (*then)(struct test_wait *wait);
    void *ctx;
};

static inline void note_status(const struct kube_status *status, unsigned *code, char *message,
                               size_t size)
{
    struct slice text =
        status->long_message.len ? status->long_message : slice_from_text(status->message);
    *code = kube_status_code(status);
    snprintf(message, size, "%.*s", SLICE_ARGS(text));
}

static inline void on_decided(struct tier_right_wait *wait, enum tier_verdict verdict,
                              const struct kube_status *status)
{
    struct test_wait *t = CONTAINER_OF(wait, struct test_wait, wait);
    struct buf json = {0};
    t->ends++;
    t->turn = rights_turns;
    t->verdict = verdict;
    t->ended_ns = loop_now_ns(faults.loop);
    note_status(status, &t->code, t->message, sizeof(t->message));
    if (kube_status_write(status, &json) == ST_OK)
        snprintf(t->json, sizeof(t->json), "%.*s", SLICE_ARGS(buf_slice(&json)));
    buf_fini(&json);
    if (t->then)
        t->then(t);
}

static inline struct tier_access list_pods(const char *namespace)
{
    return (struct tier_access){.verb = "list",
                                .version = SLICE_LITERAL("v1"),
                                .resource = SLICE_LITERAL("pods"),
                                .namespace = slice_from_text(namespace)};
}

static inline void may_access(struct rights_world *w, struct test_wait *t, struct tier_user *user,
                              const struct tier_access *access)
{
    t->wait.done = on_decided;
    faulty_memory_begin();
    tier_may(w->rights, &t->wait, user, access);
    faulty_memory_end();
}

/* List the pods of a namespace. */
static inline void may(struct rights_world *w, struct test_wait *t, struct tier_user *user,
                       const char *namespace)
{
    struct tier_access access = list_pods(namespace);
    may_access(w, t, user, &access);
}

/* The decision, after the review. */
static inline enum tier_verdict decide(struct rights_world *w, struct test_wait *t,
                                       struct tier_user *user, const char *namespace)
{
    *t = (struct test_wait){0};
    may(w, t, user, namespace);
    if (!t->ends)
        rights_run(w, NS_PER_S);
    assert_int_equal(t->ends, 1);
    return t->verdict;
}

/* -- Watches -- */

struct test_watch {
    struct tier_standing standing;
    unsigned losses, code, turn;
    enum tier_verdict verdict;
    char message[1024];
    int64_t lost_ns;
};

static inline void on_lost(struct tier_standing *standing, enum tier_verdict verdict,
                           const struct kube_status *status)
{
    struct test_watch *t = CONTAINER_OF(standing, struct test_watch, standing);
    t->losses++;
    t->turn = rights_turns;
    t->verdict = verdict;
    t->lost_ns = loop_now_ns(faults.loop);
    note_status(status, &t->code, t->message, sizeof(t->message));
}

static inline enum status watch_pods(struct rights_world *w, struct test_watch *t,
                                     struct tier_user *user, const char *namespace)
{
    struct tier_access access = list_pods(namespace);
    access.verb = "watch";
    *t = (struct test_watch){.standing.lost = on_lost};
    faulty_memory_begin();
    enum status status = tier_standing_add(w->rights, &t->standing, user, &access);
    faulty_memory_end();
    assert_int_equal(t->losses, 0);
    return status;
}

#endif
