/*
 * Strict decoding of a configuration in the form of a Kubernetes object: a file in YAML or JSON
 * whose apiVersion and kind choose one of several types, which are tables of fields. Repeated and
 * unknown members and values of wrong types are errors, in the words of Kubernetes where it has
 * some.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_TYPED_H
#define VIGIL_CMD_SERVE_CONFIG_TYPED_H

#include "base/error.h"
#include "codec/json/tree.h"

enum typed_value {
    TYPED_TEXT,
    TYPED_TEXTS, /* a list of texts */
    TYPED_OBJECT,
    TYPED_OBJECTS, /* a list of objects */
    TYPED_ANY,
};

enum { TYPED_FIELDS_MAX = 8, TYPED_VERSIONS_MAX = 3, TYPED_FILE_BYTES_MAX = 1 << 20 };

struct typed_field {
    const char *name; /* NULL: behind the last one */
    enum typed_value value;
    const struct typed_type *type; /* for objects */
};

/* apiVersion and kind are fields of every type that has versions. */
struct typed_type {
    const char *name; /* that of Go's struct, and the kind of an object with versions */
    const char *versions[TYPED_VERSIONS_MAX];
    struct typed_field fields[TYPED_FIELDS_MAX];
};

/* An object of this type: its members are checked, and the unknown ones are named. ST_INVALID. */
MUST_CHECK
enum status typed_check(const struct typed_type *type, const struct json_node *object,
                        struct error *error);
/* The same for a file. The tree is in the arena. ST_INVALID, ST_NOT_FOUND, ST_IO, ST_LIMIT,
 * ST_NOMEM; the error names the file. NULL with ST_OK: the file is empty. */
MUST_CHECK
enum status typed_read(const struct typed_type *type, const char *path, struct arena *arena,
                       struct json_node **ret_object, struct error *error);

#endif
