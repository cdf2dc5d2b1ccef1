/*
 * A JSON value taken apart, to be changed and written again: what patches and defaults work on.
 * Everything lies in an arena and is freed with it; texts stay where they were read from until
 * somebody needs them without their escapes.
 *
 * Members of an object keep their order; of a key that comes twice the last value counts, as in Go.
 * Finding, setting and removing a member takes about the same time in an object of any size, so
 * that nobody can make a patch take long.
 * Bounds: memory at the arena's limit; nesting at JSON_TREE_DEPTH_MAX, whether a tree is read or
 * changed, so that a function may call itself for every level of any tree. One owner, one thread.
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
 * Read freely; changed by the functions below. A tree is const as a whole: whatever a const node
 * leads to is const, so a function that is given `const struct json_node *` cannot change any part
 * of it. A tree that is one's own is walked with json_node_first and json_node_next.
 */
struct json_node {
    const struct json_node *parent;      /* the array or object it is in, or NULL */
    const struct json_node *prev, *next; /* in its array or object */
    struct slice key;                    /* of a member, without escapes */
    union {
        struct {                                  /* arrays and objects */
            const struct json_node *first, *last; /* items or members */
            size_t count;
            union {
                struct json_index *index; /* of an object with many members */
                struct json_spans *spans; /* of a long array: codec/json/spans.h */
            };
        };
        struct slice text; /* of a number its digits, of a string what is between its quotes */
    };
    uint16_t height; /* levels of arrays and objects, this one included; at least as many as are */
    uint8_t type;    /* enum json_type */
    bool truth;      /* of a bool */
    bool escaped;    /* text is as in JSON and has escapes, none but those it needs; else it is
                        without and may need some */
    bool verbatim, key_verbatim; /* text, key: was read as it is, so it needs no escapes */
};

/* ST_MALFORMED with Go's words for it, ST_LIMIT, ST_NOMEM. The text is borrowed by the tree. */
MUST_CHECK
enum status json_tree_read(struct arena *arena, struct slice text, struct json_node **ret_root,
                           struct error *error);

/* The same, and says which keys came twice: `duplicate field "data.a", duplicate field "b"`, as
 * Kubernetes does; the first JSON_REPEATS_MAX of them. */
enum { JSON_REPEATS_MAX = 16 };
MUST_CHECK
enum status json_tree_read_strict(struct arena *arena, struct slice text,
                                  struct json_node **ret_root, struct buf *repeats,
                                  struct error *error);

/* Compact, members in their order. ST_NOMEM. */
MUST_CHECK
enum status json_tree_write(const struct json_node *root, struct buf *to);

/* -- Looking; a node that is not there is NULL, and may be passed in -- */

const struct json_node *json_look_member(const struct json_node *object, struct slice key);
const struct json_node *json_look_path(const struct json_node *root, const char *path);
const struct json_node *json_look_item(const struct json_node *array, size_t index);

/* What is found in a const tree is const; in one's own it may be changed. */
#define JSON_FOUND(in, found) \
    _Generic((in), const struct json_node * \
             : (found), struct json_node * \
             : (struct json_node *)(found))
#define json_node_member(object, key) JSON_FOUND(object, json_look_member(object, key))
#define json_node_named(object, key) \
    JSON_FOUND(object, json_look_member(object, slice_from_text(key)))
/* "metadata.labels": through objects; a dot always parts. */
#define json_node_path(root, path) JSON_FOUND(root, json_look_path(root, path))
#define json_node_item(array, index) JSON_FOUND(array, json_look_item(array, index))
/* Of an array or object its first child, and the one behind a child; neither may be NULL. */
#define json_node_first(parent) JSON_FOUND(parent, (parent)->first)
#define json_node_next(child) JSON_FOUND(child, (child)->next)
/* A string's text without escapes, made in the arena where it has any; else empty. ST_NOMEM. */
MUST_CHECK
enum status json_node_text(const struct json_node *node, struct arena *arena,
                           struct slice *ret_text);
/* For texts without anything to escape. */
bool json_node_is_text(const struct json_node *node, const char *text);
/* False for what is no whole number of 64 bits. */
MUST_CHECK
bool json_node_int(const struct json_node *node, int64_t *ret_value);
/* Members in any order; numbers and strings by what they mean. */
bool json_node_equal(const struct json_node *a, const struct json_node *b);

/* -- Making; NULL when the arena is full -- */

struct json_node *json_node_new(struct arena *arena, enum json_type type);
struct json_node *json_node_new_text(struct arena *arena, struct slice text); /* copied */
struct json_node *json_node_new_int(struct arena *arena, int64_t value);
struct json_node *json_node_copy(struct arena *arena, const struct json_node *node); /* deep */

/* -- Changing. What is put in is taken out of where it was. ST_LIMIT: the tree would be deeper than
 * JSON_TREE_DEPTH_MAX, each part of it counted as deep as it ever was; nothing is changed. -- */

/* In place of the member of that key, or as the last. The key is copied. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status json_node_set(struct arena *arena, struct json_node *object, struct slice key,
                          struct json_node *value);
/* The same, and moved to the front. */
MUST_CHECK
enum status json_node_set_first(struct arena *arena, struct json_node *object, struct slice key,
                                struct json_node *value);
/* Takes it out of its array or object; it may be put in elsewhere. */
void json_node_remove(struct json_node *parent, struct json_node *child);
/* Into an array, before an item of it; NULL: at the end. ST_LIMIT. */
MUST_CHECK
enum status json_node_insert(struct json_node *array, const struct json_node *before,
                             struct json_node *item);

#endif
