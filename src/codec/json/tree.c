#include "codec/json/tree.h"

#include "base/container/hash_map.h"
#include "base/random.h"
#include "codec/json/field_fault.h"
#include "codec/json/number.h"
#include "codec/json/string.h"
#include "codec/json/writer.h"

#include <stdio.h>
#include <stdlib.h>

enum { FEW_MEMBERS = 16 }; /* up to this many are searched one by one */

static bool is_parent(const struct json_node *node)
{
    return node && node->type >= JSON_TYPE_ARRAY;
}

static inline struct json_node *node_new(struct arena *arena, uint8_t type)
{
    struct json_node *node = arena_alloc(arena, sizeof(*node));
    if (node)
        *node = (struct json_node){.type = type, .height = type >= JSON_TYPE_ARRAY};
    return node;
}

/* -- The index of a large object -- */

struct json_index {
    struct hash_map hash; /* used for its secret hash function only */
    size_t capacity;      /* a power of two */
    size_t used;          /* slots that are not free, including those of removed members */
    const struct json_node **slots;
    struct arena *arena;
};

/* Marks the slot of a removed member. */
static const struct json_node left_behind;

static size_t slot_of(const struct json_index *index, struct slice key)
{
    size_t at = hash_map_hash(&index->hash, key) & (index->capacity - 1);
    while (index->slots[at] &&
           (index->slots[at] == &left_behind || !slice_equal(index->slots[at]->key, key)))
        at = (at + 1) & (index->capacity - 1);
    return at;
}

static void index_add(struct json_index *index, const struct json_node *member)
{
    index->slots[slot_of(index, member->key)] = member;
    index->used++;
}

/* NULL: no memory. */
static struct json_index *index_make(struct arena *arena, const struct json_node *object)
{
    struct json_index *index = arena_calloc(arena, 1, sizeof(*index));
    size_t capacity = 64;
    while (capacity / 4 < object->count)
        capacity *= 2;
    const struct json_node **slots = arena_calloc(arena, capacity, sizeof(*slots));
    if (!index || !slots)
        return NULL;
    *index = (struct json_index){.capacity = capacity, .slots = slots, .arena = arena};
    hash_map_init(&index->hash, NULL, random_seed_system());
    for (const struct json_node *member = object->first; member; member = member->next)
        index_add(index, member);
    return index;
}

/* -- Lists -- */

/* The parent or neighbour of a node that may be changed. */
static struct json_node *own(const struct json_node *node)
{
    return (struct json_node *)node;
}

/* Whether the tree of a parent stays within the depth limit with this node in it. */
static bool fits(const struct json_node *parent, const struct json_node *node)
{
    unsigned height = node->height;
    for (; parent && parent->height <= height && height <= JSON_TREE_DEPTH_MAX;
         parent = parent->parent)
        height++;
    return height <= JSON_TREE_DEPTH_MAX;
}

/* Makes a parent higher than the node in it; true: its height changed. */
static bool raise(struct json_node *parent, const struct json_node *node)
{
    if (parent->height > node->height)
        return false;
    parent->height = (uint16_t)(node->height + 1);
    return true;
}

static void raise_parents(const struct json_node *node)
{
    while (node->parent && raise(own(node->parent), node))
        node = node->parent;
}

/* The caller updates the heights. */
static void link_before(struct json_node *parent, const struct json_node *before,
                        struct json_node *node)
{
    const struct json_node *after = before ? before->prev : parent->last;
    node->parent = parent;
    node->next = before;
    node->prev = after;
    *(after ? &own(after)->next : &parent->first) = node;
    *(before ? &own(before)->prev : &parent->last) = node;
    parent->count++;
}

static void take_out(struct json_node *parent, struct json_node *node)
{
    *(node->prev ? &own(node->prev)->next : &parent->first) = node->next;
    *(node->next ? &own(node->next)->prev : &parent->last) = node->prev;
    node->parent = node->prev = node->next = NULL;
    parent->count--;
}

enum status json_node_insert(struct json_node *array, const struct json_node *before,
                             struct json_node *item)
{
    assert(array->type == JSON_TYPE_ARRAY);
    if (!fits(array, item))
        return ST_LIMIT;
    if (item->parent)
        json_node_remove(own(item->parent), item);
    array->spans = NULL;
    link_before(array, before, item);
    raise_parents(item);
    return ST_OK;
}

void json_node_remove(struct json_node *parent, struct json_node *child)
{
    assert(child->parent == parent);
    if (parent->type == JSON_TYPE_ARRAY)
        parent->spans = NULL;
    else if (parent->index)
        parent->index->slots[slot_of(parent->index, child->key)] = &left_behind;
    take_out(parent, child);
}

/* -- Looking -- */

static const struct json_node *look_through(const struct json_node *object, struct slice key)
{
    const struct json_node *member = object->first;
    while (member && !slice_equal(member->key, key))
        member = member->next;
    return member;
}

const struct json_node *json_look_member(const struct json_node *object, struct slice key)
{
    if (!object || object->type != JSON_TYPE_OBJECT)
        return NULL;
    if (!object->index)
        return look_through(object, key);
    return object->index->slots[slot_of(object->index, key)];
}

const struct json_node *json_look_path(const struct json_node *root, const char *path)
{
    while (root && path) {
        const char *dot = strchr(path, '.');
        size_t len = dot ? (size_t)(dot - path) : strlen(path);
        root = json_node_member(root, slice_of(path, len));
        path = dot ? dot + 1 : NULL;
    }
    return root;
}

const struct json_node *json_look_item(const struct json_node *array, size_t index)
{
    if (!array || array->type != JSON_TYPE_ARRAY || index >= array->count)
        return NULL;
    const struct json_node *item = array->first;
    while (index--)
        item = item->next;
    return item;
}

enum status json_node_text(const struct json_node *node, struct arena *arena,
                           struct slice *ret_text)
{
    *ret_text = SLICE_EMPTY;
    if (!node || node->type != JSON_TYPE_STRING)
        return ST_OK;
    *ret_text = node->text;
    if (!node->escaped)
        return ST_OK;
    /* Including the quotes, which surround it in the original text. */
    struct slice raw = slice_of(node->text.ptr - 1, node->text.len + 2);
    uint8_t *decoded = arena_alloc(arena, raw.len);
    size_t len = 0;
    if (!decoded)
        return ST_NOMEM;
    enum json_string_fault fault = json_string_decode(raw, decoded, &len);
    assert(fault == JSON_STRING_FINE); /* checked when it was read */
    (void)fault;
    *ret_text = slice_of(decoded, len);
    return ST_OK;
}

bool json_node_is_text(const struct json_node *node, const char *text)
{
    return node && node->type == JSON_TYPE_STRING && slice_equal(node->text, slice_from_text(text));
}

bool json_node_int(const struct json_node *node, int64_t *ret_value)
{
    return node && node->type == JSON_TYPE_NUMBER && json_number_i64(node->text, ret_value);
}

/* -- Reading -- */

struct tree_reader {
    struct arena *arena;
    struct json_scanner scanner;
    struct error *error;
    struct json_node *open[JSON_TREE_DEPTH_MAX];
    size_t depth;
    struct slice key; /* key of the next value */
    bool key_verbatim;
    struct json_node *root;
    struct buf *repeats; /* receives the names of repeated keys; NULL: none are collected */
    size_t repeat_count;
};

static enum status read_fault(struct tree_reader *reader)
{
    char text[JSON_FAULT_TEXT_BYTES];
    return error_set(reader->error, ST_MALFORMED, "%s", json_fault_text(&reader->scanner, text));
}

/* The token just returned as decoded text, which points into the input unless it has escapes. */
static enum status read_text(struct tree_reader *reader, struct slice *ret_text)
{
    struct json_scanner *s = &reader->scanner;
    if (LIKELY(!s->escaped && !s->beyond_ascii)) {
        *ret_text = slice_sub(s->raw, 1, s->raw.len - 2);
        return ST_OK;
    }
    uint8_t *room = s->escaped ? arena_alloc(reader->arena, s->raw.len) : NULL;
    if (s->escaped && !room)
        return ST_NOMEM;
    if (json_string_get(s, room, ret_text) != JSON_STRING_FINE)
        return error_set(reader->error, ST_MALFORMED, "a string is not valid UTF-8");
    return ST_OK;
}

/* Escapes with a letter or sign of their own are the only way to write their character. */
static bool has_other_escapes(struct slice inner)
{
    const uint8_t *at = inner.ptr, *end = inner.ptr + inner.len;
    while (at < end && (at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (at[1] == 'u' || at[1] == '/')
            return true;
        at += 2;
    }
    return false;
}

/* The string just returned. It keeps its escapes when these are the only way to write it, so that
 * equal texts have equal bytes; one with "\u0061" for "a" is decoded. */
static enum status read_string(struct tree_reader *reader, struct json_node *node)
{
    struct json_scanner *s = &reader->scanner;
    size_t len;
    node->text = slice_sub(s->raw, 1, s->raw.len - 2);
    node->escaped = s->escaped;
    node->verbatim = !s->escaped;
    if (!s->beyond_ascii && !s->escaped)
        return ST_OK;
    if (s->escaped && has_other_escapes(node->text)) {
        node->escaped = false;
        return read_text(reader, &node->text);
    }
    if (json_string_decode(s->raw, NULL, &len) != JSON_STRING_FINE)
        return error_set(reader->error, ST_MALFORMED, "a string is not valid UTF-8");
    return ST_OK;
}

static enum status tell_repeat(struct tree_reader *reader, struct slice key)
{
    AUTO(buf_fini) struct buf path = {0};
    if (!reader->repeats || reader->repeat_count++ >= JSON_REPEATS_MAX)
        return ST_OK;
    for (size_t i = 1; i < reader->depth; i++) {
        const struct json_node *parent = reader->open[i - 1];
        if (parent->type == JSON_TYPE_ARRAY)
            TRY(buf_append_format(&path, "[%u]", parent->count - 1));
        else
            TRY(buf_append_format(&path, "%s%.*s", i > 1 ? "." : "",
                                  SLICE_ARGS(reader->open[i]->key)));
    }
    TRY(buf_append_format(&path, "%s%.*s", reader->depth > 1 ? "." : "", SLICE_ARGS(key)));
    return field_fault_append(reader->repeats, "duplicate field", buf_slice(&path));
}

/* The last value of a repeated key is used, at the position of the first. */
static enum status add_member(struct arena *arena, struct json_node *object,
                              struct json_node *member, bool *ret_repeats)
{
    struct json_node *same = json_node_member(object, member->key);
    *ret_repeats = same;
    if (same) {
        const struct json_node *before = same->next;
        if (object->index)
            object->index->slots[slot_of(object->index, member->key)] = member;
        take_out(object, same);
        link_before(object, before, member);
        return ST_OK;
    }
    link_before(object, NULL, member);
    if (object->index && 2 * (object->index->used + 1) <= object->index->capacity) {
        index_add(object->index, member);
        return ST_OK;
    }
    object->index = NULL; /* it would lack this one if few of many members remained */
    if (object->count <= FEW_MEMBERS)
        return ST_OK;
    object->index = index_make(arena, object);
    return object->index ? ST_OK : ST_NOMEM;
}

static enum status add_value(struct tree_reader *reader, struct json_node *value)
{
    if (reader->depth == 0) {
        reader->root = value;
        return ST_OK;
    }
    struct json_node *parent = reader->open[reader->depth - 1];
    if (parent->type == JSON_TYPE_OBJECT) {
        bool repeats;
        value->key = reader->key;
        value->key_verbatim = reader->key_verbatim;
        TRY(add_member(reader->arena, parent, value, &repeats));
        return repeats ? tell_repeat(reader, value->key) : ST_OK;
    }
    link_before(parent, NULL, value);
    return ST_OK;
}

static enum status read_open(struct tree_reader *reader, struct json_node *node)
{
    if (reader->depth == JSON_TREE_DEPTH_MAX)
        return error_set(reader->error, ST_LIMIT, "nested deeper than %d levels",
                         JSON_TREE_DEPTH_MAX);
    reader->open[reader->depth++] = node;
    return ST_OK;
}

/* Heights are computed bottom-up, so that each is written once. */
static void close_one(struct tree_reader *reader)
{
    struct json_node *node = reader->open[--reader->depth];
    if (reader->depth)
        raise(reader->open[reader->depth - 1], node);
}

static enum status read_value(struct tree_reader *reader, enum json_token token)
{
    static const uint8_t types[] = {
        [JSON_OBJECT] = JSON_TYPE_OBJECT, [JSON_ARRAY] = JSON_TYPE_ARRAY,
        [JSON_STRING] = JSON_TYPE_STRING, [JSON_NUMBER] = JSON_TYPE_NUMBER,
        [JSON_TRUE] = JSON_TYPE_BOOL,     [JSON_FALSE] = JSON_TYPE_BOOL,
        [JSON_NULL] = JSON_TYPE_NULL,
    };
    struct json_node *node = node_new(reader->arena, types[token]);
    if (!node)
        return ST_NOMEM;
    struct slice raw = reader->scanner.raw;
    node->truth = token == JSON_TRUE;
    if (token == JSON_STRING) {
        TRY(read_string(reader, node));
    } else if (token == JSON_NUMBER) {
        /* A whole number, which has no sign if it is zero. */
        node->text = slice_equal(raw, SLICE_LITERAL("-0")) ? SLICE_LITERAL("0") : raw;
    }
    TRY(add_value(reader, node));
    return is_parent(node) ? read_open(reader, node) : ST_OK;
}

static enum status read_all(struct tree_reader *reader)
{
    for (;;) {
        enum json_token token = json_next(&reader->scanner);
        switch (token) {
        case JSON_END:
            return ST_OK;
        case JSON_FAULT:
            return read_fault(reader);
        case JSON_KEY:
            TRY(read_text(reader, &reader->key));
            reader->key_verbatim = !reader->scanner.escaped;
            break;
        case JSON_OBJECT_END:
        case JSON_ARRAY_END:
            close_one(reader);
            break;
        default:
            TRY(read_value(reader, token));
        }
    }
}

enum status json_tree_read(struct arena *arena, struct slice text, struct json_node **ret_root,
                           struct error *error)
{
    return json_tree_read_strict(arena, text, ret_root, NULL, error);
}

enum status json_tree_read_strict(struct arena *arena, struct slice text,
                                  struct json_node **ret_root, struct buf *repeats,
                                  struct error *error)
{
    struct tree_reader reader;
    /* Not initialized as a whole: the open levels and the scanner's nesting are written before they
     * are read. */
    reader.arena = arena;
    reader.error = error;
    reader.depth = reader.repeat_count = 0;
    reader.root = NULL;
    reader.repeats = repeats;
    json_scanner_init(&reader.scanner, text);
    enum status status = read_all(&reader);
    if (status == ST_NOMEM)
        return error_set(error, status, "too large to be taken apart");
    *ret_root = reader.root;
    return status;
}

/* -- Making -- */

struct json_node *json_node_new(struct arena *arena, enum json_type type)
{
    return node_new(arena, (uint8_t)type);
}

struct json_node *json_node_new_text(struct arena *arena, struct slice text)
{
    struct json_node *node = json_node_new(arena, JSON_TYPE_STRING);
    return node && arena_dup(arena, text, &node->text) == ST_OK ? node : NULL;
}

struct json_node *json_node_new_int(struct arena *arena, int64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)value);
    struct json_node *node = json_node_new_text(arena, slice_of(digits, (size_t)len));
    if (node)
        node->type = JSON_TYPE_NUMBER;
    return node;
}

struct json_node *json_node_new_raw(struct arena *arena, struct slice json)
{
    struct json_node *node = json_node_new_text(arena, json);
    if (node)
        node->type = JSON_TYPE_NUMBER;
    return node;
}

/* Without its links to others. */
static struct json_node *copy_one(struct arena *arena, const struct json_node *node)
{
    struct json_node *copy = node_new(arena, node->type);
    if (!copy)
        return NULL;
    copy->key = node->key;
    copy->flags = node->flags;
    if (!is_parent(node))
        copy->text = node->text;
    return copy;
}

/* Texts are shared, because they do not change. */
struct json_node *json_node_copy(struct arena *arena, const struct json_node *node)
{
    struct json_node *copy = copy_one(arena, node);
    if (!copy || !is_parent(node))
        return copy;
    for (const struct json_node *child = node->first; child; child = child->next) {
        struct json_node *child_copy = json_node_copy(arena, child);
        if (!child_copy)
            return NULL;
        link_before(copy, NULL, child_copy);
        raise(copy, child_copy);
    }
    if (copy->type == JSON_TYPE_OBJECT && copy->count > FEW_MEMBERS) {
        copy->index = index_make(arena, copy);
        if (!copy->index)
            return NULL;
    }
    return copy;
}

struct json_node *json_node_copy_members(struct arena *arena, const struct json_node *object)
{
    struct json_node *copy = copy_one(arena, object);
    assert(object->type == JSON_TYPE_OBJECT);
    for (const struct json_node *child = object->first; copy && child; child = child->next) {
        struct json_node *member = node_new(arena, child->type);
        if (!member)
            return NULL;
        *member = *child;
        link_before(copy, NULL, member);
        raise(copy, member);
    }
    if (copy && copy->count > FEW_MEMBERS && !(copy->index = index_make(arena, copy)))
        return NULL;
    return copy;
}

/* -- Changing -- */

enum status json_node_set(struct arena *arena, struct json_node *object, struct slice key,
                          struct json_node *value)
{
    assert(object->type == JSON_TYPE_OBJECT);
    bool repeats;
    if (!fits(object, value))
        return ST_LIMIT;
    if (value->parent)
        json_node_remove(own(value->parent), value);
    TRY(arena_dup(arena, key, &value->key));
    value->key_verbatim = false;
    TRY(add_member(arena, object, value, &repeats));
    raise_parents(value);
    return ST_OK;
}

enum status json_node_set_first(struct arena *arena, struct json_node *object, struct slice key,
                                struct json_node *value)
{
    TRY(json_node_set(arena, object, key, value));
    take_out(object, value);
    link_before(object, object->first, value);
    return ST_OK;
}

/* -- Comparing -- */

static bool numbers_equal(struct slice a, struct slice b)
{
    int64_t x, y;
    if (slice_equal(a, b))
        return true;
    if (json_number_i64(a, &x) && json_number_i64(b, &y))
        return x == y;
    char text[2][64];
    if (a.len >= sizeof(text[0]) || b.len >= sizeof(text[1]))
        return false;
    slice_copy((uint8_t *)text[0], a);
    slice_copy((uint8_t *)text[1], b);
    text[0][a.len] = text[1][b.len] = '\0';
    return strtod(text[0], NULL) == strtod(text[1], NULL);
}

static bool texts_equal(const struct json_node *a, const struct json_node *b)
{
    if (!a->escaped && !b->escaped)
        return slice_equal(a->text, b->text);
    if (a->escaped && b->escaped)
        return json_escaped_equal(a->text, b->text);
    return a->escaped ? json_escaped_is(a->text, b->text) : json_escaped_is(b->text, a->text);
}

/* Usually both have the same order; a member that is not next is looked up. */
static bool objects_equal(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *next = b->first;
    for (const struct json_node *member = a->first; member; member = member->next) {
        const struct json_node *same = next;
        if (!same || !slice_equal(same->key, member->key))
            same = json_node_member(b, member->key);
        if (!json_node_equal(member, same))
            return false;
        next = same->next;
    }
    return true;
}

static bool arrays_equal(const struct json_node *a, const struct json_node *b)
{
    for (const struct json_node *x = a->first, *y = b->first; x; x = x->next, y = y->next) {
        if (!json_node_equal(x, y))
            return false;
    }
    return true;
}

bool json_node_equal(const struct json_node *a, const struct json_node *b)
{
    if (!a || !b || a->type != b->type)
        return a == b;
    switch ((enum json_type)a->type) {
    case JSON_TYPE_NULL:
        return true;
    case JSON_TYPE_BOOL:
        return a->truth == b->truth;
    case JSON_TYPE_NUMBER:
        return numbers_equal(a->text, b->text);
    case JSON_TYPE_STRING:
        return texts_equal(a, b);
    case JSON_TYPE_ARRAY:
        return a->count == b->count && arrays_equal(a, b);
    case JSON_TYPE_OBJECT:
        return a->count == b->count && objects_equal(a, b);
    }
    return false;
}

/* -- Writing -- */

static enum status write_text(struct slice text, bool verbatim, struct buf *to)
{
    struct json_writer writer;
    if (LIKELY(verbatim)) {
        TRY(buf_reserve(to, text.len + 2));
        uint8_t *at = to->ptr + to->len;
        *at++ = '"';
        slice_copy(at, text);
        at[text.len] = '"';
        to->len += text.len + 2;
        return ST_OK;
    }
    json_writer_init(&writer, to);
    json_string(&writer, text);
    return json_writer_finish(&writer);
}

static inline enum status write_byte(char byte, struct buf *to)
{
    TRY(buf_reserve(to, 1));
    to->ptr[to->len++] = (uint8_t)byte;
    return ST_OK;
}

static enum status write_children(const struct json_node *parent, struct buf *to)
{
    bool object = parent->type == JSON_TYPE_OBJECT;
    TRY(write_byte(object ? '{' : '[', to));
    for (const struct json_node *child = parent->first; child; child = child->next) {
        if (child->prev)
            TRY(write_byte(',', to));
        if (object) {
            TRY(write_text(child->key, child->key_verbatim, to));
            TRY(write_byte(':', to));
        }
        TRY(json_tree_write(child, to));
    }
    return write_byte(object ? '}' : ']', to);
}

enum status json_tree_write(const struct json_node *node, struct buf *to)
{
    switch ((enum json_type)node->type) {
    case JSON_TYPE_NULL:
        return buf_append_text(to, "null");
    case JSON_TYPE_BOOL:
        return buf_append_text(to, node->truth ? "true" : "false");
    case JSON_TYPE_NUMBER:
        return buf_append(to, node->text);
    case JSON_TYPE_STRING:
        return write_text(node->text, node->verbatim || node->escaped, to);
    default:
        return write_children(node, to);
    }
}
