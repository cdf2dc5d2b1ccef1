/*
 * A lazy view of JSON: finds a value in a text without parsing the rest of it, and without memory.
 * A value is a part of the text, as it is written there.
 *
 *     vigil_bytes phase;
 *     if (vigil_json_find(pod, "status.phase", &phase) &&
 *         vigil_json_is(phase, "Running"))
 *         …
 *
 * A path names members and items from the outside to the inside:
 *
 *     metadata.name
 *     spec.containers[0].image
 *     metadata.labels['app.kubernetes.io/name']
 *
 * The last form is for keys that contain a dot or a bracket.
 *
 * The text may come from anybody: what is malformed has no values. Only the part of a text up to
 * the value that is found is examined; of several members with the same key the first one is found.
 *
 * Threads: Every function may be called on any thread.
 */
#ifndef VIGIL_KUBE_JSON_H
#define VIGIL_KUBE_JSON_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types of values. */
typedef enum vigil_json_type {
    VIGIL_JSON_NONE, /* not a value */
    VIGIL_JSON_NULL,
    VIGIL_JSON_BOOLEAN,
    VIGIL_JSON_NUMBER,
    VIGIL_JSON_TEXT,
    VIGIL_JSON_ARRAY,
    VIGIL_JSON_OBJECT
} vigil_json_type;

/* Returns 1 if the value at the path exists, otherwise 0. An empty path is the whole value. */
VIGIL_API int vigil_json_find(vigil_bytes json, const char *path, vigil_bytes *ret_value);
/* The member of an object with this key, which is not a path. */
VIGIL_API int vigil_json_member(vigil_bytes json, vigil_bytes key, vigil_bytes *ret_value);

/* The type that the first byte of a value shows, after white space. Returns a vigil_json_type. */
VIGIL_API int vigil_json_type_of(vigil_bytes value);
/* Whether the value is a JSON string with exactly this text. Names, keys and the like that
 * functions of vigil/kube/object.h return are texts without quotes, and not JSON values. */
VIGIL_API int vigil_json_is(vigil_bytes value, const char *text);
/* Whether the value is true. */
VIGIL_API int vigil_json_is_true(vigil_bytes value);
/* Returns 1 if the value is a whole number that fits, otherwise 0. */
VIGIL_API int vigil_json_integer(vigil_bytes value, int64_t *ret_number);
/*
 * Decodes a string into a buffer of `size` bytes, with a final zero that is not counted. Returns 1,
 * or 0 if the value is not a string of UTF-8 or does not fit: value.size bytes are always enough.
 * The text may contain zeros, which JSON writes as \u0000. ret_length may be NULL.
 */
VIGIL_API int vigil_json_text(vigil_bytes value, char *buffer, size_t size, size_t *ret_length);

/*
 * The members of an object or the items of an array, in their order:
 *
 *     vigil_json_iterator iterator = vigil_json_iterate(containers);
 *     while (vigil_json_next(&iterator, NULL, &container))
 *         …
 */
typedef struct vigil_json_iterator {
    const unsigned char *at, *end; /* private, as are the others */
    int in_object, begun;
} vigil_json_iterator;

/* Begins before the first member or item. A value that is neither an object nor an array has none.
 */
VIGIL_API vigil_json_iterator vigil_json_iterate(vigil_bytes container);
/* The next member or item. Returns 0 at the end, and where the text is malformed. The key is a JSON
 * string with its quotes, which vigil_json_text decodes; it is empty in an array. ret_key may be
 * NULL. */
VIGIL_API int vigil_json_next(vigil_json_iterator *iterator, vigil_bytes *ret_key,
                              vigil_bytes *ret_value);

#ifdef __cplusplus
}
#endif

#endif
