#include "client/v2/v2_response.h"

#include "codec/json/number.h"
#include "codec/json/string.h"

/* -- Values; the scanner has just returned their first token -- */

/* A text; any other value is ignored. ST_MALFORMED: it is not UTF-8. */
static enum status read_text(struct json_scanner *s, enum json_token token, struct arena *arena,
                             struct slice *ret_text)
{
    uint8_t *room = NULL;
    if (token != JSON_STRING)
        return json_skip(s, token) ? ST_OK : ST_MALFORMED;
    if (s->escaped && !(room = arena_alloc(arena, s->raw.len)))
        return ST_NOMEM;
    return json_string_get(s, room, ret_text) == JSON_STRING_FINE ? ST_OK : ST_MALFORMED;
}

static enum status read_number(struct json_scanner *s, enum json_token token, int64_t *ret_number)
{
    if (token != JSON_NUMBER)
        return json_skip(s, token) ? ST_OK : ST_MALFORMED;
    return json_number_i64(s->raw, ret_number) && *ret_number >= 0 ? ST_OK : ST_MALFORMED;
}

/* -- Nodes -- */

/* A node with a text that cannot be read is still a node. */
static enum status read_node_text(struct json_scanner *s, enum json_token token,
                                  struct arena *arena, struct v2_node *node, struct slice *ret_text)
{
    enum status status = read_text(s, token, arena, ret_text);
    if (status != ST_MALFORMED || s->fault != JSON_FINE)
        return status;
    node->bad_text = true;
    return ST_OK;
}

enum node_member {
    MEMBER_OTHER,
    MEMBER_KEY,
    MEMBER_VALUE,
    MEMBER_DIR,
    MEMBER_NODES,
    MEMBER_MODIFIED,
    MEMBER_CREATED,
};

static enum node_member member_of(const struct json_scanner *s)
{
    static const struct {
        struct slice name;
        enum node_member member;
    } names[] = {
        {{(const uint8_t *)"key", 3}, MEMBER_KEY},
        {{(const uint8_t *)"value", 5}, MEMBER_VALUE},
        {{(const uint8_t *)"dir", 3}, MEMBER_DIR},
        {{(const uint8_t *)"nodes", 5}, MEMBER_NODES},
        {{(const uint8_t *)"modifiedIndex", 13}, MEMBER_MODIFIED},
        {{(const uint8_t *)"createdIndex", 12}, MEMBER_CREATED},
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (json_token_is(s, names[i].name))
            return names[i].member;
    }
    return MEMBER_OTHER;
}

static enum status read_member(struct json_scanner *s, enum node_member member,
                               enum json_token token, struct arena *arena, struct v2_node *node)
{
    switch (member) {
    case MEMBER_KEY:
        return read_node_text(s, token, arena, node, &node->key);
    case MEMBER_VALUE:
        return read_node_text(s, token, arena, node, &node->value);
    case MEMBER_MODIFIED:
        return read_number(s, token, &node->modified);
    case MEMBER_CREATED:
        return read_number(s, token, &node->created);
    case MEMBER_DIR:
        node->dir = token == JSON_TRUE;
        break;
    default:
        break;
    }
    return json_skip(s, token) ? ST_OK : ST_MALFORMED;
}

/* One node without the nodes below it; null means that there is no node. */
static enum status read_node(struct json_scanner *s, struct arena *arena, struct v2_node *node)
{
    enum json_token token = json_next(s);
    *node = (struct v2_node){.present = token == JSON_OBJECT};
    if (token == JSON_NULL)
        return ST_OK;
    if (token != JSON_OBJECT)
        return ST_MALFORMED;
    while ((token = json_next(s)) == JSON_KEY) {
        enum node_member member = member_of(s);
        TRY(read_member(s, member, json_next(s), arena, node));
    }
    return token == JSON_OBJECT_END ? ST_OK : ST_MALFORMED;
}

/* -- Events -- */

static enum v2_action action_of(struct slice name)
{
    static const char *const names[] = {
        [V2_ACTION_UNKNOWN] = "",
        [V2_ACTION_GET] = "get",
        [V2_ACTION_CREATE] = "create",
        [V2_ACTION_SET] = "set",
        [V2_ACTION_UPDATE] = "update",
        [V2_ACTION_COMPARE_AND_SWAP] = "compareAndSwap",
        [V2_ACTION_DELETE] = "delete",
        [V2_ACTION_EXPIRE] = "expire",
        [V2_ACTION_COMPARE_AND_DELETE] = "compareAndDelete",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (slice_equal(name, slice_from_text(names[i])))
            return (enum v2_action)i;
    }
    return V2_ACTION_UNKNOWN;
}

static enum status read_event_member(struct json_scanner *s, struct arena *arena,
                                     struct v2_event *event)
{
    if (json_token_is(s, SLICE_LITERAL("node")))
        return read_node(s, arena, &event->node);
    if (json_token_is(s, SLICE_LITERAL("prevNode")))
        return read_node(s, arena, &event->prev);
    struct slice action = SLICE_EMPTY;
    bool is_action = json_token_is(s, SLICE_LITERAL("action"));
    enum json_token token = json_next(s);
    if (!is_action)
        return json_skip(s, token) ? ST_OK : ST_MALFORMED;
    TRY(read_text(s, token, arena, &action));
    event->action = action_of(action);
    return ST_OK;
}

enum status v2_event_read(struct slice body, struct arena *arena, struct v2_event *ret_event)
{
    struct json_scanner s;
    enum json_token token;
    *ret_event = (struct v2_event){0};
    json_scanner_init(&s, body);
    if (json_next(&s) != JSON_OBJECT)
        return ST_MALFORMED;
    while ((token = json_next(&s)) == JSON_KEY)
        TRY(read_event_member(&s, arena, ret_event));
    return token == JSON_OBJECT_END && json_next(&s) == JSON_END ? ST_OK : ST_MALFORMED;
}

/* -- Trees -- */

void v2_tree_begin(struct v2_tree_reader *r, struct slice body)
{
    json_scanner_init(&r->scanner, body);
    r->node = (struct v2_node){0};
}

/* A key of the response itself: the tree is below one of them. */
static enum status enter_tree(struct v2_tree_reader *r)
{
    bool is_tree = json_token_is(&r->scanner, SLICE_LITERAL("node"));
    enum json_token token = json_next(&r->scanner);
    if (!is_tree || token != JSON_OBJECT)
        return json_skip(&r->scanner, token) ? ST_OK : ST_MALFORMED;
    r->node = (struct v2_node){.present = true};
    return ST_OK;
}

/* A key of a node. What a directory has besides its nodes is skipped, also behind them. */
static enum status read_tree_member(struct v2_tree_reader *r, struct arena *arena)
{
    struct json_scanner *s = &r->scanner;
    enum node_member member = member_of(s);
    enum json_token token = json_next(s);
    if (member == MEMBER_NODES && token == JSON_ARRAY) {
        r->node.present = false;
        return ST_OK;
    }
    if (!r->node.present)
        return json_skip(s, token) ? ST_OK : ST_MALFORMED;
    return read_member(s, member, token, arena, &r->node);
}

/* The end of a node. True: it is one to be returned. */
static bool leave_node(struct v2_tree_reader *r, struct v2_node *ret_node)
{
    bool is_leaf = r->node.present && !r->node.dir;
    if (is_leaf)
        *ret_node = r->node;
    r->node.present = false;
    return is_leaf;
}

enum status v2_tree_next(struct v2_tree_reader *r, struct arena *arena, struct v2_node *ret_node)
{
    struct json_scanner *s = &r->scanner;
    for (;;) {
        enum json_token token = json_next(s);
        switch (token) {
        case JSON_OBJECT: /* the response, or a node of a directory */
            r->node = (struct v2_node){.present = s->depth > 1};
            break;
        case JSON_KEY:
            TRY(s->depth == 1 ? enter_tree(r) : read_tree_member(r, arena));
            break;
        case JSON_OBJECT_END:
            if (leave_node(r, ret_node))
                return ST_OK;
            break;
        case JSON_ARRAY_END:
            break;
        case JSON_END:
            return ST_END;
        default:
            return ST_MALFORMED;
        }
    }
}

/* -- Errors -- */

static enum status read_error_member(struct json_scanner *s, struct arena *arena,
                                     struct v2_error *error)
{
    bool is_code = json_token_is(s, SLICE_LITERAL("errorCode"));
    bool is_index = json_token_is(s, SLICE_LITERAL("index"));
    bool is_message = json_token_is(s, SLICE_LITERAL("message"));
    bool is_cause = json_token_is(s, SLICE_LITERAL("cause"));
    enum json_token token = json_next(s);
    if (is_code || is_index)
        return read_number(s, token, is_code ? &error->code : &error->index);
    if (is_message || is_cause)
        return read_text(s, token, arena, is_message ? &error->message : &error->cause);
    return json_skip(s, token) ? ST_OK : ST_MALFORMED;
}

enum status v2_error_read(struct slice body, struct arena *arena, struct v2_error *ret_error)
{
    struct json_scanner s;
    enum json_token token;
    *ret_error = (struct v2_error){0};
    json_scanner_init(&s, body);
    if (json_next(&s) != JSON_OBJECT)
        return ST_MALFORMED;
    while ((token = json_next(&s)) == JSON_KEY)
        TRY(read_error_member(&s, arena, ret_error));
    return token == JSON_OBJECT_END ? ST_OK : ST_MALFORMED;
}
