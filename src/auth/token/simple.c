#include "auth/token/simple.h"

#include "base/container/hash_map.h"
#include "base/container/list.h"
#include "base/xalloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXPIRE_AT_ONCE = 16 };

/* A user that has tokens. */
struct holder {
    struct list tokens; /* in the same order as all */
    size_t name_len;
    uint8_t name[];
};

struct token {
    struct list in_order, in_holder;
    struct holder *holder;
    int64_t ends_ns;
    uint8_t text_len;
    char text[AUTH_TOKEN_TEXT_BYTES + 1];
};

struct auth_tokens {
    int64_t ttl_ns;
    struct hash_map by_text, holders;
    struct list order; /* the first to expire comes first: each use moves a token to the end */
};

static struct slice token_key(const void *value)
{
    const struct token *token = value;
    return slice_of(token->text, token->text_len);
}

static struct slice holder_key(const void *value)
{
    const struct holder *holder = value;
    return slice_of(holder->name, holder->name_len);
}

struct auth_tokens *auth_tokens_new(int64_t ttl_ns, uint64_t seed)
{
    assert(ttl_ns > 0);
    struct auth_tokens *tokens = xcalloc(1, sizeof(*tokens));
    tokens->ttl_ns = ttl_ns;
    hash_map_init(&tokens->by_text, token_key, seed);
    hash_map_init(&tokens->holders, holder_key, seed);
    list_init(&tokens->order);
    return tokens;
}

void auth_tokens_free(struct auth_tokens *tokens)
{
    if (!tokens)
        return;
    auth_tokens_end_all(tokens);
    hash_map_fini(&tokens->by_text);
    hash_map_fini(&tokens->holders);
    free(tokens);
}

size_t auth_tokens_count(const struct auth_tokens *tokens)
{
    return tokens->by_text.count;
}

/* Frees a token that is not in by_text, and its holder with its last one. */
static void token_free(struct auth_tokens *tokens, struct token *token)
{
    struct holder *holder = token->holder;
    list_remove(&token->in_order);
    list_remove(&token->in_holder);
    free(token);
    if (list_empty(&holder->tokens)) {
        void *removed = hash_map_remove(&tokens->holders, holder_key(holder));
        assert(removed == holder);
        free(holder);
    }
}

static void token_end(struct auth_tokens *tokens, struct token *token)
{
    void *removed = hash_map_remove(&tokens->by_text, token_key(token));
    assert(removed == token);
    token_free(tokens, token);
}

static struct holder *holder_of(struct auth_tokens *tokens, struct slice user)
{
    struct holder *holder = hash_map_get(&tokens->holders, user);
    void *none = NULL;
    if (holder)
        return holder;
    holder = xcalloc(1, sizeof(*holder) + user.len);
    list_init(&holder->tokens);
    holder->name_len = user.len;
    slice_copy(holder->name, user);
    enum status status = hash_map_put(&tokens->holders, holder, &none);
    xalloc_check(status == ST_OK ? holder : NULL, sizeof(*holder));
    return holder;
}

static struct token *token_first(const struct auth_tokens *tokens)
{
    return list_empty(&tokens->order) ? NULL
                                      : CONTAINER_OF(tokens->order.next, struct token, in_order);
}

/* 16 bits for each of 52 letters: the bias towards the first letters is 1 in 1260. */
static uint8_t write_text(char *text, const uint8_t *random, uint64_t index)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 0; i < AUTH_TOKEN_LETTERS; i++) {
        unsigned number = (unsigned)random[2 * i] << 8 | random[2 * i + 1];
        text[i] = letters[number % (sizeof(letters) - 1)];
    }
    int len = snprintf(text + AUTH_TOKEN_LETTERS, AUTH_TOKEN_TEXT_BYTES + 1 - AUTH_TOKEN_LETTERS,
                       ".%" PRIu64, index);
    return (uint8_t)(AUTH_TOKEN_LETTERS + len);
}

/* Frees more than one for each that is issued. */
static void expire_some(struct auth_tokens *tokens, int64_t now_ns)
{
    for (unsigned i = 0; i < EXPIRE_AT_ONCE; i++) {
        struct token *token = token_first(tokens);
        if (!token || token->ends_ns > now_ns)
            return;
        token_end(tokens, token);
    }
}

struct slice auth_tokens_assign(struct auth_tokens *tokens, struct slice user,
                                const uint8_t random[AUTH_TOKEN_RANDOM_BYTES], uint64_t index,
                                int64_t now_ns)
{
    expire_some(tokens, now_ns);
    if (auth_tokens_count(tokens) == AUTH_TOKENS_MAX) {
        /* A user that logs in again and again takes its own tokens away, not those of others. */
        struct holder *holder = hash_map_get(&tokens->holders, user);
        token_end(tokens, holder ? CONTAINER_OF(holder->tokens.next, struct token, in_holder)
                                 : token_first(tokens));
    }
    struct token *token = xcalloc(1, sizeof(*token));
    token->holder = holder_of(tokens, user);
    token->ends_ns = now_ns + tokens->ttl_ns;
    token->text_len = write_text(token->text, random, index);
    list_push_back(&tokens->order, &token->in_order);
    list_push_back(&token->holder->tokens, &token->in_holder);

    void *same = NULL;
    enum status status = hash_map_put(&tokens->by_text, token, &same);
    xalloc_check(status == ST_OK ? token : NULL, sizeof(*token));
    if (same) { /* the same random bytes again: the source is broken; the token must not belong to
                   two users */
        token_free(tokens, same);
    }
    return token_key(token);
}

enum status auth_tokens_use(struct auth_tokens *tokens, struct slice text, int64_t now_ns,
                            struct slice *ret_user)
{
    struct token *token = hash_map_get(&tokens->by_text, text);
    if (!token || token->ends_ns <= now_ns)
        return ST_INVALID_AUTH_TOKEN;
    token->ends_ns = now_ns + tokens->ttl_ns;
    list_remove(&token->in_order);
    list_push_back(&tokens->order, &token->in_order);
    list_remove(&token->in_holder);
    list_push_back(&token->holder->tokens, &token->in_holder);
    *ret_user = holder_key(token->holder);
    return ST_OK;
}

void auth_tokens_end_user(struct auth_tokens *tokens, struct slice user)
{
    struct holder *holder = hash_map_get(&tokens->holders, user);
    if (!holder)
        return;
    /* The holder is freed with its last token. */
    for (struct list *link = holder->tokens.next, *next; link; link = next) {
        next = link->next == &holder->tokens ? NULL : link->next;
        token_end(tokens, CONTAINER_OF(link, struct token, in_holder));
    }
}

void auth_tokens_end_all(struct auth_tokens *tokens)
{
    while (!list_empty(&tokens->order))
        token_end(tokens, token_first(tokens));
}

void auth_tokens_check(const struct auth_tokens *tokens)
{
    size_t count = 0, held = 0;
    int64_t before = INT64_MIN;
    for (struct list *link = tokens->order.next; link != &tokens->order; link = link->next) {
        struct token *token = CONTAINER_OF(link, struct token, in_order);
        assert(hash_map_get(&tokens->by_text, token_key(token)) == token);
        assert(token->ends_ns >= before);
        before = token->ends_ns;
        count++;
    }
    assert(count == tokens->by_text.count);
    const struct holder *holder;
    MAP_FOREACH (holder, &tokens->holders) {
        assert(!list_empty(&holder->tokens));
        before = INT64_MIN;
        for (struct list *link = holder->tokens.next; link != &holder->tokens; link = link->next) {
            const struct token *token = CONTAINER_OF(link, struct token, in_holder);
            assert(token->holder == holder && token->ends_ns >= before);
            before = token->ends_ns;
            held++;
        }
    }
    assert(held == count);
}
