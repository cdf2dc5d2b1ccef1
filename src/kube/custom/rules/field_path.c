#include "kube/custom/rules/field_path.h"

#include <stdio.h>

struct path_reader {
    struct slice rest;
    rule_descend_fn *descend;
    void *ctx;
    char *why;
};

static enum status refuse(struct path_reader *r, const char *what, struct slice token)
{
    snprintf(r->why, RULE_PATH_WHY_BYTES, "%s%.*s", what, (int)size_min(token.len, 128),
             token.len ? (const char *)token.ptr : "");
    return ST_INVALID;
}

static enum status descend(struct path_reader *r, struct slice name)
{
    enum status status = r->descend(r->ctx, name);
    return status == ST_INVALID ? refuse(r, "does not refer to a valid field", SLICE_EMPTY)
                                : status;
}

/* The end of a text in quotes at the beginning of `rest`; 0: it does not end. */
static size_t quoted_len(struct slice rest)
{
    for (size_t i = 1; i < rest.len; i++)
        if (rest.ptr[i] == '\'' && rest.ptr[i - 1] != '\\')
            return i + 1;
    return 0;
}

/* A dot, a bracket, or what is between them. False at the end. */
static bool next_token(struct path_reader *r, struct slice *ret_token)
{
    size_t len = 0;
    if (!r->rest.len)
        return false;
    if (r->rest.ptr[0] == '\'')
        len = quoted_len(r->rest);
    else if (strchr(".[]", r->rest.ptr[0]))
        len = 1;
    else
        while (len < r->rest.len && !strchr(".[]", r->rest.ptr[len]))
            len++;
    if (!len)
        len = r->rest.len;
    *ret_token = slice_sub(r->rest, 0, len);
    r->rest = slice_sub(r->rest, len, r->rest.len - len);
    return true;
}

static enum status unescape(struct path_reader *r, struct slice quoted, struct buf *name)
{
    static const char from[] = "abfnrtv'\\", into[] = "\a\b\f\n\r\t\v'\\";
    for (size_t i = 0; i < quoted.len; i++) {
        uint8_t c = quoted.ptr[i];
        if (c == '\\' && i + 1 < quoted.len) {
            const char *found = quoted.ptr[i + 1] ? strchr(from, quoted.ptr[i + 1]) : NULL;
            if (!found)
                return refuse(r, "invalid string literal: invalid escape char ",
                              slice_sub(quoted, i, 2));
            c = (uint8_t)into[found - from];
            i++;
        }
        TRY(buf_append(name, slice_of(&c, 1)));
    }
    return ST_OK;
}

static enum status read_bracket(struct path_reader *r)
{
    AUTO(buf_fini) struct buf name = {0};
    struct slice token;
    if (!next_token(r, &token))
        return refuse(r, "unexpected end of JSON path", SLICE_EMPTY);
    if (token.len < 2 || token.ptr[0] != '\'' || token.ptr[token.len - 1] != '\'')
        return refuse(r, "expected single quoted string but got ", token);
    TRY(unescape(r, slice_sub(token, 1, token.len - 2), &name));
    TRY(descend(r, buf_slice(&name)));
    if (!next_token(r, &token))
        return refuse(r, "unexpected end of JSON path", SLICE_EMPTY);
    return slice_is(token, "]") ? ST_OK : refuse(r, "expected ] but got ", token);
}

/* NOLINTBEGIN(readability-non-const-parameter): the reader writes into `why`. */
enum status rule_path_walk(struct slice path, rule_descend_fn *descend_to, void *ctx,
                           char why[RULE_PATH_WHY_BYTES])
{
    struct path_reader r = {.rest = path, .descend = descend_to, .ctx = ctx, .why = why};
    struct slice token;
    while (next_token(&r, &token)) {
        if (slice_is(token, "[")) {
            TRY(read_bracket(&r));
        } else if (!slice_is(token, ".")) {
            return refuse(&r, "expected [ or . but got: ", token);
        } else if (!next_token(&r, &token)) {
            return refuse(&r, "unexpected end of JSON path", SLICE_EMPTY);
        } else {
            TRY(descend(&r, token));
        }
    }
    return ST_OK;
}
/* NOLINTEND(readability-non-const-parameter) */

/* -- The path as it is shown -- */

struct shown_path {
    const struct schema *schema;
    struct buf *to;
};

/* Goes down to a field or an entry. */
static enum status show(void *ctx, struct slice name)
{
    struct shown_path *path = ctx;
    if (path->schema->property_count) {
        path->schema = schema_property(path->schema, name);
        TRY(buf_append_format(path->to, "%s%.*s", path->to->len ? "." : "", SLICE_ARGS(name)));
    } else {
        path->schema = path->schema->additional_given ? path->schema->additional : NULL;
        TRY(buf_append_format(path->to, "[%.*s]", SLICE_ARGS(name)));
    }
    return path->schema ? ST_OK : ST_INVALID;
}

enum status rule_field_path(const struct schema *schema, struct slice path, struct buf *to,
                            char why[RULE_PATH_WHY_BYTES])
{
    struct shown_path shown = {.schema = schema, .to = to};
    return rule_path_walk(path, show, &shown, why);
}
