/*
 * A parsed JSON value that can be changed and written again, for patches and defaults. Everything
 * is in an arena and freed with it; texts stay where they were read from until they are needed
 * without their escapes.
 *
 * Members of an object keep their order; of a repeated key the last value is used, as in Go.
 * Finding, setting and removing a member takes about the same time in an object of any size, so
 * that no client can make a patch slow. Bounds: memory by the arena's limit; nesting by
 * JSON_TREE_DEPTH_MAX, when a tree is read and when it is changed, so that recursion over any tree
 * is safe. One owner, one thread.
 */
#ifndef VIGIL_CODEC_JSON_TREE_H
#define VIGIL_CODEC_JSON_TREE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/memory/arena.h"

enum { JSON_TREE_DEPTH_MAX = 256 };

enum json_type {
    JSON_TYPE_NULL,
    JSON_TYPE_BOOL,
    JSON_TYPE_NUMBER,
    JSON_TYPE_STRING,
    JSON_TYPE_ARRAY,
    JSON_TYPE_OBJECT,
};

struct json_index;
struct json_spans;

/*
 * Fields may be read; the functions below change them. A tree is const as a whole: everything
 * reached through a const node is const, so a function that is given `const struct json_node *`
 * cannot change any part of it. A tree that may be changed is walked with json_node_first and
 * json_node_next.
 */
struct json_node {
    const struct json_node *parent;      /* its array or object, or NULL */
    const struct json_node *prev, *next; /* in its array or object */
    struct slice key;                    /* key of a member, decoded */
    /* Items or members; NULL in every other node, so that walking it finds nothing. */
    const struct json_node *first, *last;
    union {
        struct json_index *index; /* index of an object with many members */
        struct json_spans *spans; /* spans of a long array: codec/json/spans.h */
        /* The digits of a number; the bytes between the quotes of a string. In every other node its
         * length is 0. */
        struct slice text;
    };
    uint32_t count;  /* number of items or members */
    uint16_t height; /* levels of arrays and objects, including this one; may be larger than
                        necessary */
    uint8_t type;    /* enum json_type */
    union {
        struct {
            bool truth : 1;    /* value of a bool */
            bool escaped : 1;  /* text has JSON escapes, and only necessary ones; otherwise it is
                                  decoded and may need some */
            bool verbatim : 1; /* text was read without escapes, so it needs none when written */
            bool key_verbatim : 1; /* the same of the key */
        };
        uint8_t flags; /* all of these */
    };
};
_Static_assert(offsetof(struct slice, ptr) == 0 && sizeof(struct json_node) == 80,
               "an index does not change the length of the text");

/* ST_MALFORMED with Go's error text, ST_LIMIT, ST_NOMEM. The tree borrows the text. */
MUST_CHECK
enum status json_tree_read(struct arena *arena, struct slice text, struct json_node **ret_root,
                           struct error *error);

/* The same, and lists the repeated keys: `duplicate field "data.a", duplicate field "b"`, as
 * Kubernetes does; at most JSON_REPEATS_MAX. */
enum { JSON_REPEATS_MAX = 16 };
MUST_CHECK
enum status json_tree_read_strict(struct arena *arena, struct slice text,
                                  struct json_node **ret_root, struct buf *repeats,
                                  struct error *error);

/* Compact, members in their order. ST_NOMEM. */
MUST_CHECK
enum status json_tree_write(const struct json_node *root, struct buf *to);

/* -- Looking up; a missing node is NULL, which may be passed in -- */

const struct json_node *json_look_member(const struct json_node *object, struct slice key);
const struct json_node *json_look_path(const struct json_node *root, const char *path);
const struct json_node *json_look_item(const struct json_node *array, size_t index);

/* The result is const if the tree is. */
#define JSON_FOUND(in, found) \
    _Generic((in), const struct json_node * \
             : (found), struct json_node * \
             : (struct json_node *)(found))
#define json_node_member(object, key) JSON_FOUND(object, json_look_member(object, key))
#define json_node_named(object, key) \
    JSON_FOUND(object, json_look_member(object, slice_from_text(key)))
/* "metadata.labels": a path of object members; a dot always separates. */
#define json_node_path(root, path) JSON_FOUND(root, json_look_path(root, path))
#define json_node_item(array, index) JSON_FOUND(array, json_look_item(array, index))
/* The first child of an array or object, and the child behind another; neither may be NULL. */
#define json_node_first(parent) JSON_FOUND(parent, (parent)->first)
#define json_node_next(child) JSON_FOUND(child, (child)->next)

/* The first item of an array that has items, and NULL for anything else. */
static inline const struct json_node *json_node_items(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_ARRAY ? node->first : NULL;
}

static inline const struct json_node *json_node_items_at(const struct json_node *root,
                                                         const char *path)
{
    return json_node_items(json_look_path(root, path));
}

/* Whether the node exists and is not null. */
static inline bool json_node_is_set(const struct json_node *node)
{
    return node && node->type != JSON_TYPE_NULL;
}

static inline bool json_node_is_true(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_BOOL && node->truth;
}

/* Whether it is a string that is not empty. */
static inline bool json_node_has_text(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_STRING && node->text.len;
}

/* The decoded text of a string, allocated in the arena if it has escapes; otherwise empty.
 * ST_NOMEM. */
MUST_CHECK
enum status json_node_text(const struct json_node *node, struct arena *arena,
                           struct slice *ret_text);
/* For texts without characters that need escapes. */
bool json_node_is_text(const struct json_node *node, const char *text);
/* The same for the node at a path. */
static inline bool json_node_text_is(const struct json_node *root, const char *path,
                                     const char *text)
{
    return json_node_is_text(json_look_path(root, path), text);
}

/* False: it is not a 64-bit integer. */
MUST_CHECK
bool json_node_int(const struct json_node *node, int64_t *ret_value);
/* Ignores the order of members; compares the values of numbers and strings, not their form. */
bool json_node_equal(const struct json_node *a, const struct json_node *b);

/* -- Creating; NULL when the arena is full -- */

struct json_node *json_node_new(struct arena *arena, enum json_type type);
struct json_node *json_node_new_text(struct arena *arena, struct slice text); /* copied */
struct json_node *json_node_new_int(struct arena *arena, int64_t value);
/* JSON that is only written, as it is, without a tree: for all else it is a number, and none. */
struct json_node *json_node_new_raw(struct arena *arena, struct slice json);         /* copied */
struct json_node *json_node_copy(struct arena *arena, const struct json_node *node); /* deep */
/* An object with the members of another one, whose items and members in turn are those of the
 * original: only its own members may be replaced, added and removed. */
struct json_node *json_node_copy_members(struct arena *arena, const struct json_node *object);

/*
 * -- Changing. A node that is inserted is removed from its previous place. ST_LIMIT: the tree would
 * be deeper than JSON_TREE_DEPTH_MAX, where each part counts with its largest depth so far; nothing
 * is changed. --
 */

/* Replaces the member with that key, or adds it as the last. The key is copied. ST_NOMEM, ST_LIMIT.
 */
MUST_CHECK
enum status json_node_set(struct arena *arena, struct json_node *object, struct slice key,
                          struct json_node *value);
/* The same with a key as text. The value may be NULL, which is ST_NOMEM, so that a node can be
 * created in the call. */
MUST_CHECK
static inline enum status json_node_put(struct arena *arena, struct json_node *object,
                                        const char *key, struct json_node *value)
{
    return value ? json_node_set(arena, object, slice_from_text(key), value) : ST_NOMEM;
}

/* json_node_set, and moves the member to the front. */
MUST_CHECK
enum status json_node_set_first(struct arena *arena, struct json_node *object, struct slice key,
                                struct json_node *value);
/* Removes it from its array or object; it may be inserted elsewhere. */
void json_node_remove(struct json_node *parent, struct json_node *child);
/* Inserts into an array, before one of its items; NULL: at the end. ST_LIMIT. */
MUST_CHECK
enum status json_node_insert(struct json_node *array, const struct json_node *before,
                             struct json_node *item);

#endif
