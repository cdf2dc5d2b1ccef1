#include "kube/request/tokens.h"

#include "base/xalloc.h"
#include "io/whole_file.h"

struct kube_tokens {
    uint8_t *text; /* owned; users refer to it */
    struct kube_user *users;
    size_t count;
};

void kube_tokens_free(struct kube_tokens *tokens)
{
    if (!tokens)
        return;
    free(tokens->text);
    free(tokens->users);
    free(tokens);
}

/* The next field of a line: up to a comma, or between quotes. False: the closing quote is missing.
 */
static bool next_field(struct slice *rest, struct slice *ret_field)
{
    bool quoted = rest->len && rest->ptr[0] == '"';
    struct slice from = quoted ? slice_sub(*rest, 1, rest->len - 1) : *rest;
    const uint8_t *end = from.len ? memchr(from.ptr, quoted ? '"' : ',', from.len) : NULL;
    if (quoted && !end)
        return false;
    size_t len = end ? (size_t)(end - from.ptr) : from.len;
    *ret_field = slice_sub(from, 0, len);
    size_t skip = (quoted ? 2 : 0) + len;
    if (skip < rest->len && rest->ptr[skip] == ',')
        skip++;
    else if (skip < rest->len)
        return false;
    *rest = slice_sub(*rest, skip, rest->len - skip);
    return true;
}

static struct slice next_line(struct slice *rest)
{
    const uint8_t *end = memchr(rest->ptr, '\n', rest->len);
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    struct slice line = slice_sub(*rest, 0, len);
    size_t skip = end ? len + 1 : len;
    *rest = slice_sub(*rest, skip, rest->len - skip);
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

enum status kube_tokens_parse(const char *name, struct slice text, struct kube_tokens **ret_tokens,
                              struct error *error)
{
    AUTO(kube_tokens_freep) struct kube_tokens *tokens = xcalloc(1, sizeof(*tokens));
    tokens->text = xmalloc(text.len + 1);
    slice_copy(tokens->text, text);
    struct slice rest = slice_of(tokens->text, text.len);
    for (size_t at = 1; rest.len; at++) {
        struct slice line = next_line(&rest);
        if (!line.len || line.ptr[0] == '#')
            continue;
        if (tokens->count == KUBE_TOKENS_MAX)
            return error_set(error, ST_LIMIT, "%.300s: more than %d tokens", name, KUBE_TOKENS_MAX);
        tokens->users = xrealloc(tokens->users, (tokens->count + 1) * sizeof(*tokens->users));
        struct kube_user *user = &tokens->users[tokens->count++];
        if (!(next_field(&line, &user->token) && next_field(&line, &user->name) &&
              next_field(&line, &user->uid) && next_field(&line, &user->groups) &&
              user->token.len && user->name.len && !line.len))
            return error_set(error, ST_INVALID,
                             "%.300s: line %zu is not: token,user,uid,\"group1,group2\"", name, at);
    }
    if (!tokens->count)
        return error_set(error, ST_INVALID, "%.300s: there is no token in it", name);
    *ret_tokens = TAKE(tokens);
    return ST_OK;
}

enum status kube_tokens_read(const char *path, struct kube_tokens **ret_tokens, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(whole_file_read(path, WHOLE_FILE_ANY, KUBE_TOKENS_BYTES_MAX, &text, error));
    return kube_tokens_parse(path, buf_slice(&text), ret_tokens, error);
}

/* Compares every byte, so that the time reveals nothing. */
static bool same(struct slice a, struct slice b)
{
    unsigned different = a.len != b.len;
    for (size_t i = 0; i < a.len; i++)
        different |= (unsigned)(a.ptr[i] ^ (b.len ? b.ptr[i % b.len] : 0xff));
    return !different;
}

const struct kube_user *kube_tokens_find(const struct kube_tokens *tokens, struct slice field)
{
    const struct kube_user *found = NULL;
    struct slice word = SLICE_LITERAL("Bearer ");
    if (field.len <= word.len || strncasecmp((const char *)field.ptr, "Bearer ", word.len) != 0)
        return NULL;
    struct slice token = slice_sub(field, word.len, field.len - word.len);
    for (size_t i = 0; i < tokens->count; i++) {
        if (same(tokens->users[i].token, token) && !found)
            found = &tokens->users[i];
    }
    return found;
}

const struct kube_user *kube_tokens_first(const struct kube_tokens *tokens)
{
    return &tokens->users[0]; /* a file without users is not accepted */
}
