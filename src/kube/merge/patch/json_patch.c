/* JSON Patch (RFC 6902) on trees. Errors are those of the Go library evanphx/json-patch. */
#include "kube/merge/patch/patch.h"

#include "codec/json/spans.h"

enum { TOKEN_BYTES_MAX = 4096 };

struct patching {
    struct arena *arena;
    struct json_node *root;
    struct error *error;
};

/* The target of a path: the object or array, and the last step. */
struct patch_position {
    struct json_node *parent; /* NULL: the root itself */
    struct slice key;
    size_t index;           /* index of the node, if the parent is an array */
    struct json_node *node; /* the existing value, or NULL */
    struct slice path;      /* for error messages */
};

/* Copies the next step of a path without its escapes into room. False: it is too long. */
static bool path_step(struct slice *path, uint8_t room[TOKEN_BYTES_MAX], struct slice *ret_step)
{
    size_t at = 1, len = 0; /* after the slash */
    for (; at < path->len && path->ptr[at] != '/'; at++) {
        uint8_t c = path->ptr[at];
        if (c == '~' && at + 1 < path->len &&
            (path->ptr[at + 1] == '0' || path->ptr[at + 1] == '1'))
            c = path->ptr[++at] == '0' ? '~' : '/';
        if (len == TOKEN_BYTES_MAX)
            return false;
        room[len++] = c;
    }
    *path = slice_sub(*path, at, path->len - at);
    *ret_step = slice_of(room, len);
    return true;
}

/* An index as Go reads numbers: with a sign and leading zeros, which RFC 6901 does not allow. Those
 * below 0 are counted from the end. */
static bool read_index(struct slice step, size_t end, size_t *ret_index)
{
    bool negative = step.len && step.ptr[0] == '-';
    bool sign = negative || (step.len && step.ptr[0] == '+');
    int64_t index = 0;
    if (step.len == sign)
        return false;
    for (size_t i = sign; i < step.len; i++) {
        unsigned digit = (unsigned)step.ptr[i] - '0';
        if (digit > 9 || index > (INT64_MAX - 9) / 10)
            return false;
        index = index * 10 + (int64_t)digit;
    }
    index = negative ? -index : index;
    if (index < 0)
        index += (int64_t)end;
    *ret_index = index < 0 ? SIZE_MAX : (size_t)index;
    return true;
}

/* Why Go does not read the step as a number. */
static const char *why_no_index(struct slice step)
{
    bool sign = step.len && (step.ptr[0] == '-' || step.ptr[0] == '+');
    size_t digits = sign;
    while (digits < step.len && step.ptr[digits] >= '0' && step.ptr[digits] <= '9')
        digits++;
    return digits > sign && digits == step.len ? "value out of range" : "invalid syntax";
}

/* Moves one step down, to a node that may not exist. */
static enum status step_down(struct arena *arena, struct patch_position *position,
                             struct slice step)
{
    struct json_node *parent = position->node;
    position->parent = parent;
    position->node = NULL;
    if (parent->type == JSON_TYPE_OBJECT)
        position->node = json_node_member(parent, step);
    else if (read_index(step, parent->count, &position->index))
        return json_spans_item(arena, parent, position->index, &position->node);
    return ST_OK;
}

/* What the library says if the parent of a path does not exist: each operation in its way. */
struct patch_role {
    const char *before, *after; /* the path */
};

#define DOES_NOT_APPLY(op) op " operation does not apply: "
static const struct patch_role role_add = {DOES_NOT_APPLY("add") "doc is missing path: \"", "\""};
static const struct patch_role role_remove = {DOES_NOT_APPLY("remove") "doc is missing path: \"",
                                              "\""};
static const struct patch_role role_replace = {DOES_NOT_APPLY("replace") "doc is missing path: ",
                                               ""};
static const struct patch_role role_move = {DOES_NOT_APPLY("move") "doc is missing from path: ",
                                            ""};
static const struct patch_role role_move_to = {
    DOES_NOT_APPLY("move") "doc is missing destination path: ", ""};
static const struct patch_role role_copy = {DOES_NOT_APPLY("copy") "doc is missing from path: ",
                                            ""};
static const struct patch_role role_copy_to = {
    DOES_NOT_APPLY("copy") "doc is missing destination path: ", ""};
static const struct patch_role role_test = {DOES_NOT_APPLY("test") "is missing path: ", ""};

static enum status missing(const struct patching *p, const struct patch_role *role,
                           struct slice path)
{
    return error_set(p->error, ST_INVALID, "%s%.*s%s: missing value", role->before,
                     SLICE_ARGS(path), role->after);
}

/* An index that an array does not have. The text begins with `before`. */
static enum status bad_index(const struct patching *p, const char *before, struct slice of,
                             const char *after, struct slice key)
{
    size_t ignored;
    if (read_index(key, 0, &ignored))
        return error_set(p->error, ST_INVALID,
                         "%s%.*s%sUnable to access invalid index: %.*s: invalid index referenced",
                         before, SLICE_ARGS(of), after, SLICE_ARGS(key));
    return error_set(p->error, ST_INVALID, "%s%.*s%sstrconv.Atoi: parsing \"%.*s\": %s", before,
                     SLICE_ARGS(of), after, SLICE_ARGS(key), why_no_index(key));
}

static enum status find(const struct patching *p, const struct patch_role *role, struct slice path,
                        struct patch_position *ret_position)
{
    uint8_t room[TOKEN_BYTES_MAX];
    struct slice rest = path, step;
    *ret_position = (struct patch_position){.node = p->root, .path = path};
    /* As in Kubernetes' library, what is before the first slash does not count. */
    const uint8_t *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (slash)
        rest = slice_sub(rest, (size_t)(slash - rest.ptr), rest.len - (size_t)(slash - rest.ptr));
    while (rest.len) {
        struct json_node *parent = ret_position->node;
        if (rest.ptr[0] != '/' || !parent || parent->type < JSON_TYPE_ARRAY)
            return missing(p, role, path);
        if (!path_step(&rest, room, &step))
            return error_set(p->error, ST_LIMIT,
                             "a step of a path in a JSON patch has at most %d bytes",
                             TOKEN_BYTES_MAX);
        TRY(step_down(p->arena, ret_position, step));
        if (!rest.len)
            TRY(arena_dup(p->arena, step, &ret_position->key));
    }
    return ST_OK;
}

/* -- The operations -- */

/* Translates the status of inserting a value into a tree. */
static enum status put_in(const struct patching *p, enum status status)
{
    if (status != ST_LIMIT)
        return status;
    return error_set(p->error, status, "a JSON patch nests values at most %d levels deep",
                     JSON_TREE_DEPTH_MAX);
}

/* before, of, after: what the error begins with. */
static enum status add_item(const struct patching *p, const struct patch_position *position,
                            struct json_node *value, const char *before, struct slice of,
                            const char *after)
{
    struct json_node *array = position->parent;
    size_t index = array->count;
    bool last = slice_is(position->key, "-");
    if (!last && !read_index(position->key, array->count + 1, &index))
        return error_set(p->error, ST_INVALID,
                         "%s%.*s%svalue was not a proper array index: '%.*s': strconv.Atoi: "
                         "parsing \"%.*s\": %s",
                         before, SLICE_ARGS(of), after, SLICE_ARGS(position->key),
                         SLICE_ARGS(position->key), why_no_index(position->key));
    if (index > array->count)
        return bad_index(p, before, of, after, position->key);
    return put_in(p, json_spans_insert(p->arena, array, index, value));
}

static enum status add_at(struct patching *p, const struct patch_role *role, struct slice path,
                          struct json_node *value)
{
    struct patch_position position;
    bool copies = role == &role_copy_to;
    if (!path.len)
        return missing(p, role, path);
    TRY(find(p, role, path, &position));
    if (position.parent->type != JSON_TYPE_ARRAY)
        return put_in(p, json_node_set(p->arena, position.parent, position.key, value));
    return add_item(p, &position, value,
                    copies              ? "error while adding value during copy: "
                    : role == &role_add ? "error in add for path: '"
                                        : "error in move for path: '",
                    copies ? SLICE_EMPTY : path, copies ? "" : "': ");
}

/* The error of a move names the last step alone. */
static enum status remove_at(struct patching *p, const struct patch_role *role, struct slice path,
                             struct json_node **ret_removed)
{
    struct patch_position position;
    bool moves = role == &role_move;
    const char *before = moves ? "error in move for path: '" : "error in remove for path: '";
    TRY(find(p, role, path, &position));
    if (!position.parent)
        return missing(p, role, path);
    struct slice of = moves ? position.key : path;
    bool is_array = position.parent->type == JSON_TYPE_ARRAY;
    if (!position.node && is_array)
        return bad_index(p, before, of, "': ", position.key);
    if (!position.node)
        return error_set(p->error, ST_INVALID,
                         "%s%.*s': Unable to remove nonexistent key: %.*s: missing value", before,
                         SLICE_ARGS(of), SLICE_ARGS(position.key));
    *ret_removed = position.node;
    if (is_array)
        return json_spans_remove(p->arena, position.parent, position.index);
    json_node_remove(position.parent, position.node);
    return ST_OK;
}

static bool is_absent_member(const struct patch_position *position)
{
    return !position->node && position->parent && position->parent->type == JSON_TYPE_OBJECT;
}

static enum status replace_at(struct patching *p, struct slice path, struct json_node *value)
{
    struct patch_position position;
    TRY(find(p, &role_replace, path, &position));
    /* As in Kubernetes' library, replacing a missing member adds it. */
    if (!position.node && !is_absent_member(&position))
        return error_set(p->error, ST_INVALID,
                         "replace operation does not apply: doc is missing key: %.*s: missing "
                         "value",
                         SLICE_ARGS(path));
    if (!position.parent && value->type < JSON_TYPE_ARRAY)
        return error_set(p->error, ST_INVALID,
                         "replace operation value must be object or array: %%!w(<nil>)");
    if (!position.parent) {
        p->root = value;
        return ST_OK;
    }
    if (position.parent->type == JSON_TYPE_OBJECT)
        return put_in(p, json_node_set(p->arena, position.parent, position.key, value));
    TRY(json_spans_remove(p->arena, position.parent, position.index));
    return put_in(p, json_spans_insert(p->arena, position.parent, position.index, value));
}

static enum status move(struct patching *p, struct slice from, struct slice path)
{
    struct json_node *value;
    if (slice_has_prefix(path, from) && path.len > from.len && path.ptr[from.len] == '/')
        return missing(p, &role_move_to, path);
    TRY(remove_at(p, &role_move, from, &value));
    return add_at(p, &role_move_to, path, value);
}

static enum status copy(struct patching *p, struct slice from, struct slice path)
{
    struct patch_position position;
    if (!from.len)
        return missing(p, &role_copy, from);
    TRY(find(p, &role_copy, from, &position));
    if (!position.node && !is_absent_member(&position))
        return bad_index(p, "error in copy for from: '", from, "': ", position.key);
    struct json_node *value = position.node ? json_node_copy(p->arena, position.node)
                                            : json_node_new(p->arena, JSON_TYPE_NULL);
    return value ? add_at(p, &role_copy_to, path, value) : ST_NOMEM;
}

static enum status test(const struct patching *p, struct slice path,
                        const struct json_node *expected)
{
    struct patch_position position;
    TRY(find(p, &role_test, path, &position));
    bool null = !expected || expected->type == JSON_TYPE_NULL;
    if (position.parent && position.parent->type == JSON_TYPE_ARRAY &&
        !read_index(position.key, position.parent->count, &position.index))
        return error_set(p->error, ST_INVALID,
                         "error in test for path: '%.*s': strconv.Atoi: parsing \"%.*s\": %s",
                         SLICE_ARGS(path), SLICE_ARGS(position.key), why_no_index(position.key));
    if (position.parent && position.parent->type == JSON_TYPE_ARRAY && !position.node)
        return error_set(p->error, ST_INVALID,
                         "error in test for path: '%.*s': Unable to access invalid index: %.*s: "
                         "invalid index referenced",
                         SLICE_ARGS(path), SLICE_ARGS(position.key));
    if (!position.node && null)
        return ST_OK;
    if (json_node_equal(position.node, expected))
        return ST_OK;
    return error_set(p->error, ST_INVALID, "testing value %.*s failed: test failed",
                     SLICE_ARGS(path));
}

static enum status run_operation(struct patching *p, const struct json_node *operation)
{
    struct slice op, path, from;
    TRY(json_node_text(json_node_named(operation, "op"), p->arena, &op));
    TRY(json_node_text(json_node_named(operation, "path"), p->arena, &path));
    TRY(json_node_text(json_node_named(operation, "from"), p->arena, &from));
    /* An operation without a value has the value null. */
    const struct json_node *given = json_node_named(operation, "value");
    struct json_node *value =
        given ? json_node_copy(p->arena, given) : json_node_new(p->arena, JSON_TYPE_NULL);
    if (!value)
        return ST_NOMEM;
    if (slice_is(op, "add"))
        return add_at(p, &role_add, path, value);
    if (slice_is(op, "remove"))
        return remove_at(p, &role_remove, path, &value);
    if (slice_is(op, "replace"))
        return replace_at(p, path, value);
    if (!json_node_named(operation, "from") && (slice_is(op, "move") || slice_is(op, "copy")))
        return error_set(p->error, ST_INVALID,
                         "%.*s operation failed to decode from: operation, missing from field: "
                         "missing value",
                         SLICE_ARGS(op));
    if (slice_is(op, "move"))
        return move(p, from, path);
    if (slice_is(op, "copy"))
        return copy(p, from, path);
    if (slice_is(op, "test"))
        return test(p, path, value);
    return error_set(p->error, ST_INVALID, "Unexpected kind: %.*s", SLICE_ARGS(op));
}

enum status patch_json(struct arena *arena, struct json_node *object, const struct json_node *patch,
                       struct json_node **ret_object, struct error *error)
{
    struct patching p = {.arena = arena, .root = object, .error = error};
    if (patch->type != JSON_TYPE_ARRAY)
        return error_set(error, ST_MALFORMED, "a JSON patch is a list of operations");
    if (patch->count > PATCH_OPERATIONS_MAX)
        return error_set(error, ST_LIMIT,
                         "The allowed maximum operations in a JSON patch is %d, got %u",
                         PATCH_OPERATIONS_MAX, patch->count);
    for (const struct json_node *operation = patch->first; operation; operation = operation->next) {
        if (operation->type != JSON_TYPE_OBJECT)
            return error_set(error, ST_MALFORMED, "an operation of a JSON patch is an object");
        TRY(run_operation(&p, operation));
    }
    *ret_object = p.root;
    return ST_OK;
}
