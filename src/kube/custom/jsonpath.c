#include "kube/custom/jsonpath.h"

enum step_kind { STEP_MEMBER, STEP_ITEM, STEP_ALL, STEP_FILTER };

struct jsonpath_step {
    enum step_kind kind;
    struct slice key;   /* key of a member */
    int64_t index;      /* index of an item; negative: counted from the end */
    size_t from, count; /* for a filter: the steps to the compared value */
    struct slice value; /* for a filter: the value to compare with */
    bool is_text, differs;
};

struct jsonpath {
    struct jsonpath_step steps[JSONPATH_STEPS_MAX];
    size_t count;
    struct jsonpath_step inner[JSONPATH_STEPS_MAX]; /* steps of its filters */
    size_t inner_count;
};

struct jsonpath_parser {
    struct arena *arena;
    struct slice rest;
};

static bool is_next(const struct jsonpath_parser *p, const char *text)
{
    return slice_has_prefix(p->rest, slice_from_text(text));
}

static void skip(struct jsonpath_parser *p, size_t n)
{
    p->rest = slice_sub(p->rest, n, p->rest.len - n);
}

static bool accept(struct jsonpath_parser *p, const char *text)
{
    if (!is_next(p, text))
        return false;
    skip(p, strlen(text));
    return true;
}

static void skip_blanks(struct jsonpath_parser *p)
{
    while (accept(p, " "))
        ;
}

/* Reads a name up to one of `ends`; a backslash escapes the next byte. */
static enum status take_name(struct jsonpath_parser *p, const char *ends, struct slice *ret_name)
{
    uint8_t *to = arena_alloc(p->arena, p->rest.len + 1);
    size_t len = 0;
    if (!to)
        return ST_NOMEM;
    while (p->rest.len && !strchr(ends, p->rest.ptr[0])) {
        /* The next byte is part of the name, whatever it is. */
        if (p->rest.ptr[0] == '\\' && p->rest.len > 1)
            skip(p, 1);
        to[len++] = p->rest.ptr[0];
        skip(p, 1);
    }
    *ret_name = slice_of(to, len);
    return len ? ST_OK : ST_INVALID;
}

static enum status take_quoted(struct jsonpath_parser *p, struct slice *ret_text)
{
    const char *quote = is_next(p, "'") ? "'" : "\"";
    if (!accept(p, quote))
        return ST_INVALID;
    enum status status = take_name(p, quote, ret_text);
    /* Between quotes a name may be empty. */
    if (status == ST_INVALID)
        *ret_text = SLICE_EMPTY;
    else
        TRY(status);
    return accept(p, quote) ? ST_OK : ST_INVALID;
}

static bool take_index(struct jsonpath_parser *p, int64_t *ret_index)
{
    bool negative = accept(p, "-");
    int64_t index = 0;
    size_t digits = 0;
    while (p->rest.len && p->rest.ptr[0] >= '0' && p->rest.ptr[0] <= '9' && digits < 9) {
        index = index * 10 + (p->rest.ptr[0] - '0');
        skip(p, 1);
        digits++;
    }
    *ret_index = negative ? -index : index;
    return digits > 0;
}

static enum status add_member(struct jsonpath_parser *p, struct jsonpath_step *steps, size_t *count)
{
    if (*count == JSONPATH_STEPS_MAX)
        return ST_LIMIT;
    struct jsonpath_step *step = &steps[(*count)++];
    *step = (struct jsonpath_step){.kind = STEP_MEMBER};
    return take_name(p, ".[]()=!<> ", &step->key);
}

/* ?(@.type=="Ready") */
static enum status parse_filter(struct jsonpath_parser *p, struct jsonpath *path,
                                struct jsonpath_step *step)
{
    step->kind = STEP_FILTER;
    step->from = path->inner_count;
    skip_blanks(p);
    if (!accept(p, "@"))
        return ST_INVALID;
    while (accept(p, "."))
        TRY(add_member(p, path->inner, &path->inner_count));
    step->count = path->inner_count - step->from;
    skip_blanks(p);
    step->differs = is_next(p, "!=");
    if (!accept(p, "==") && !accept(p, "!="))
        return ST_INVALID;
    skip_blanks(p);
    step->is_text = is_next(p, "'") || is_next(p, "\"");
    if (step->is_text)
        TRY(take_quoted(p, &step->value));
    else
        TRY(take_name(p, ") ", &step->value));
    skip_blanks(p);
    return accept(p, ")") ? ST_OK : ST_INVALID;
}

static enum status parse_bracket(struct jsonpath_parser *p, struct jsonpath *path)
{
    if (path->count == JSONPATH_STEPS_MAX)
        return ST_LIMIT;
    struct jsonpath_step *step = &path->steps[path->count++];
    *step = (struct jsonpath_step){0};
    if (accept(p, "*"))
        step->kind = STEP_ALL;
    else if (accept(p, "?("))
        TRY(parse_filter(p, path, step));
    else if (is_next(p, "'") || is_next(p, "\""))
        TRY(take_quoted(p, &step->key));
    else if (take_index(p, &step->index))
        step->kind = STEP_ITEM;
    else
        return ST_INVALID;
    return accept(p, "]") ? ST_OK : ST_INVALID;
}

enum status jsonpath_parse(struct arena *arena, struct slice text, const struct jsonpath **ret_path)
{
    struct jsonpath_parser p = {.arena = arena, .rest = text};
    if (text.len > JSONPATH_BYTES_MAX)
        return ST_LIMIT;
    struct jsonpath *path = arena_calloc(arena, 1, sizeof(*path));
    if (!path)
        return ST_NOMEM;
    /* The path of the root itself. */
    if (slice_equal(text, SLICE_LITERAL(".")))
        p.rest = SLICE_EMPTY;
    while (p.rest.len) {
        if (accept(&p, "["))
            TRY(parse_bracket(&p, path));
        else if (!accept(&p, ".") || is_next(&p, "."))
            return ST_INVALID;
        else if (!is_next(&p, "["))
            TRY(add_member(&p, path->steps, &path->count));
    }
    *ret_path = path;
    return ST_OK;
}

/* -- Finding -- */

static const struct json_node *find(const struct jsonpath *path, size_t at,
                                    const struct json_node *node);

static bool passes(const struct jsonpath *path, const struct jsonpath_step *filter,
                   const struct json_node *item)
{
    for (size_t i = 0; i < filter->count; i++)
        item = json_node_member(item, path->inner[filter->from + i].key);
    /* The item lacks the compared field, so that neither == nor != selects it. */
    if (!item)
        return false;
    bool equal = false;
    if (filter->is_text)
        equal = item->type == JSON_TYPE_STRING && slice_equal(item->text, filter->value);
    else if (item->type == JSON_TYPE_NUMBER)
        equal = slice_equal(item->text, filter->value);
    else if (item->type == JSON_TYPE_BOOL)
        equal = slice_equal(filter->value,
                            item->truth ? SLICE_LITERAL("true") : SLICE_LITERAL("false"));
    return equal != filter->differs;
}

static const struct json_node *find_among(const struct jsonpath *path, size_t at,
                                          const struct json_node *node,
                                          const struct jsonpath_step *step)
{
    bool many = node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT;
    for (const struct json_node *item = many ? node->first : NULL; item; item = item->next) {
        if (step->kind == STEP_FILTER && !passes(path, step, item))
            continue;
        const struct json_node *found = find(path, at + 1, item);
        if (found)
            return found;
    }
    return NULL;
}

static const struct json_node *find(const struct jsonpath *path, size_t at,
                                    const struct json_node *node)
{
    if (!node || at == path->count)
        return node;
    const struct jsonpath_step *step = &path->steps[at];
    switch (step->kind) {
    case STEP_MEMBER:
        return find(path, at + 1, json_node_member(node, step->key));
    case STEP_ITEM: {
        bool fits = node->type == JSON_TYPE_ARRAY &&
                    (step->index >= 0 || node->count >= (size_t)-step->index);
        size_t index = step->index >= 0 ? (size_t)step->index
                                        : (fits ? node->count - (size_t)-step->index : 0);
        return fits ? find(path, at + 1, json_node_item(node, index)) : NULL;
    }
    default:
        return find_among(path, at, node, step);
    }
}

const struct json_node *jsonpath_find(const struct jsonpath *path, const struct json_node *root)
{
    return find(path, 0, root);
}
