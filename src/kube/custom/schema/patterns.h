/*
 * The compiled patterns of a schema, each text once: schemas repeat the same few patterns for
 * hundreds of fields. Compiling all of them is limited to SCHEMA_PATTERN_STEPS_MAX steps, a few
 * milliseconds. One owner, one thread; the programs are in the arena and outlive the table.
 */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_PATTERNS_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_PATTERNS_H

#include "base/container/hash_map.h"
#include "regex/regex.h"

enum { SCHEMA_PATTERN_STEPS_MAX = 200000 };

struct patterns {
    struct arena *arena;
    struct hash_map by_text;
    size_t steps_left;
};

void patterns_init(struct patterns *patterns, struct arena *arena);
void patterns_fini(struct patterns *patterns);

/*
 * Errors as in regex_compile; also ST_LIMIT if all patterns together exceed the limit. The text is
 * copied.
 */
MUST_CHECK
enum status patterns_get(struct patterns *patterns, struct slice text,
                         const struct regex **ret_regex, struct slice *ret_text,
                         struct error *error);

#endif
