#include "kube/custom/schema/patterns.h"

#include "base/random.h"

struct pattern {
    struct slice text;
    const struct regex *regex;
};

static struct slice pattern_key(const void *value)
{
    return ((const struct pattern *)value)->text;
}

void patterns_init(struct patterns *patterns, struct arena *arena)
{
    *patterns = (struct patterns){.arena = arena, .steps_left = SCHEMA_PATTERN_STEPS_MAX};
    hash_map_init(&patterns->by_text, pattern_key, random_seed_system());
}

void patterns_fini(struct patterns *patterns)
{
    hash_map_fini(&patterns->by_text);
}

static enum status make(struct patterns *patterns, struct slice text, struct pattern **ret_made,
                        struct error *error)
{
    struct pattern *made = arena_calloc(patterns->arena, 1, sizeof(*made));
    void *replaced;
    if (!made)
        return ST_NOMEM;
    TRY(arena_dup(patterns->arena, text, &made->text));
    TRY(regex_compile_within(patterns->arena, made->text, &patterns->steps_left, &made->regex,
                             error));
    TRY(hash_map_put(&patterns->by_text, made, &replaced));
    *ret_made = made;
    return ST_OK;
}

enum status patterns_get(struct patterns *patterns, struct slice text,
                         const struct regex **ret_regex, struct slice *ret_text,
                         struct error *error)
{
    struct pattern *found = hash_map_get(&patterns->by_text, text);
    if (!found)
        TRY(make(patterns, text, &found, error));
    *ret_regex = found->regex;
    *ret_text = found->text;
    return ST_OK;
}
