/*
 * The patterns of a schema as programs, each text once: schemas repeat the same few for hundreds of
 * fields. What they may take together is bounded: SCHEMA_PATTERN_STEPS_MAX, a few milliseconds.
 * One owner, one thread; the programs lie in the arena and outlive the table.
 */
#ifndef VIGIL_KUBE_CUSTOM_REGEX_PATTERNS_H
#define VIGIL_KUBE_CUSTOM_REGEX_PATTERNS_H

#include "base/container/hash_map.h"
#include "kube/custom/regex/regex.h"

enum { SCHEMA_PATTERN_STEPS_MAX = 200000 };

struct patterns {
    struct arena *arena;
    struct hash_map by_text;
    size_t steps_left;
};

void patterns_init(struct patterns *patterns, struct arena *arena);
void patterns_fini(struct patterns *patterns);

/* As regex_compile; ST_LIMIT also when all together are too much. *ret_regex NULL: it is one that
 * is not known here. The text is copied. */
MUST_CHECK
enum status patterns_get(struct patterns *patterns, struct slice text,
                         const struct regex **ret_regex, struct slice *ret_text,
                         struct error *error);

#endif
