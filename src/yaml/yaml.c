#include "yaml/yaml.h"

#include "codec/json/field_fault.h"
#include "yaml/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

struct anchor {
    struct slice name;
    struct json_node *node;
};

struct yaml_level {
    struct json_node *node; /* the array or object under construction */
    bool flow;              /* written in brackets */
    struct slice key;       /* key of the next value */
    bool has_key;
    bool key_is_text; /* as opposed to a number or a boolean */
    bool merges;      /* the key is "<<" */
    size_t line;      /* where it begins */
};

struct yaml_reader {
    struct arena *arena;
    struct error *error;
    yaml_parser_t parser;
    yaml_event_t event;
    struct yaml_level levels[JSON_TREE_DEPTH_MAX];
    size_t depth;
    struct anchor anchors[YAML_ANCHORS_MAX];
    size_t anchor_count, alias_count;
    size_t flow_depth, flow_steps;
    struct json_node *root;
    struct buf *repeats; /* NULL: they are not listed */
};

static enum status malformed(struct yaml_reader *r, const char *what)
{
    return error_set(r->error, ST_MALFORMED, "yaml: line %zu: %s", r->event.start_mark.line + 1,
                     what);
}

/* -- Scalars -- */

static enum status new_number(struct yaml_reader *r, const char *text, struct json_node **ret_node)
{
    struct json_node *node = json_node_new(r->arena, JSON_TYPE_NUMBER);
    if (!node)
        return ST_NOMEM;
    *ret_node = node;
    return arena_dup(r->arena, slice_from_text(text), &node->text);
}

static enum status new_float(struct yaml_reader *r, double value, struct json_node **ret_node)
{
    char text[YAML_NUMBER_BYTES];
    if (!isfinite(value))
        return error_set(r->error, ST_MALFORMED, "json: unsupported value: %s",
                         isnan(value) ? "NaN"
                         : value > 0  ? "+Inf"
                                      : "-Inf");
    yaml_float_text(value, text);
    return new_number(r, text, ret_node);
}

static enum status resolve(struct yaml_reader *r, struct slice text, struct json_node **ret_node)
{
    struct yaml_scalar scalar = yaml_scalar_of(text);
    char digits[YAML_NUMBER_BYTES];
    switch (scalar.kind) {
    case YAML_SCALAR_NULL:
        *ret_node = json_node_new(r->arena, JSON_TYPE_NULL);
        break;
    case YAML_SCALAR_BOOL:
        *ret_node = json_node_new(r->arena, JSON_TYPE_BOOL);
        if (*ret_node)
            (*ret_node)->truth = scalar.truth;
        break;
    case YAML_SCALAR_INT:
        *ret_node = json_node_new_int(r->arena, scalar.i);
        break;
    case YAML_SCALAR_UINT:
        snprintf(digits, sizeof(digits), "%" PRIu64, scalar.u);
        return new_number(r, digits, ret_node);
    case YAML_SCALAR_FLOAT:
        return new_float(r, scalar.f, ret_node);
    case YAML_SCALAR_TEXT:
        *ret_node = json_node_new_text(r->arena, text);
        break;
    }
    return *ret_node ? ST_OK : ST_NOMEM;
}

/* The text that a plain key becomes. */
static enum status resolve_key(struct yaml_reader *r, struct slice text, struct slice *ret_key)
{
    struct yaml_scalar scalar = yaml_scalar_of(text);
    char made[YAML_NUMBER_BYTES];
    switch (scalar.kind) {
    case YAML_SCALAR_NULL:
        return malformed(r, "unsupported map key of type: nil");
    case YAML_SCALAR_UINT:
        return malformed(r, "unsupported map key of type: uint64");
    case YAML_SCALAR_BOOL:
        text = scalar.truth ? SLICE_LITERAL("true") : SLICE_LITERAL("false");
        break;
    case YAML_SCALAR_INT:
        snprintf(made, sizeof(made), "%" PRId64, scalar.i);
        text = slice_from_text(made);
        break;
    case YAML_SCALAR_FLOAT:
        yaml_float_key(scalar.f, made);
        text = slice_from_text(made);
        break;
    case YAML_SCALAR_TEXT:
        break;
    }
    return arena_dup(r->arena, text, ret_key);
}

static bool is_text(const yaml_event_t *event)
{
    const char *tag = (const char *)event->data.scalar.tag;
    if (tag)
        return strcmp(tag, "!") == 0 || strcmp(tag, YAML_STR_TAG) == 0;
    return event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

static struct slice event_text(const yaml_event_t *event)
{
    return slice_of(event->data.scalar.value, event->data.scalar.length);
}

/* -- Building -- */

static enum status note_repeat(struct yaml_reader *r, size_t line, struct slice key, bool is_text)
{
    if (!r->repeats || r->repeats->len + key.len > YAML_REPEATS_BYTES_MAX)
        return ST_OK;
    TRY(buf_append_format(r->repeats, "%sline %zu: key %s", r->repeats->len ? "\n" : "", line + 1,
                          is_text ? "\"" : ""));
    TRY(go_escape(key, r->repeats));
    return buf_append_format(r->repeats, "%s already set in map", is_text ? "\"" : "");
}

/* A key that is set again has its last value. */
static enum status set(struct yaml_reader *r, struct json_node *object, struct slice key,
                       struct json_node *value, size_t line, bool key_is_text)
{
    if (json_node_member(object, key))
        TRY(note_repeat(r, line, key, key_is_text));
    return json_node_set(r->arena, object, key, value);
}

static enum status merge(struct yaml_reader *r, struct json_node *to, const struct json_node *from,
                         size_t line)
{
    if (from->type != JSON_TYPE_OBJECT)
        return malformed(r, "map merge requires map or sequence of maps as the value");
    for (const struct json_node *member = from->first; member; member = member->next) {
        struct json_node *copy = json_node_copy(r->arena, member);
        if (!copy)
            return ST_NOMEM;
        TRY(set(r, to, member->key, copy, line, true));
    }
    return ST_OK;
}

/* The members of "<<" are set where it is, as if they were written there; of several maps the
 * first has precedence. */
static enum status merge_all(struct yaml_reader *r, struct json_node *to,
                             const struct json_node *from, size_t line)
{
    if (from->type != JSON_TYPE_ARRAY)
        return merge(r, to, from, line);
    for (const struct json_node *item = from->last; item; item = item->prev)
        TRY(merge(r, to, item, line));
    return ST_OK;
}

/* line: where the value begins. */
static enum status put(struct yaml_reader *r, struct json_node *node, size_t line)
{
    if (!node)
        return ST_NOMEM;
    if (!r->depth) {
        r->root = node;
        return ST_OK;
    }
    struct yaml_level *level = &r->levels[r->depth - 1];
    if (level->node->type == JSON_TYPE_ARRAY) {
        return json_node_insert(level->node, NULL, node);
    }
    level->has_key = false;
    return level->merges ? merge_all(r, level->node, node, line)
                         : set(r, level->node, level->key, node, line, level->key_is_text);
}

static enum status keep_anchor(struct yaml_reader *r, const yaml_char_t *name,
                               struct json_node *node)
{
    if (!name)
        return ST_OK;
    if (r->anchor_count == YAML_ANCHORS_MAX)
        return malformed(r, "document has too many anchors");
    struct anchor *anchor = &r->anchors[r->anchor_count++];
    anchor->node = node;
    return arena_dup(r->arena, slice_from_text((const char *)name), &anchor->name);
}

static bool wants_key(const struct yaml_reader *r)
{
    return r->depth && r->levels[r->depth - 1].node->type == JSON_TYPE_OBJECT &&
           !r->levels[r->depth - 1].has_key;
}

static enum status open_level(struct yaml_reader *r, enum json_type type, const yaml_char_t *anchor,
                              bool flow)
{
    if (wants_key(r))
        return malformed(r, "a key must be a scalar");
    struct json_node *node = json_node_new(r->arena, type);
    if (r->depth == JSON_TREE_DEPTH_MAX)
        return ST_LIMIT;
    if (!node)
        return ST_NOMEM;
    TRY(keep_anchor(r, anchor, node));
    r->levels[r->depth++] =
        (struct yaml_level){.node = node, .flow = flow, .line = r->event.start_mark.line};
    r->flow_depth += flow;
    return ST_OK;
}

/*
 * A node is added to its parent only when it is complete, so that depths are computed from the
 * leaves up.
 */
static enum status close_level(struct yaml_reader *r)
{
    struct json_node *node = r->levels[--r->depth].node;
    r->flow_depth -= r->levels[r->depth].flow;
    return put(r, node, r->levels[r->depth].line);
}

static enum status take_key(struct yaml_reader *r)
{
    struct yaml_level *level = &r->levels[r->depth - 1];
    struct slice text = event_text(&r->event);
    bool quoted = is_text(&r->event);
    level->has_key = true;
    level->merges = !quoted && slice_equal(text, SLICE_LITERAL("<<"));
    level->key_is_text = quoted || yaml_scalar_of(text).kind == YAML_SCALAR_TEXT;
    return quoted ? arena_dup(r->arena, text, &level->key) : resolve_key(r, text, &level->key);
}

static enum status take_scalar(struct yaml_reader *r)
{
    struct slice text = event_text(&r->event);
    struct json_node *node = NULL;
    if (wants_key(r))
        return take_key(r);
    if (is_text(&r->event))
        node = json_node_new_text(r->arena, text);
    else
        TRY(resolve(r, text, &node));
    TRY(put(r, node, r->event.start_mark.line));
    return keep_anchor(r, r->event.data.scalar.anchor, node);
}

static enum status take_alias(struct yaml_reader *r)
{
    struct slice name = slice_from_text((const char *)r->event.data.alias.anchor);
    if (wants_key(r))
        return malformed(r, "an alias cannot be a key here");
    if (++r->alias_count > YAML_ALIASES_MAX)
        return malformed(r, "document contains excessive aliasing");
    for (size_t i = r->anchor_count; i > 0; i--) {
        if (!slice_equal(r->anchors[i - 1].name, name))
            continue;
        for (size_t open = 0; open < r->depth; open++) {
            if (r->levels[open].node == r->anchors[i - 1].node)
                return malformed(r, "an anchor contains itself");
        }
        return put(r, json_node_copy(r->arena, r->anchors[i - 1].node), r->event.start_mark.line);
    }
    return malformed(r, "unknown anchor referenced");
}

static enum status take_event(struct yaml_reader *r)
{
    r->flow_steps += r->flow_depth;
    if (r->flow_steps > YAML_FLOW_STEPS_MAX)
        return ST_LIMIT;
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(r);
    case YAML_ALIAS_EVENT:
        return take_alias(r);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(r, JSON_TYPE_ARRAY, r->event.data.sequence_start.anchor,
                          r->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
    case YAML_MAPPING_START_EVENT:
        return open_level(r, JSON_TYPE_OBJECT, r->event.data.mapping_start.anchor,
                          r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_level(r);
    default:
        return ST_OK;
    }
}

/*
 * Reports libyaml's error. Lines are counted as in go-yaml, which omits the number of the first
 * line.
 */
static enum status parser_error(struct yaml_reader *r)
{
    const char *why = r->parser.problem ? r->parser.problem : "cannot be read";
    size_t line = r->parser.problem_mark.line;
    if (!line)
        return error_set(r->error, ST_MALFORMED, "yaml: %s", why);
    return error_set(r->error, ST_MALFORMED, "yaml: line %zu: %s",
                     line + (r->parser.error == YAML_SCANNER_ERROR ? 1 : 0), why);
}

static enum status read_document(struct yaml_reader *r)
{
    for (;;) {
        yaml_event_delete(&r->event);
        if (!yaml_parser_parse(&r->parser, &r->event)) {
            return parser_error(r);
        }
        if (r->event.type == YAML_DOCUMENT_END_EVENT || r->event.type == YAML_STREAM_END_EVENT)
            return ST_OK;
        TRY(take_event(r));
    }
}

/*
 * Whether a line begins at `at`: line breaks as libyaml defines them, recognized by their last
 * bytes.
 */
static bool begins_line(struct slice text, const uint8_t *at)
{
    static const uint8_t breaks[] = {'\n', '\r', 0x85, 0xa8, 0xa9};
    return at == text.ptr || memchr(breaks, at[-1], sizeof(breaks));
}

/* Counts %TAG directives before libyaml reads any of them. */
static enum status check_directives(struct slice text, struct error *error)
{
    static const char tag[] = "%TAG";
    size_t count = 0;
    for (struct slice rest = text; rest.len;) {
        const uint8_t *at = memmem(rest.ptr, rest.len, tag, sizeof(tag) - 1);
        if (!at)
            return ST_OK;
        rest = slice_sub(text, (size_t)(at - text.ptr) + 1, text.len - (size_t)(at - text.ptr) - 1);
        if (!begins_line(text, at))
            continue;
        if (++count > YAML_TAG_LINES_MAX)
            return error_set(error, ST_MALFORMED, "yaml: more than %d %%TAG directives",
                             YAML_TAG_LINES_MAX);
        size_t len = size_min(rest.len, YAML_TAG_LINE_BYTES_MAX);
        if (len == YAML_TAG_LINE_BYTES_MAX && !memchr(rest.ptr, '\n', len) &&
            !memchr(rest.ptr, '\r', len))
            return error_set(error, ST_MALFORMED, "yaml: a %%TAG directive longer than %d bytes",
                             YAML_TAG_LINE_BYTES_MAX);
    }
    return ST_OK;
}

enum status yaml_tree_read(struct arena *arena, struct slice text, struct json_node **ret_root,
                           struct error *error)
{
    return yaml_tree_read_strict(arena, text, ret_root, NULL, error);
}

enum status yaml_tree_read_strict(struct arena *arena, struct slice text,
                                  struct json_node **ret_root, struct buf *repeats,
                                  struct error *error)
{
    struct yaml_reader *r = arena_calloc(arena, 1, sizeof(*r));
    if (!r)
        return ST_NOMEM;
    if (slice_has_prefix(text, SLICE_LITERAL("\xef\xbb\xbf"))) /* a byte order mark */
        text = slice_sub(text, 3, text.len - 3);
    TRY(check_directives(text, error));
    r->arena = arena;
    r->error = error;
    r->repeats = repeats;
    if (!yaml_parser_initialize(&r->parser))
        return ST_NOMEM;
    /* libyaml asserts that the pointer is not NULL, even if the text is empty. */
    yaml_parser_set_input_string(&r->parser, text.len ? text.ptr : (const uint8_t *)"", text.len);
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    enum status status = read_document(r);
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    TRY(status);
    if (!r->root)
        r->root = json_node_new(arena, JSON_TYPE_NULL);
    *ret_root = r->root;
    return r->root ? ST_OK : ST_NOMEM;
}
