#include "tier/rights/rights_private.h"

#include "codec/utf8.h"
#include "kube/policy/access/sign_in.h"
#include "tier/rights/review.h"
#include "wire/http/certificate.h"

#include <stdlib.h>

#define TO_LIST(head, link)             \
    do {                                \
        list_remove(link);              \
        list_push_back((head), (link)); \
    } while (0)

struct slice tier_token_key(const void *value)
{
    return slice_of(((const struct tier_token *)value)->id, TIER_TOKEN_ID_BYTES);
}

/* -- What is kept of a token -- */

static void erase(struct buf *text)
{
    if (text->ptr)
        explicit_bzero(text->ptr, text->capacity);
    buf_fini(text);
}

static void drop_user(struct tier_token *token)
{
    struct tier_user *user = TAKE(token->user);
    if (user)
        tier_keep(token->rights, 0, user->bytes);
    tier_user_unref(user);
}

static bool is_needed(const struct tier_token *token)
{
    return token->busy || !list_empty(&token->waiters) || !list_empty(&token->news.waiters) ||
           token->ask.state != TIER_ASK_IDLE || tier_duty_exists(&token->duty);
}

static bool is_in_refused(const struct tier_token *token)
{
    return !token->known && !list_empty(&token->in_used);
}

static void take_from_used(struct tier_token *token)
{
    if (is_in_refused(token))
        token->rights->refused_count--;
    list_remove(&token->in_used);
}

static void put_into_used(struct tier_token *token)
{
    struct tier_rights *rights = token->rights;
    take_from_used(token);
    list_push_back(token->known ? &rights->known : &rights->refused, &token->in_used);
    if (!token->known)
        rights->refused_count++;
}

void tier_token_destroy(struct tier_token *token)
{
    assert(list_empty(&token->waiters) && !token->busy && !tier_duty_exists(&token->duty));
    tier_line_remove(&token->ask);
    take_from_used(token);
    list_remove(&token->in_kept);
    drop_user(token);
    tier_user_unref(token->news.user);
    erase(&token->text);
    buf_fini(&token->key);
    free(token);
}

static void forget_token(struct tier_token *token)
{
    hash_map_remove(&token->rights->tokens, tier_token_key(token));
    tier_token_destroy(token);
}

void tier_token_release(struct tier_token *token)
{
    if (is_needed(token))
        return;
    erase(&token->text);
    if (token->answered || token->known)
        put_into_used(token);
    else
        forget_token(token);
}

void tier_token_forget(struct tier_token *token)
{
    token->answered = false;
    list_remove(&token->in_kept);
    drop_user(token);
    tier_token_release(token);
}

/* -- Finding -- */

/* Forgets one that nothing needs. Tokens that are not valid do not push out the others. */
static bool make_room(struct tier_rights *rights)
{
    struct list *from = NULL;
    if (rights->refused_count >= TIER_REFUSED_MAX)
        from = &rights->refused;
    else if (rights->tokens.count < TIER_USERS_MAX)
        return true;
    else
        from = list_empty(&rights->refused) ? &rights->known : &rights->refused;
    if (list_empty(from))
        return false;
    forget_token(LIST_ENTRY(from->next, struct tier_token, in_used));
    return true;
}

static enum status on_write(struct tier_ask *ask, struct buf *to);
static void on_answered(struct tier_ask *ask, const struct tier_ask_answer *answer);

static struct tier_token *add(struct tier_rights *rights, const uint8_t id[TIER_TOKEN_ID_BYTES])
{
    void *replaced;
    if (!make_room(rights))
        return NULL;
    struct tier_token *token = calloc(1, sizeof(*token));
    if (!token)
        return NULL;
    token->rights = rights;
    memcpy(token->id, id, sizeof(token->id));
    token->ask.path = TIER_TOKEN_REVIEWS;
    token->ask.write = on_write;
    token->ask.answered = on_answered;
    list_init(&token->waiters);
    list_init(&token->in_kept);
    list_init(&token->in_used);
    list_init(&token->news.in_rights);
    list_init(&token->news.waiters);
    token->news.of_token = true;
    tier_duty_init(&token->duty, true);
    if (hash_map_put(&rights->tokens, token, &replaced) != ST_OK) {
        free(token);
        return NULL;
    }
    return token;
}

/* NULL: there is no memory or room. */
static struct tier_token *find_or_add(struct tier_rights *rights,
                                      const uint8_t id[TIER_TOKEN_ID_BYTES], struct slice text)
{
    struct tier_token *token = hash_map_get(&rights->tokens, slice_of(id, TIER_TOKEN_ID_BYTES));
    if (!token)
        token = add(rights, id);
    if (!token)
        return NULL;
    take_from_used(token);
    if (!token->text.len && buf_append(&token->text, text) != ST_OK) {
        tier_token_release(token);
        return NULL;
    }
    return token;
}

static enum status set_key(struct tier_token *token, char kind, struct slice who)
{
    token->key.len = 0;
    TRY(buf_append(&token->key, slice_of(&kind, 1)));
    return buf_append(&token->key, who);
}

struct tier_token *tier_token_of(struct tier_rights *rights, const struct tier_user *user)
{
    struct tier_token *token = find_or_add(rights, user->token_id, user->token);
    if (!token || token->known)
        return token;
    if (set_key(token, TIER_KEY_OF_USER, user->name) != ST_OK) {
        tier_token_release(token);
        return NULL;
    }
    token->known = true;
    return token;
}

/* -- Asking -- */

static enum status on_write(struct tier_ask *ask, struct buf *to)
{
    struct tier_token *token = CONTAINER_OF(ask, struct tier_token, ask);
    return tier_review_write_token(buf_slice(&token->text), to);
}

static enum status ask_now(struct tier_token *token)
{
    struct tier_ask *ask = &token->ask;
    if (ask->state != TIER_ASK_IDLE)
        return tier_line_urge(ask);
    return tier_line_add(&token->rights->line, ask, buf_slice(&token->key), TIER_URGENT,
                         sizeof(*token) + token->text.len);
}

void tier_token_ask_later(struct tier_token *token)
{
    /* Without memory it is tried again soon. */
    if (token->ask.state == TIER_ASK_IDLE)
        (void)!tier_line_add(&token->rights->line, &token->ask, buf_slice(&token->key), TIER_LATER,
                             sizeof(*token) + token->text.len);
}

/* -- Answers -- */

static void finish(struct tier_question *question, struct tier_user *user,
                   const struct kube_status *status)
{
    question->answer = NULL;
    question->done(question, user ? tier_user_ref(user) : NULL, status);
}

static void refuse(struct tier_question *question, enum status why)
{
    struct kube_status status;
    tier_not_asked(&status, why);
    finish(question, NULL, &status);
}

/* user: NULL: the token is not valid. */
static void finish_decided(struct tier_question *question, struct tier_user *user)
{
    struct kube_status status = {0};
    if (!user)
        (void)kube_fail(&status, KUBE_UNAUTHORIZED, "Unauthorized");
    finish(question, user, &status);
}

/* The user of an answer, with one reference; NULL: no memory. An answer that says what is known
 * does not make a new one. */
static struct tier_user *make_user(const struct tier_token *token,
                                   const struct kube_user_info *info)
{
    struct tier_user *user = tier_user_new(info, buf_slice(&token->text));
    if (!user)
        return NULL;
    memcpy(user->token_id, token->id, sizeof(user->token_id));
    if (!token->user || !slice_equal(token->user->spec, user->spec))
        return user;
    tier_user_unref(user);
    return tier_user_ref(token->user);
}

static void keep(struct tier_token *token, struct tier_user *user)
{
    struct tier_rights *rights = token->rights;
    drop_user(token);
    token->user = user;
    token->answered = true;
    token->asked_ns = token->ask.sent_ns;
    TO_LIST(&rights->kept_tokens, &token->in_kept);
    tier_keep(rights, user ? user->bytes : 0, 0);
}

/* Its questions take turns with those of its user from now on. Without memory they still take turns
 * with those of the client's address. */
static void note_user(struct tier_token *token)
{
    struct buf before = token->key;
    token->key = (struct buf){0};
    if (set_key(token, TIER_KEY_OF_USER, token->user->name) == ST_OK) {
        token->known = true;
        buf_fini(&before);
        return;
    }
    buf_fini(&token->key);
    token->key = before;
}

/* What an answer means, and keeps it. */
static enum tier_verdict take_answer(struct tier_token *token, const struct tier_ask_answer *answer,
                                     const char **ret_reason)
{
    struct arena arena;
    struct kube_user_info info = {0};
    struct tier_user *user = NULL;
    enum tier_answer says = TIER_ANSWER_NONE;
    *ret_reason = "";
    if (answer->code < 200 || answer->code > 206)
        return TIER_UNKNOWN;
    arena_init(&arena, NULL, 0, TIER_ARENA_BYTES_MAX);
    says = tier_review_read_token(&arena, answer->body, &info, ret_reason);
    if (says == TIER_ANSWER_YES && !(user = make_user(token, &info))) {
        *ret_reason = "out of memory";
        says = TIER_ANSWER_NONE;
    }
    arena_fini(&arena);
    if (says == TIER_ANSWER_NONE)
        return TIER_UNKNOWN;
    keep(token, user);
    if (token->user && !token->known) /* it is not if there is no room for it */
        note_user(token);
    return user ? TIER_ALLOWED : TIER_DENIED;
}

/* Those for which the answer is too old ask again. */
static void take_waiters(struct tier_token *token, bool all)
{
    struct tier_question *question, *following;
    LIST_FOREACH_SAFE (question, following, &token->waiters, in_answer)
        if (all || tier_is_fresh(token->rights, token->asked_ns, question->since_ns))
            TO_LIST(&token->news.waiters, &question->in_answer);
}

static void end_news(struct tier_token *token)
{
    list_remove(&token->news.in_rights);
    tier_user_unref(TAKE(token->news.user));
}

/* The token is busy. */
static void tell_some(struct tier_token *token, const struct kube_status *failure)
{
    struct tier_news *news = &token->news;
    for (int n = 0; n < TIER_TOLD_PER_TURN && !list_empty(&news->waiters); n++) {
        struct list *link = list_pop_front(&news->waiters);
        struct tier_question *question = LIST_ENTRY(link, struct tier_question, in_answer);
        if (news->verdict == TIER_UNKNOWN)
            finish(question, NULL, failure);
        else
            finish_decided(question, news->user);
    }
    if (!list_empty(&news->waiters)) {
        tier_tell_later(token->rights, news);
        return;
    }
    end_news(token);
}

void tier_token_tell(struct tier_token *token)
{
    struct kube_status status = {0};
    tier_not_answered(&status, TIER_OF_TOKENS);
    token->busy = true;
    tell_some(token, &status);
    token->busy = false;
    tier_token_release(token);
}

/* The waiters that are left ask again, or are refused if they cannot. */
static void ask_again(struct tier_token *token)
{
    enum status why = list_empty(&token->waiters) ? ST_OK : ask_now(token);
    struct list *link;
    while (why != ST_OK && (link = list_pop_front(&token->waiters)))
        refuse(LIST_ENTRY(link, struct tier_question, in_answer), why);
}

static void on_answered(struct tier_ask *ask, const struct tier_ask_answer *answer)
{
    struct tier_token *token = CONTAINER_OF(ask, struct tier_token, ask);
    struct tier_rights *rights = token->rights;
    struct kube_status status = {0};
    const char *reason;
    token->busy = true;
    enum tier_verdict verdict = take_answer(token, answer, &reason);
    tier_count_verdict(rights, TIER_OF_TOKENS, verdict);
    if (verdict == TIER_UNKNOWN)
        tier_unanswered(rights, TIER_OF_TOKENS, answer, reason, &status);
    /* Meanwhile the answer may be forgotten. */
    tier_user_unref(token->news.user);
    token->news.user = token->user ? tier_user_ref(token->user) : NULL;
    token->news.verdict = verdict;
    take_waiters(token, verdict == TIER_UNKNOWN);
    ask_again(token);
    tier_token_judge(token, verdict);
    tell_some(token, &status);
    token->busy = false;
    tier_token_release(token);
}

/* -- Questions -- */

static void identify_certificate(struct tier_question *question, const struct http_request *request)
{
    _Alignas(ARENA_ALIGN) uint8_t first[1024];
    struct kube_user_info info;
    struct arena arena;
    arena_init(&arena, first, sizeof(first), TIER_ARENA_BYTES_MAX);
    (void)!kube_user_of_certificate(&arena, request, &info);
    struct tier_user *user = arena_ran_out(&arena) ? NULL : tier_user_new(&info, SLICE_EMPTY);
    arena_fini(&arena);
    if (user) {
        struct kube_status status = {0};
        user->by_certificate = true;
        question->answer = NULL;
        question->done(question, user, &status);
    } else {
        refuse(question, ST_NOMEM);
    }
}

/* As kube-apiserver reads the field: "Bearer TOKEN", where everything behind a further space is
 * ignored, and a field of another scheme or without a token, too. */
static bool bearer_of(const struct http_request *request, struct slice *ret_token)
{
    struct slice field;
    if (!http_request_get(request, SLICE_LITERAL("authorization"), &field))
        return false;
    field = slice_trim(field);
    struct slice scheme = slice_cut(&field, ' ');
    if (!http_name_equal(scheme, SLICE_LITERAL("bearer")))
        return false;
    *ret_token = slice_cut(&field, ' ');
    return ret_token->len != 0;
}

/* There is no review of tokens that it could not contain. */
static bool may_be_valid(struct slice token)
{
    return token.len <= TIER_TOKEN_BYTES_MAX && utf8_valid(token);
}

static void wait_for(struct tier_token *token, struct tier_question *question, uint64_t peer)
{
    enum status status = ST_OK;
    if (!token->known && token->ask.state == TIER_ASK_IDLE)
        status = set_key(token, TIER_KEY_OF_ADDRESS, slice_of(&peer, sizeof(peer)));
    if (status == ST_OK)
        status = ask_now(token);
    if (status != ST_OK) {
        tier_token_release(token);
        refuse(question, status);
        return;
    }
    question->answer = token;
    list_push_back(&token->waiters, &question->in_answer);
}

static void identify_token(struct tier_rights *rights, struct tier_question *question,
                           struct slice text, struct wire_peer peer)
{
    uint8_t id[TIER_TOKEN_ID_BYTES];
    if (tier_digest(text, SLICE_EMPTY, id) != ST_OK) {
        refuse(question, ST_NOMEM);
        return;
    }
    struct tier_token *token = hash_map_get(&rights->tokens, slice_of(id, sizeof(id)));
    if (token && token->answered && tier_is_fresh(rights, token->asked_ns, question->since_ns)) {
        tier_count_hit(rights, TIER_OF_TOKENS);
        if (!is_needed(token))
            put_into_used(token);
        finish_decided(question, token->user);
        return;
    }
    token = find_or_add(rights, id, text);
    if (token)
        wait_for(token, question, wire_peer_key(peer));
    else
        refuse(question, ST_REQUEST_TOO_MANY_REQUESTS);
}

void tier_identify(struct tier_rights *rights, struct tier_question *question,
                   const struct http_request *request)
{
    struct kube_status status = {0};
    struct slice token;
    question->answer = NULL;
    list_init(&question->in_answer);
    question->since_ns = loop_now_ns(rights->loop);
    if (request->certificate && request->certificate->has_bad_uid) {
        finish_decided(question, NULL);
    } else if (request->peer_name && *request->peer_name) {
        identify_certificate(question, request);
    } else if (!bearer_of(request, &token)) {
        finish(question, rights->anonymous, &status);
    } else if (!may_be_valid(token)) {
        (void)kube_fail(&status, KUBE_UNAUTHORIZED, "Unauthorized");
        finish(question, NULL, &status);
    } else {
        identify_token(rights, question, token, request->peer);
    }
}

void tier_question_cancel(struct tier_question *question)
{
    struct tier_token *token = TAKE(question->answer);
    if (!token)
        return;
    list_remove(&question->in_answer);
    if (list_empty(&token->news.waiters))
        end_news(token);
    /* A question without waiters is not sent; one that was sent is answered for the next. */
    if (list_empty(&token->waiters) && !tier_duty_exists(&token->duty) &&
        token->ask.state == TIER_ASK_QUEUED)
        tier_line_remove(&token->ask);
    tier_token_release(token);
}
